"""All calendars that the options name, found at their first use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from caal_node.core.errors import InvalidArguments, ToolBroke, ToolFailure
from caal_node.policy.heard_words import words
from caal_node.toolsets.calendar.calendar_event import CalendarEvent, in_order
from caal_node.toolsets.calendar.dav_xml import FIND_CALENDARS, DavEntry, entries_in
from caal_node.toolsets.calendar.http_requests import (
    CalendarRequests,
    LongAnswer,
    host_of,
    refused,
    same_domain,
)
from caal_node.toolsets.calendar.ics_process import too_long
from caal_node.toolsets.calendar.ics_text import TooManyEvents
from caal_node.toolsets.calendar.options import CalendarOptions
from caal_node.toolsets.calendar.sources import CalendarSource, DavCalendar, IcsAddress, IcsFile

# Finds a person's calendars on a CalDAV server (RFC 4791 and 6764).

CALENDARS_MAX: Final = 30
"""Calendars of one account that are read."""
ACCOUNT_BYTES_MAX: Final = 1 << 20
"""Bytes of a list of calendars: some five hundred."""
_WELL_KNOWN: Final = "/.well-known/caldav"
_ELSEWHERE: Final = frozenset({400, 404, 405, 501})
"""How servers answer where they have no calendars."""


async def find_calendars(address: str, requests: CalendarRequests) -> list[DavCalendar]:
    """Return the calendars that an address leads to: its own, or all of the person's.

    The address may be that of the server, of the person's calendars, or of one calendar.

    Raises:
        ToolFailure: the server cannot be reached, does not let the person in, or has none.
    """
    here, entries = await _look(address, "0", requests)
    if not entries:
        here, entries = await _look(urljoin(address, _WELL_KNOWN), "0", requests)
    if not entries:
        raise _none(address)
    entry = entries[0]
    if entry.is_calendar:
        return _calendars(here, [entry], requests)
    if not entry.home and entry.principal:
        here, entries = await _look(same_domain(here, entry.principal), "0", requests)
        entry = entries[0] if entries else entry
    # Without a word of where the calendars are, they are looked for right here.
    home = same_domain(here, entry.home) if entry.home else here
    here, entries = await _look(home, "1", requests)
    found = _calendars(here, entries, requests)
    if not found:
        raise _none(address)
    return found


async def _look(address: str, depth: str, requests: CalendarRequests) -> tuple[str, list[DavEntry]]:
    """Return where the answer came from in the end, and what is there; nothing for a 404."""
    headers = {"Content-Type": "application/xml; charset=utf-8", "Depth": depth}
    answer = await requests.ask("PROPFIND", address, FIND_CALENDARS, headers)
    if answer.status in _ELSEWHERE:
        return answer.address, []
    if answer.status != 207:
        raise refused(answer, "the calendars")
    if len(answer.body) > ACCOUNT_BYTES_MAX:
        raise ToolBroke(f"{host_of(address)} lists too much; write the address of one calendar.")
    try:
        return answer.address, await asyncio.to_thread(entries_in, answer.body)
    except ValueError as error:
        raise ToolBroke(f"{host_of(address)} is no CalDAV server: {error}.") from error


def _calendars(
    address: str, entries: list[DavEntry], requests: CalendarRequests
) -> list[DavCalendar]:
    calendars = [entry for entry in entries if entry.is_calendar]
    # Servers list them in any order, and "the first" is to be the same one tomorrow.
    calendars = sorted(calendars, key=lambda entry: entry.name.casefold())[:CALENDARS_MAX]
    return [
        DavCalendar(
            entry.name or entry.address.rstrip("/").rpartition("/")[2] or "calendar",
            same_domain(address, entry.address),
            requests,
            is_writable=entry.is_writable,
        )
        for entry in calendars
    ]


def _none(address: str) -> ToolBroke:
    return ToolBroke(f"{host_of(address)} has no calendars at that address.")


ACCOUNT: Final = "your calendars"
"""What the account is called where it cannot be reached, as nobody knows its calendars then."""
_NEAR: Final = 0.75
_LEFT_OUT: Final = frozenset({"my", "our", "the", "calendar", "calendars", "all"})


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """The events of a span, and which calendars are not among them."""

    events: tuple[CalendarEvent, ...]
    unread: tuple[str, ...] = ()
    """Those that could not be reached."""
    too_large: tuple[str, ...] = ()
    """A sentence for each that has more than is read, with what helps."""

    @property
    def is_whole(self) -> bool:
        return not self.unread and not self.too_large


class KnownCalendars:
    """The calendars of one household. Its connections are closed by `aclose`."""

    def __init__(self, options: CalendarOptions) -> None:
        self._options: Final = options
        self._account: Final = CalendarRequests(
            options.username, options.password.get_secret_value()
        )
        self._public: Final = CalendarRequests()
        self._others: Final[list[CalendarSource]] = [
            *(IcsFile(each.name, Path(each.place)) for each in options.file_places),
            *(IcsAddress(each.name, each.place, self._public) for each in options.published),
        ]
        self._of_account: list[CalendarSource] | None = None if options.url else []
        self._finding = asyncio.Lock()

    async def all(self) -> list[CalendarSource]:
        """Return every calendar.

        Raises:
            ToolFailure: the account cannot be read; what it has is not known then.
        """
        async with self._finding:
            if self._of_account is None:
                found = await find_calendars(self._options.url, self._account)
                wanted = [name.casefold() for name in self._options.calendars]
                self._of_account = [
                    each for each in found if not wanted or each.name.casefold() in wanted
                ]
                missing = set(wanted) - {each.name.casefold() for each in found}
                if missing:
                    self._of_account = None
                    names = ", ".join(each.name for each in found)
                    raise ToolBroke(
                        f"There is no calendar {min(missing)} in the account; there are {names}."
                    )
        return [*self._of_account, *self._others]

    async def named(self, name: str) -> list[CalendarSource]:
        """Return the calendars of a name, in people's words; all of them for none.

        Raises:
            InvalidArguments: there is none of that name.
        """
        if not (wanted := _compared(name)):
            return await self.all()
        # One that is not on the account can be found while the account is away.
        if found := [each for each in self._others if _compared(each.name) == wanted]:
            return found
        known = await self.all()
        by_name = {_compared(each.name): each for each in known}
        near = [key for key in by_name if set(wanted.split()) & set(key.split())]
        near = near if len(near) == 1 else get_close_matches(wanted, by_name, 1, _NEAR)
        if wanted in by_name or near:
            return [by_name.get(wanted) or by_name[near[0]]]
        names = ", ".join(each.name for each in known)
        failure = InvalidArguments(f"There is no calendar {name!r}; there are: {names}.")
        failure.words = f"There is no calendar of that name. There are: {names}."
        raise failure

    async def to_write(self, name: str) -> CalendarSource:
        """Return the calendar that a new event goes into.

        Raises:
            ToolFailure: there is none of that name, or it can only be read.
        """
        sources = await self.named(name or self._options.add_to)
        writable = [each for each in sources if each.is_writable]
        if not writable:
            failure = ToolBroke(f"{sources[0].name if sources else 'The calendar'} is read-only.")
            failure.words = "That calendar can only be read."
            raise failure
        return writable[0]

    async def events(self, name: str, start: datetime, end: datetime, zone: tzinfo) -> FoundEvents:
        """Return the events between two moments, of one calendar by name or of all.

        Raises:
            ToolFailure: no calendar could be read.
        """
        unread = list[str]()
        failures = list[ToolFailure]()
        sources: Sequence[CalendarSource]
        try:
            sources = await self.named(name)
        except InvalidArguments:
            raise
        except ToolFailure as failure:
            if not self._others or _compared(name):
                raise
            sources, unread, failures = self._others, [ACCOUNT], [failure]
        found = await asyncio.gather(*(_read(each, start, end, zone) for each in sources))
        events = list[CalendarEvent]()
        too_large = list[str]()
        for source, result in zip(sources, found, strict=True):
            if isinstance(result, TooManyEvents):
                too_large.append(result.words or str(result))
                failures.append(result)
            elif isinstance(result, ToolFailure):
                unread.append(source.name)
                failures.append(result)
            else:
                events += result
        if failures and len(failures) == len(sources) + (ACCOUNT in unread):
            raise failures[0]
        ordered = await asyncio.to_thread(sorted, events, key=in_order)
        return FoundEvents(tuple(ordered), tuple(unread), tuple(too_large))

    async def aclose(self) -> None:
        await self._account.aclose()
        await self._public.aclose()


async def _read(
    source: CalendarSource, start: datetime, end: datetime, zone: tzinfo
) -> list[CalendarEvent] | ToolFailure:
    try:
        return await source.events(start, end, zone)
    except LongAnswer:
        return too_long(source.name)
    except ToolFailure as failure:
        return failure


def _compared(name: str) -> str:
    return " ".join(word for word in words(name) if word not in _LEFT_OUT)
