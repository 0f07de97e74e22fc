"""What a person's own words say of the place, the time and the subject of their question.

A small model leaves out a place that was named, or writes "today" for "tonight", and the answer is
then about another place or time. The words that it answers say so, and they go before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from caal_node.policy.heard_words import plain, stems
from caal_node.toolsets.weather.sentences import About
from caal_node.toolsets.when import When, read_when

_NAME: Final = r"[^\W\d_a-z][\w'’.-]*[\w]"
_PLACE: Final = re.compile(
    rf"\b(?:in|at|for|near|around|of) ({_NAME}(?:(?:, | (?:de |la |of |the |upon |am )?){_NAME})*)"
)
_TIMES: Final = stems(
    """Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May
    June July August September October November December Christmas Easter Today Tonight Tomorrow"""
)
_SUBJECTS: Final[Mapping[About, frozenset[str]]] = {
    "rain": stems("rain rainy umbrella snow snowing wet dry shower drizzle raincoat hail"),
    "temperature": stems("temperature cold warm hot degrees chilly freezing coat jacket"),
    "wind": stems("wind windy gusts breezy stormy"),
    "sun": stems("sunset sunrise"),
}
_SUN: Final = re.compile(r"\bsun (?:\w+ )?(?:set|rise|go|come)|\bget(?:s|ting)? (?:dark|light)\b")


def place_said(request: str) -> str:
    """Return the place that a request names ("in New York"), by its capitals; "" for none."""
    for match in _PLACE.finditer(request):
        words = match[1].rstrip(".?!")
        if not stems(words.split()[0]) <= _TIMES:
            return words
    return ""


def time_said(request: str, given: str, now: datetime) -> When | None:
    """Return the time that a request says, where it says it better than `given`, a model's words.

    They are believed where the person said them, unless the request tells more exactly: "tomorrow"
    of "tomorrow afternoon".
    """
    said = read_when(request, now) if request else None
    if said is None or plain(given) not in plain(request):
        return said
    meant = read_when(given, now)
    is_within = meant is not None and meant.start <= said.start and said.end <= meant.end
    return said if is_within else None


def subject_said(request: str) -> About:
    """Return what a request asks for in particular, or "everything"."""
    if _SUN.search(plain(request)):
        return "sun"
    asked = stems(request)
    found: list[About] = [subject for subject, words in _SUBJECTS.items() if asked & words]
    return found[0] if len(found) == 1 else "everything"
