"""What is set: one timer, alarm or reminder, or a request that is kept for later."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import InvalidArguments
from caal_node.grounding.fact_words import WORDS
from caal_node.toolsets.when import asked_when, at_wall_clock, read_length

# Days on which something comes again: "every weekday at seven", "mondays and fridays".

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


# When a thing is to ring, of the words that a model gives for it.

_FIRST_HOURS: Final[dict[Kind, int]] = {"timer": 7, "alarm": 4, "reminder": 7, "request": 7}
"""The first hour that is taken for the morning's: people are woken earlier than they meet."""
_REMIND_AT: Final = 9 * 60
"""Minutes from midnight at which a reminder for a day or its morning comes."""
_MORNING: Final = 6
"""The hour at which a morning begins, as it is read."""
_AHEAD_MAX: Final = timedelta(days=10 * 366)
"""More is misheard."""


@dataclass(frozen=True, slots=True)
class RingTime:
    """When something rings."""

    moment: datetime
    wall: str = ""
    """As in an entry: the time of the clocks, where the time was said by them."""
    weekdays: str = ""


def asked_time(words: str, kind: Kind, now: datetime) -> RingTime:
    """Return when words say that a thing is to ring, seen from `now` in the home's zone.

    Raises:
        InvalidArguments: they say no time, one that has passed, or a day without a time.
    """
    weekdays, once = split_repeat(words)
    when = asked_when("when", once, now, first_morning_hour=_FIRST_HOURS[kind])
    moment = when.start
    if when.kind != "time":
        if kind != "reminder" or (when.kind == "hours" and weekdays):
            raise _to_ask("when: it names no time of day.", "At what time?")
        if when.kind == "days" or moment.hour == _MORNING:
            moment = at_wall_clock(moment.date(), _REMIND_AT, now.tzinfo)
        if moment.timestamp() <= now.timestamp():
            raise _to_ask("when: it names no time of day.", "At what time?")
    if weekdays and now.tzinfo is not None:
        if when.from_now:
            raise _to_ask("when: a length from now cannot repeat.", "At what time?")
        moment = next_due(moment.replace(tzinfo=None), weekdays, now.tzinfo, now)
    if moment.timestamp() <= now.timestamp():
        raise _to_ask("when: that time has passed.", "That time has passed. When do you mean?")
    if moment.timestamp() - now.timestamp() > _AHEAD_MAX.total_seconds():
        raise _to_ask("when: that is more than ten years ahead.", "When do you mean?")
    wall = "" if when.from_now else moment.replace(tzinfo=None).isoformat(timespec="minutes")
    return RingTime(moment, wall, weekdays)


def _to_ask(text: str, words: str) -> InvalidArguments:
    error = InvalidArguments(text)
    error.words = words
    return error


# What an entry becomes that a person changes: more time, less, or another time.

How: TypeAlias = Literal["set", "add", "subtract"]

_MORE: Final = re.compile(r"\b(?:more|longer|extra|later|add|plus|another)\b", re.IGNORECASE)
_LESS: Final = re.compile(r"\b(?:less|shorter|earlier|fewer|sooner|minus)\b", re.IGNORECASE)
_FROM_NOW: Final = re.compile(r"\s*in\b|.*\bfrom now\b", re.IGNORECASE)


def changed(entry: Entry, time: str, how: How, now: datetime) -> Entry:
    """Return an entry as words about its time change it; one that rings waits again.

    Args:
        now: The present in the home's zone.

    Raises:
        InvalidArguments: the words say no time.
    """
    entry = replace(entry, state="waiting", lease=0.0)
    length = read_length(time)
    if length is None or _FROM_NOW.match(time):
        return _at(entry, time, now)
    seconds = length.total_seconds()
    if how == "subtract" or _LESS.search(time):
        return _moved(entry, -seconds, now)
    if how == "add" or _MORE.search(time):
        return _moved(entry, seconds, now)
    total = seconds if entry.kind == "timer" else 0.0
    return replace(entry, due=now.timestamp() + seconds, length_s=total, wall="", weekdays="")


def _moved(entry: Entry, seconds: float, now: datetime) -> Entry:
    """Move an entry, from now on where it rings already; what comes on many days comes once."""
    due = max(entry.due, now.timestamp()) + seconds
    total = max(entry.length_s + seconds, 0.0) if entry.kind == "timer" else 0.0
    due = max(due, now.timestamp())
    return replace(entry, due=due, length_s=total, wall="", weekdays="")


def _at(entry: Entry, time: str, now: datetime) -> Entry:
    at = asked_time(time, entry.kind, now)
    due, weekdays = at.moment, at.weekdays
    if entry.weekdays and not weekdays and at.wall and now.tzinfo is not None:
        weekdays = entry.weekdays
        due = next_due(datetime.fromisoformat(at.wall), weekdays, now.tzinfo, now)
    return replace(entry, due=due.timestamp(), wall=at.wall, weekdays=weekdays, length_s=0.0)


def next_time(entry: Entry, now: datetime) -> Entry | None:
    """Return the entry as it waits for its next day; None for one that comes once."""
    if not entry.weekdays or now.tzinfo is None:
        return None
    wall = datetime.fromisoformat(entry.wall)
    after = max(now, entry.due_in(now.tzinfo), key=datetime.timestamp)
    due = next_due(wall, entry.weekdays, now.tzinfo, after).timestamp()
    return replace(entry, due=due, state="waiting", lease=0.0)


def snoozed(entry: Entry, seconds: float, now: datetime) -> Entry:
    """Return an entry as it rings once more, so many seconds from now."""
    due = now.timestamp() + seconds
    return replace(entry, due=due, wall="", weekdays="", state="waiting", lease=0.0)


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
