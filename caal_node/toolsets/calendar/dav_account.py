"""Finds a person's calendars on a CalDAV server (RFC 4791 and 6764)."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urljoin

from caal_node.core.errors import ToolBroke
from caal_node.toolsets.calendar.dav_xml import FIND_CALENDARS, DavEntry, entries_in
from caal_node.toolsets.calendar.http_requests import (
    CalendarRequests,
    host_of,
    refused,
    same_domain,
)
from caal_node.toolsets.calendar.sources import DavCalendar

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
