"""What the calendar's tools answer: the data for the model, and the sentence that is heard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from caal_node.policy.heard_words import COMMON, stem, words
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.calendar.calendar_event import CalendarEvent
from caal_node.toolsets.calendar.free_time import gaps_in, waking_hours
from caal_node.toolsets.calendar.known_calendars import FoundEvents
from caal_node.toolsets.calendar.spoken_moments import (
    said_day,
    said_event,
    said_span,
    said_times,
    said_when,
)
from caal_node.toolsets.when import When

RECORDS_MAX: Final = 100
"""Events that the model is shown of an answer: some 3,000 tokens. It is told how many more."""
SPOKEN_MAX: Final = 8
"""Events that are read out at once."""
FOUND_MAX: Final = 3
"""Events that are read out of those that were searched for."""
IN_THE_WAY_MAX: Final = 4
"""Events that are read out where somebody asks whether they are free."""
_ANY_EVENT: Final = frozenset(
    map(stem, ("next", "upcoming", "event", "events", "appointment", "thing", "calendar", "soon"))
)
"""Words that name no event: "my next appointment"."""
A_YEAR: Final = timedelta(days=365)
_WHOLE_DAY: Final = timedelta(hours=14)
"""From here on, a span is a day of which the night is not wanted."""


def events_of(found: FoundEvents, span: When, today: date) -> VerbatimResult:
    """Answer what is on in a span of time."""
    when = said_span(span.start, span.end, today)
    if not found.events:
        return _result(found, f"There is nothing in the calendar {when}.")
    shown = found.events[:SPOKEN_MAX]
    more = len(found.events) - len(shown)
    if _is_one_day(span.start, span.end):
        names = spoken_list([said_event(event) for event in shown], more)
        return _result(found, f"{_capital(when)}: {names}.")
    by_day: dict[date, list[str]] = {}
    for event in shown:
        day = max(event.start.date(), span.start.date())
        by_day.setdefault(day, []).append(said_event(event))
    said = [f"{_capital(said_day(day, today))}: {spoken_list(by_day[day])}." for day in by_day]
    return _result(found, " ".join([*said, f"And {more} more."] if more else said))


def events_about(about: str, found: FoundEvents, span: When, today: date) -> VerbatimResult:
    """Answer when something is on, by its words, or what is next."""
    events = _matching(about, found.events)
    if not events and asks_for_next(about):
        events = [e for e in found.events if e.start.timestamp() >= span.start.timestamp()][:1]
        if not events:
            return _result(found, f"There is nothing in the calendar {_ahead(span, today)}.")
    of_them = replace(found, events=tuple(events))
    if not events:
        when = _ahead(span, today)
        return _result(of_them, f"I can't find {about} in the calendar {when}.")
    said = [f"{event.title} is {said_when(event, today)}" for event in events[:FOUND_MAX]]
    return _result(of_them, spoken_list(said, len(events) - FOUND_MAX) + ".")


def asks_for_next(words_: str) -> bool:
    """Say whether words ask for the next event, whatever it is."""
    said = frozenset(map(stem, words(words_)))
    return bool(said & _ANY_EVENT) and said - COMMON <= _ANY_EVENT


def free_or_not(found: FoundEvents, start: datetime, end: datetime, today: date) -> VerbatimResult:
    """Answer whether nothing takes the person's time between two moments."""
    busy = [event for event in found.events if event.is_busy]
    others = [event.title for event in found.events if not event.is_busy]
    note = f" There is also {_some(others)}." if others else ""
    when, one_day = said_span(start, end, today), _is_one_day(start, end)
    gaps = [(start, end)]
    if not busy:
        # Where a calendar is away, nobody can say yes.
        said = f"Yes, you are free {when}." if found.is_whole else f"I see nothing {when}."
    else:
        shown = [said_event(event) if one_day else _with_day(event, today) for event in busy]
        part = waking_hours(start, end) if end - start > _WHOLE_DAY else (start, end)
        gaps = gaps_in(busy, *part) if one_day else []
        free = f" You are free {spoken_list([said_times(*gap) for gap in gaps])}." if gaps else ""
        said = f"{'Not all of it' if gaps else 'No'}: {when} there is {_some(shown)}.{free}"
    free_times = [{"start": _written(each[0]), "end": _written(each[1])} for each in gaps]
    return _result(found, said + note, free=not busy and found.is_whole, free_times=free_times)


def spoken_list(names: Sequence[str], more: int = 0) -> str:
    """Return names as they are said, with how many `more` there are."""
    shown = [*names, f"{more} more"] if more > 0 else list(names)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _ahead(span: When, today: date) -> str:
    is_year = span.end - span.start > A_YEAR
    return "in the next year" if is_year else said_span(span.start, span.end, today)


def _matching(about: str, events: Sequence[CalendarEvent]) -> list[CalendarEvent]:
    """Return the events that have all the words that were asked for, else those with some."""
    wanted = frozenset(map(stem, words(about))) - COMMON
    said = [frozenset(map(stem, words(f"{event.title} {event.place}"))) for event in events]
    known = list(zip(events, said, strict=True))
    whole = [event for event, names in known if wanted and wanted <= names]
    return whole or [event for event, names in known if wanted & names]


def _some(names: Sequence[str]) -> str:
    return spoken_list(names[:IN_THE_WAY_MAX], len(names) - IN_THE_WAY_MAX)


def _with_day(event: CalendarEvent, today: date) -> str:
    return f"{event.title} {said_when(event, today)}"


def _is_one_day(start: datetime, end: datetime) -> bool:
    return max(start, end - timedelta(seconds=1)).date() == start.date()


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")


def _result(found: FoundEvents, said: str, **more: Any) -> VerbatimResult:
    shown = found.events[:RECORDS_MAX]
    value: dict[str, Any] = {**more, "events": [event.as_record() for event in shown]}
    if len(found.events) > len(shown):
        value["more_events"] = len(found.events) - len(shown)
    if found.unread:
        value["not_reached"] = list(found.unread)
        said += f" I can't reach {spoken_list(found.unread)} right now."
    if found.too_large:
        value["not_read"] = list(found.too_large)
        said = " ".join([said, *found.too_large])
    return VerbatimResult(value, said)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
