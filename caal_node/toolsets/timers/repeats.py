"""Days on which something comes again: "every weekday at seven", "mondays and fridays"."""

from __future__ import annotations

import re
from typing import Final

from caal_node.grounding.fact_words import WORDS

_NAMES: Final = tuple(WORDS["weekdays"])
_GROUPS: Final = {"day": "0123456", "weekday": "01234", "week day": "01234", "weekend": "56"}
_DAY: Final = rf"(?:{'|'.join(_NAMES)})"
_EVERY: Final = re.compile(
    rf"\b(?:(?:every|each|on) )?(?P<days>{_DAY}s(?:,? (?:and )?{_DAY}s?)*)\b"
    rf"|\b(?:every|each) (?P<each>{_DAY}(?:,? (?:and )?(?:every )?{_DAY})*)\b"
    r"|\b(?:every|each|all|on|at)(?: single)? (?P<group>days?|week ?days?|weekends?)\b"
    r"|\b(?:every|each) (?P<part>morning|afternoon|evening|night)\b"
    r"|\b(?P<bare>daily|weekdays|weekends)\b",
    re.IGNORECASE,
)
_NOT_REPEATED: Final = frozenset({"all day", "on weekend", "at weekend", "on day", "at day"})


def split_repeat(words: str) -> tuple[str, str]:
    """Return the days that words repeat on, Monday being "0", and the words without them.

    The days are "" where nothing repeats.
    """
    match = _EVERY.search(words)
    if match is None or match[0].lower() in _NOT_REPEATED:
        return "", words
    named = (match["days"] or match["each"] or "").lower()
    group = (
        (match["group"] or match["bare"] or "").lower().rstrip("s").replace("week day", "weekday")
    )
    if named:
        days = "".join(str(at) for at, name in enumerate(_NAMES) if name in named)
    else:
        days = _GROUPS.get(group, _GROUPS["day"])
    kept = f"in the {match['part']}" if match["part"] else ""
    return days, f"{words[: match.start()]}{kept}{words[match.end() :]}"


def days_words(weekdays: str) -> str:
    """Return how the days of an entry are said: "every weekday", "every Monday and Friday"."""
    for group, days in _GROUPS.items():
        if weekdays == days and group != "week day":
            return "on weekends" if group == "weekend" else f"every {group}"
    names = [_NAMES[int(day)].capitalize() for day in weekdays]
    return "every " + (names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}")
