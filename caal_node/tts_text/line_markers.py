"""How a line begins: headings, lists, quotes, rules, definitions of links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

RULE_CHARS: Final = 80
"""A line of dashes longer than this is a rule whatever follows."""

_HEADING: Final = re.compile(r"#{1,6}[ \t]+")
_BULLET: Final = re.compile(r"[-+*•‣◦▪–●○][ \t]+(?:\[(?P<box>[ xX])\][ \t]+)?")
_NUMBERED: Final = re.compile(r"\d{1,3}[.)](?=[ \t])")
_QUOTE: Final = re.compile(r">[ \t]*(?=[^\d\s=])|>[ \t]+|>(?=\n)")
_RULE: Final = re.compile(
    r"(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}[ \t]*)(?:\n|\Z)"
)
_RULE_SO_FAR: Final = re.compile(r"(?:[-*_][ \t]*)+|=+[ \t]*")
_DEFINITION: Final = re.compile(r"\[(?:\^[\w-]{1,20}|\d{1,3})\]:[ \t]+")
_DEFINITION_SO_FAR: Final = re.compile(r"\[(?:\^[\w-]{0,20}|\d{0,3})(?:\](?::[ \t]*)?)?")
_UNDECIDED: Final = re.compile(
    r"#{1,6}[ \t]*|[-+*•‣◦▪–●○][ \t]*(?:\[[ xX]?\]?[ \t]*)?|\d{1,3}[.)]?|>[ \t]*"
)


@dataclass(frozen=True, slots=True)
class Marker:
    """`length` characters are a marker; `said` stands in its place."""

    length: int
    item: bool = False
    said: str = ""
    done: bool = False
    """Whether it is a task's box that is ticked."""


def marker(held: str, *, final: bool) -> Marker | bool | None:
    """The marker that `held`, a line's beginning, begins with; None without one.

    False: more has to come first.
    """
    run = _RULE_SO_FAR.match(held)
    if run and run.end() > RULE_CHARS:
        return Marker(1)
    if run and run.end() == len(held) and not final:
        return False
    if rule := _RULE.match(held):
        return Marker(rule.end())
    if not final and (_all(_UNDECIDED, held) or _all(_DEFINITION_SO_FAR, held)):
        return False
    if heading := _HEADING.match(held):
        return Marker(heading.end(), item=True)
    if bullet := _BULLET.match(held):
        box = bullet["box"]
        return Marker(bullet.end(), item=True, done=box is not None and box in "xX")
    if number := _NUMBERED.match(held):
        return Marker(number.end(), item=True, said=number[0])
    if found := _QUOTE.match(held) or _DEFINITION.match(held):
        return Marker(found.end())
    return None


def _all(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.fullmatch(text) is not None
