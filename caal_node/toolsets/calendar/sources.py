"""Where events are: a calendar on a CalDAV server, an .ics file, or an .ics address."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Final, Protocol

from caal_node.core.errors import ToolBroke, ToolFailure
from caal_node.toolsets.calendar.calendar_event import CalendarEvent
from caal_node.toolsets.calendar.dav_xml import entries_in, events_query
from caal_node.toolsets.calendar.http_requests import CalendarRequests, host_of, refused
from caal_node.toolsets.calendar.ics_reader import events_in
from caal_node.toolsets.calendar.ics_writer import NewEvent, calendar_of, with_event
from caal_node.toolsets.edited_file import change_file
from mcp_bridge.core.files import read_capped

FILE_MAX_BYTES: Final = 20_000_000
FRESH_S: Final = 300.0
"""Seconds for which what an address gave is read again without asking: calendars that are published
change every few hours, and people ask several things at a time."""
_XML: Final = {"Content-Type": "application/xml; charset=utf-8", "Depth": "1"}
_ICS: Final = {"Content-Type": "text/calendar; charset=utf-8", "If-None-Match": "*"}


class CalendarSource(Protocol):
    """One calendar, by the name that people call it.

    Raises:
        ToolFailure: from its methods, where it cannot be read or written.
    """

    @property
    def name(self) -> str: ...

    @property
    def is_writable(self) -> bool: ...

    async def events(self, start: datetime, end: datetime, zone: tzinfo) -> list[CalendarEvent]:
        """Return its events that are on between two moments, in order."""
        ...

    async def add(self, event: NewEvent) -> None:
        """Put a new event into it."""
        ...


class DavCalendar:
    """A calendar on a CalDAV server, of which only the events of a span are fetched."""

    def __init__(
        self, name: str, address: str, requests: CalendarRequests, *, is_writable: bool = True
    ) -> None:
        self.name: Final = name
        self.is_writable: Final = is_writable
        self._address: Final = address.rstrip("/") + "/"
        self._requests: Final = requests

    async def events(self, start: datetime, end: datetime, zone: tzinfo) -> list[CalendarEvent]:
        query = events_query(start, end)
        answer = await self._requests.ask("REPORT", self._address, query, _XML)
        if answer.status != 207:
            raise refused(answer, f"the calendar {self.name}")

        def read() -> list[CalendarEvent]:
            try:
                texts = [entry.events for entry in entries_in(answer.body) if entry.events]
            except ValueError as error:
                raise ToolBroke(f"The calendar {self.name} cannot be read: {error}.") from error
            return events_in(texts, start, end, zone, self.name)

        return await asyncio.to_thread(read)

    async def add(self, event: NewEvent) -> None:
        address = f"{self._address}{event.uid}.ics"
        text = await asyncio.to_thread(calendar_of, event)
        try:
            answer = await self._requests.ask("PUT", address, text, _ICS)
        except ToolFailure:
            # The answer may be all that was lost.
            if (await self._requests.ask("GET", address)).status == 200:
                return
            raise
        if answer.status not in (200, 201, 204):
            raise refused(answer, f"the calendar {self.name}")


class IcsFile:
    """A calendar in a file, which other programs may change at the same time."""

    is_writable = True

    def __init__(self, name: str, path: Path) -> None:
        self.name: Final = name
        self._path: Final = path

    async def events(self, start: datetime, end: datetime, zone: tzinfo) -> list[CalendarEvent]:
        def read() -> list[CalendarEvent]:
            try:
                data = read_capped(self._path, FILE_MAX_BYTES)
            except FileNotFoundError:
                return []  # nothing was added yet
            except (OSError, ValueError) as error:
                raise self._broken(error) from error
            return events_in([_decoded(data)], start, end, zone, self.name)

        return await asyncio.to_thread(read)

    async def add(self, event: NewEvent) -> None:
        def edit(data: bytes | None) -> tuple[bytes, None]:
            return with_event(data, event), None

        try:
            await asyncio.to_thread(change_file, self._path, edit, FILE_MAX_BYTES)
        except (OSError, ValueError) as error:
            raise self._broken(error) from error

    def _broken(self, error: OSError | ValueError) -> ToolBroke:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        failure = ToolBroke(f"The calendar file {self._path.name} cannot be used: {why}.")
        failure.words = f"I can't use the calendar {self.name} right now."
        return failure


class IcsAddress:
    """A calendar that is published at an address, to be read alone."""

    is_writable = False

    def __init__(
        self,
        name: str,
        address: str,
        requests: CalendarRequests,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name: Final = name
        self._address: Final = address
        self._requests: Final = requests
        self._clock: Final = clock
        self._text, self._etag, self._read_at = "", "", float("-inf")

    async def events(self, start: datetime, end: datetime, zone: tzinfo) -> list[CalendarEvent]:
        text = await self._present()
        return await asyncio.to_thread(events_in, [text], start, end, zone, self.name)

    async def add(self, event: NewEvent) -> None:
        raise ToolBroke(f"The calendar {self.name} at {host_of(self._address)} is read-only.")

    async def _present(self) -> str:
        if self._clock() - self._read_at < FRESH_S:
            return self._text
        headers = {"If-None-Match": self._etag} if self._etag else {}
        answer = await self._requests.ask("GET", self._address, headers=headers)
        if answer.status == 200:
            self._text, self._etag = _decoded(answer.body), answer.etag
        elif answer.status != 304:
            raise refused(answer, f"the calendar {self.name}")
        self._read_at = self._clock()
        return self._text


def _decoded(data: bytes) -> str:
    # Old programs write Latin-1; a letter that is wrong is better than no calendar.
    return data.decode("utf-8-sig", errors="replace")
