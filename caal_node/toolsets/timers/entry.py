"""What is set: one timer, alarm or reminder, or a request that is kept for later."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import InvalidArguments
from caal_node.toolsets.when import at_wall_clock

Kind: TypeAlias = Literal["timer", "alarm", "reminder", "request"]
State: TypeAlias = Literal["waiting", "ringing", "missed"]

NAME_CHARS: Final = 200
"""Characters of a name or of the words of a reminder or request: some 15 seconds of speech."""
_AROUND_NAME: Final = re.compile(
    r"^(?:(?:the|my|a|an|to|that|about|for)\s+)+|(?<!\s)\s++(?:timer|alarm|reminder)s?$",
    re.IGNORECASE,
)
_ONLY_KIND: Final = re.compile(r"(?:timer|alarm|reminder)s?", re.IGNORECASE)
_WEEK: Final = 7


@dataclass(frozen=True, slots=True)
class Entry:
    """One timer, alarm, reminder or request."""

    kind: Kind
    name: str
    """What it is for, such as "pasta", or the words of a reminder or request; "" if unsaid."""
    due: float
    """When it rings, in seconds of Unix time."""
    length_s: float = 0.0
    """How long a timer runs altogether; 0 for what is set to a time."""
    wall: str = ""
    """The time that clocks of the home show then, as ISO text; "" for what counts from a moment."""
    weekdays: str = ""
    """The days on which it comes again, Monday being "0"; "" for once."""
    zone: str = ""
    """The time zone in which `wall` was meant, by its name."""
    place: str = ""
    """The room in which it was set."""
    state: State = "waiting"
    lease: float = 0.0
    """Until when, in Unix time, the process that rings it is taken to be alive."""
    number: int = 0
    """The store's own number, above 0; 0 before it has one."""

    def due_in(self, zone: tzinfo | None) -> datetime:
        """Return when it rings, in a zone."""
        return datetime.fromtimestamp(self.due, UTC).astimezone(zone)


def plain_text(said: str) -> str:
    """Return what is kept of a name, or of a reminder's or request's words, on one line.

    Raises:
        InvalidArguments: it is too long to be said.
    """
    text = " ".join(said.split())
    if len(text) > NAME_CHARS:
        error = InvalidArguments(
            f"A name, reminder or request has at most {NAME_CHARS} characters; say it shorter."
        )
        error.words = "That's too long for me to read out. Can you say it in a few words?"
        raise error
    return text


def plain_name(said: str) -> str:
    """Return a name without what is around it: "pasta" of "the pasta timer".

    Raises:
        InvalidArguments: it is too long to be said.
    """
    name = plain_text(said).strip(" .,!?\"'")
    name = _AROUND_NAME.sub("", name)
    name = _AROUND_NAME.sub("", name)
    return "" if _ONLY_KIND.fullmatch(name) else name


def next_due(wall: datetime, weekdays: str, zone: tzinfo, after: datetime) -> datetime:
    """Return when clocks of `zone` next show the time of `wall` on one of the days.

    Args:
        weekdays: As in an entry; "" leaves the day as `wall` has it.
        after: What the moment has to lie behind, if there are days to choose from.
    """
    minute = wall.hour * 60 + wall.minute
    if not weekdays:
        return at_wall_clock(wall.date(), minute, zone)
    today = after.astimezone(zone).date()
    for ahead in range(-1, _WEEK + 2):
        moment = at_wall_clock(today + timedelta(ahead), minute, zone)
        on_day = str((today + timedelta(ahead)).weekday()) in weekdays
        if on_day and moment.timestamp() > after.timestamp():
            return moment
    raise ValueError(f"{weekdays!r} names no day of the week")
