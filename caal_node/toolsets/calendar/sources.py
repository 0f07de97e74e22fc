"""Where events are: a calendar on a CalDAV server, an .ics file, or an .ics address."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Final, Protocol

from caal_node.core.errors import ToolBroke, ToolFailure
from caal_node.toolsets.calendar.calendar_event import CalendarEvent
from caal_node.toolsets.calendar.dav_xml import events_query
from caal_node.toolsets.calendar.http_requests import CalendarRequests, host_of, refused
from caal_node.toolsets.calendar.ics_process import BYTES_MAX, read_events, too_long
from caal_node.toolsets.calendar.ics_writer import NewEvent, calendar_of, with_event
from caal_node.toolsets.edited_file import change_text
from mcp_bridge.core.files import open_regular

ADDED_TO_BYTES_MAX: Final = 8_000_000
"""Bytes of a file that new events go into: it is copied some times, each in one step of C."""
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

        body = answer.body
        return await read_events("dav", body, len(body), start, end, zone, self.name)

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
        try:
            file = await asyncio.to_thread(open_regular, self._path)
        except FileNotFoundError:
            return []  # nothing was added yet
        except OSError as error:
            raise self._broken(error) from error
        try:
            size = os.fstat(file.fileno()).st_size
            return await read_events("ics", file, size, start, end, zone, self.name)
        finally:
            await asyncio.to_thread(file.close)

    async def add(self, event: NewEvent) -> None:
        def edit(text: str | None) -> tuple[str, None]:
            return with_event(text.encode() if text else None, event).decode(), None

        def change() -> None:
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_size > ADDED_TO_BYTES_MAX:
                    raise too_long(self.name, ADDED_TO_BYTES_MAX)
            change_text(self._path, edit, BYTES_MAX)

        try:
            await asyncio.to_thread(change)
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
        self._body, self._etag, self._read_at = b"", "", float("-inf")

    async def events(self, start: datetime, end: datetime, zone: tzinfo) -> list[CalendarEvent]:
        body = await self._present()
        return await read_events("ics", body, len(body), start, end, zone, self.name)

    async def add(self, event: NewEvent) -> None:
        raise ToolBroke(f"The calendar {self.name} at {host_of(self._address)} is read-only.")

    async def _present(self) -> bytes:
        if self._clock() - self._read_at < FRESH_S:
            return self._body
        headers = {"If-None-Match": self._etag} if self._etag else {}
        answer = await self._requests.ask("GET", self._address, headers=headers)
        if answer.status == 200:
            self._body, self._etag = answer.body, answer.etag
        elif answer.status != 304:
            raise refused(answer, f"the calendar {self.name}")
        self._read_at = self._clock()
        return self._body
