"""All calendars that the options name, found at their first use."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Protocol, cast
from urllib.parse import unquote, urljoin, urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from caal_node.core.errors import InvalidArguments, ToolBroke, ToolFailure
from caal_node.core.paths import from_home
from caal_node.policy.heard_words import words
from caal_node.toolsets.base import BASE, ToolsetOptions
from caal_node.toolsets.calendar.dav_xml import FIND_CALENDARS, DavEntry, entries_in, events_query
from caal_node.toolsets.calendar.http_requests import (
    CalendarRequests,
    LongAnswer,
    host_of,
    refused,
    same_domain,
)
from caal_node.toolsets.calendar.ics_events import (
    CalendarEvent,
    NewEvent,
    TooManyEvents,
    calendar_of,
    in_order,
    with_event,
)
from caal_node.toolsets.calendar.ics_process import BYTES_MAX, read_events, too_long
from caal_node.toolsets.edited_file import change_text
from mcp_bridge.core.files import open_regular

# What `[toolsets.calendar]` of caal.toml may say.

OWN_FILE: Final = "calendar.ics"
"""The file of events for those who name no calendar."""
_SCHEMES: Final = ("http://", "https://", "webcal://", "webcals://")
_BETWEEN: Final = re.compile(
    r"(?:(?:(?<!\s)\s++)?[,;]\s*+|\n)(?=(?:[^,;=:/\n]{1,40}=\s*)?(?:https?|webcals?)://)"
)


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A calendar outside of an account: what it is called, and its file's path or its address."""

    name: str
    place: str


class CalendarOptions(ToolsetOptions):
    url: str = Field(
        default="",
        description="The address of your CalDAV server, or of one calendar on it (empty: none)",
    )
    username: str = Field(default="", description="Your name there")
    password: SecretStr = Field(
        default=SecretStr(""), description="Your password there, best one for this app alone"
    )
    calendars: tuple[str, ...] = Field(
        default=(), description="Which of its calendars, by name, with commas (empty: all)"
    )
    addresses: SecretStr = Field(
        default=SecretStr(""),
        description="Published calendars to read, such as Holidays=https://... (often secret)",
    )
    files: tuple[str, ...] = Field(
        default=(),
        validate_default=True,
        description="Calendar files, such as School=school.ics (nothing at all: calendar.ics)",
    )
    add_to: str = Field(
        default="",
        description="The calendar that gets new events (empty: the first that can be written)",
    )

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("write it with https://, such as https://cloud.example.org/dav")
        return value

    @field_validator("files")
    @classmethod
    def _from_base(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        base = cast("Mapping[str, Path]", info.context or {}).get(BASE, Path())
        others = (info.data.get("url"), info.data.get("addresses", SecretStr("")))
        if not value and others == ("", SecretStr("")):
            value = (OWN_FILE,)
        made: list[str] = []
        for each in value:
            name, _, path = each.rpartition("=")
            place = base / from_home(path.strip(), "files")
            made.append(f"{name.strip() or place.stem}={place}")
        return tuple(made)

    @field_validator("addresses")
    @classmethod
    def _are_addresses(cls, value: SecretStr) -> SecretStr:
        for each in _addresses(value.get_secret_value()):
            if not each.place.startswith(_SCHEMES):
                raise ValueError("write each as Name=https://..., with commas between them")
        return value

    @property
    def file_places(self) -> list[NamedPlace]:
        """The calendar files."""
        pairs = (each.partition("=") for each in self.files)
        return [NamedPlace(name, path) for name, _, path in pairs]

    @property
    def published(self) -> list[NamedPlace]:
        """The published calendars, with addresses that HTTP has."""
        return [
            NamedPlace(each.name, re.sub(r"^webcals?://", "https://", each.place))
            for each in _addresses(self.addresses.get_secret_value())
        ]


def _addresses(text: str) -> Iterator[NamedPlace]:
    lines = "\n".join(filter(None, map(str.strip, text.splitlines())))
    for each in _BETWEEN.split(lines.strip(" ,;\r\n\t")):
        if not each:
            continue
        name, equals, place = each.partition("=")
        if not equals or "://" in name:
            name, place = "", each
        try:
            path = unquote(urlsplit(place.strip()).path)
        except ValueError:
            path = ""
        stem = path.rstrip("/").rpartition("/")[2].removesuffix(".ics")
        yield NamedPlace(name.strip() or stem or "calendar", place.strip())


# Where events are: a calendar on a CalDAV server, an .ics file, or an .ics address.

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
