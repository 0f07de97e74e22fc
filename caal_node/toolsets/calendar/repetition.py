"""How often an event is wanted, in words: "every tuesday at 7" is one at 7 that repeats weekly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from caal_node.grounding.fact_words import WORDS

_WEEKDAYS: Final = "|".join(WORDS["weekdays"])
_EVERY: Final = re.compile(
    rf"\b(?:every|each) (?:(?P<other>other|second) )?(?:(?P<weekday>{_WEEKDAYS})s?"
    r"|(?P<unit>day|week|month|year|morning|afternoon|evening|night)s?)\b"
    r"|\b(?P<adverb>daily|weekly|monthly|yearly|annually)\b",
    re.I,
)
_OFTEN: Final = re.compile(r"\b(?:every|each)\b", re.I)
_RULES: Final = {
    **dict.fromkeys(("day", "morning", "afternoon", "evening", "night", "daily"), "DAILY"),
    **dict.fromkeys(("week", "weekly"), "WEEKLY"),
    **dict.fromkeys(("month", "monthly"), "MONTHLY"),
    **dict.fromkeys(("year", "yearly", "annually"), "YEARLY"),
}
_PARTS: Final = frozenset({"morning", "afternoon", "evening", "night"})
_SAID: Final = {"DAILY": "every day", "WEEKLY": "every week", "MONTHLY": "every month"}


@dataclass(frozen=True, slots=True)
class Repetition:
    """How an event repeats: an RRULE's value, and the words that say so; "" for once."""

    rule: str = ""
    words: str = ""


def repetition_in(when: str) -> tuple[Repetition | None, str]:
    """Return how often `when` says, and the words that are left, which say the first time.

    It is None where that is in no way that is known here, such as "every other weekday".
    """
    match = _EVERY.search(when)
    if match is None:
        return None if _OFTEN.search(when) else Repetition(), when
    unit = (match["unit"] or match["adverb"] or "").lower()
    weekday = (match["weekday"] or "").lower()
    frequency = "WEEKLY" if weekday else _RULES[unit]
    rule = f"FREQ={frequency}"
    if match["other"]:
        rule += ";INTERVAL=2"
    left = weekday or (unit if unit in _PARTS else "")
    said = _SAID.get(frequency, "every year")
    words = match[0].lower() if match["other"] or weekday else said
    rest = f"{when[: match.start()]}{left}{when[match.end() :]}"
    return Repetition(rule, words), " ".join(rest.split())
