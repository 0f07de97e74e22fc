"""A time of day that was said, where a small model hands another one to a tool.

"Book a table for tonight at seven" becomes `{"time": "20:00"}` with a small model. Where the
person's words tell one time and no other follows from them, that one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from caal_node.grounding.quantities import stated_in
from caal_node.grounding.spoken_times import HALF_DAY, Time
from caal_node.policy.heard_words import words

REQUEST_CHARS: Final = 400
"""Characters of a request that are read: half a minute of speech, and a few milliseconds."""
ARGUMENTS_MAX: Final = 32
"""Arguments of one call that are looked at."""
_WRITTEN: Final = re.compile(r"\s*(\d{1,2}):(\d\d)\s*")
_FROM_ANOTHER: Final = frozenset(
    {"before", "after", "earlier", "later", "sooner", "until", "till", "from", "between"}
    | {"around", "about"}
)
"""With one of these words another time than the one that is said may be meant."""


def at_said_time(arguments: Mapping[str, Any], request: str) -> Mapping[str, Any]:
    """Return `arguments` with the one time of the person's `request` in place of another one.

    It stays as it is where two arguments are times, or where the words may mean a time that they
    do not tell: "an hour before the concert at eight".
    """
    times = {
        name: (int(found[1]) * 60 + int(found[2]), len(found[1]))
        for name in islice(arguments, ARGUMENTS_MAX)
        if isinstance(value := arguments[name], str) and (found := _WRITTEN.fullmatch(value))
    }
    if len(times) != 1:
        return arguments
    ((name, (minute, width)),) = times.items()
    said = _only_time(request[:REQUEST_CHARS])
    given = Time(0, 0, minute, half_known=True)
    if said is None or said.is_same(given):
        return arguments
    meant = said.minute
    if not said.half_known and (minute >= HALF_DAY) != (meant >= HALF_DAY):
        meant = (meant + HALF_DAY) % (2 * HALF_DAY)
    hour = str(meant // 60).rjust(width, "0")
    return {**arguments, name: f"{hour}:{meant % 60:02d}"}


def _only_time(request: str) -> Time | None:
    """Return the time that a request tells; None where there are none, several, or a length."""
    stated = stated_in(request)
    # "For four of us" may be a time as well, but "half past seven" is one.
    told = [time for time in stated.times if time.is_sure] or list(stated.times)
    has_length = any(each.unit and each.unit.dimension == "duration" for each in stated.figures)
    others = _FROM_ANOTHER.intersection(words(request))
    if len(told) != 1 or told[0].zoned or has_length or others:
        return None
    return told[0]
