"""What is set, and how it is said: one timer, alarm or reminder, or a request kept for later."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import InvalidArguments
from caal_node.grounding.spoken_numbers import WORDS
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


# How timers, alarms and reminders are said.

_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_READ_OUT: Final = 6
"""Nobody follows a longer list by ear."""

LOST_WORDS: Final = (
    "I lost the timers, alarms and reminders that were set, as their file was damaged."
)


def length_words(seconds: float) -> str:
    """Return a length in its two largest units: "1 hour and 30 minutes"."""
    left, said = max(round(seconds), 0), list[str]()
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            said.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " and ".join(said[:2]) or "no time"


def clock_words(moment: datetime) -> str:
    """Return a time of day: "7 AM", "7:30 PM", "noon"."""
    if moment.minute == 0 and moment.hour in (0, 12):
        return "noon" if moment.hour else "midnight"
    minutes = f":{moment.minute:02d}" if moment.minute else ""
    return f"{(moment.hour - 1) % 12 + 1}{minutes} {'PM' if moment.hour >= 12 else 'AM'}"


def moment_words(moment: datetime, now: datetime) -> str:
    """Return a time with its day, as seen from `now`: "7 AM tomorrow", "noon on December 24"."""
    clock, days = clock_words(moment), (moment.date() - now.date()).days
    if days == 0:
        return f"{clock} today"
    if days in (-1, 1):
        return f"{clock} {'tomorrow' if days == 1 else 'yesterday'}"
    if 1 < days < 7:
        return f"{clock} on {moment:%A}"
    year = "" if moment.year == now.year else f" {moment.year}"
    return f"{clock} on {moment:%B} {moment.day}{year}"


def called(entry: Entry) -> str:
    """Return what an entry is called behind "the": "pasta timer", "10 minute timer", "alarm"."""
    if entry.kind in ("reminder", "request"):
        between = " to" if _is_deed(entry.name) else ":"
        return f"{entry.kind}{between} {entry.name}"
    if entry.name:
        return f"{entry.name} {entry.kind}"
    if entry.length_s:
        return f"{length_words(entry.length_s).replace('s and', ' and').rstrip('s')} {entry.kind}"
    return entry.kind


def told_apart(entries: Sequence[Entry], now: datetime) -> list[str]:
    """Return names for entries, with what is left or the time where two have the same."""
    names = [called(entry) for entry in entries]
    said = list[str]()
    for entry, name in zip(entries, names, strict=True):
        if names.count(name) == 1:
            said.append(f"the {name}")
        elif entry.kind == "timer":
            said.append(f"the {name} with {length_words(entry.due - now.timestamp())} left")
        else:
            said.append(f"the {name} for {_when(entry, now)}")
    return said


def _is_deed(name: str) -> bool:
    """Say whether words are likely something to do: "call mum", and not "the bins"."""
    first = name.split(" ", 1)[0]
    return bool(first) and first.islower() and first not in ("the", "my", "a", "an", "that", "it")


def set_words(entry: Entry, now: datetime) -> str:
    """Return what a person hears when it is set."""
    if entry.kind == "timer":
        name = f"{entry.name} timer" if entry.name else "timer"
        return f"The {name} is set for {length_words(entry.due - now.timestamp())}."
    when = _when(entry, now)
    if entry.kind == "alarm":
        return f"The {called(entry)} is set for {when}."
    if entry.kind == "request":
        return f"I'll do this at {when}: {entry.name}."
    return f"I'll remind you at {when}: {entry.name}."


def _when(entry: Entry, now: datetime) -> str:
    moment = entry.due_in(now.tzinfo)
    if entry.weekdays:
        return f"{clock_words(moment)} {days_words(entry.weekdays)}"
    return moment_words(moment, now)


def left_words(entry: Entry, now: datetime) -> str:
    """Return how an entry stands: "The pasta timer has 4 minutes left"."""
    if entry.state == "ringing":
        return f"The {called(entry)} is ringing"
    if entry.kind == "timer":
        return f"The {called(entry)} has {length_words(entry.due - now.timestamp())} left"
    if entry.kind == "alarm":
        return f"The {called(entry)} is set for {_when(entry, now)}"
    if entry.kind == "request":
        return f"For {_when(entry, now)} you asked this: {entry.name}"
    return f"You have a reminder for {_when(entry, now)}: {entry.name}"


def list_words(entries: Sequence[Entry], now: datetime, kind: str = "") -> str:
    """Return what is set, the next first."""
    if not entries:
        return f"There are no {kind or 'timer'}s." if kind else "Nothing is set."
    said = [left_words(entry, now) for entry in entries[:_READ_OUT]]
    more = len(entries) - len(said)
    if more:
        said.append(f"And there {'is' if more == 1 else 'are'} {more} more")
    return ". ".join(said) + "."


def ring_words(entry: Entry, now: datetime) -> str:
    """Return what is said when it rings."""
    if entry.kind == "timer":
        return f"Your {called(entry)} is done."
    if entry.kind == "alarm":
        return f"It's {clock_words(now)}, and your {called(entry)} is ringing."
    if entry.kind == "request":
        return f"As you asked earlier: {entry.name}."
    return f"Here is your reminder: {entry.name}."


def missed_words(entries: Sequence[Entry], now: datetime) -> str:
    """Return what is told of entries that rang when nobody was there to hear them."""
    said = list[str]()
    for entry in entries[:_READ_OUT]:
        at = moment_words(entry.due_in(now.tzinfo), now).removesuffix(" today")
        said.append(
            f"your {called(entry)} ended at {at}"
            if entry.kind == "timer"
            else f"your {called(entry)} was at {at}"
            if entry.kind == "alarm"
            else f"I did not do this at {at}: {entry.name}"
            if entry.kind == "request"
            else f"you had a reminder at {at}: {entry.name}"
        )
    more = len(entries) - len(said)
    rest = f", and {more} more" if more else ""
    return f"While I couldn't reach you, {'; '.join(said)}{rest}."
