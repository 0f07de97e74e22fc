"""What is asked of a CalDAV server, and what its answers say, as XML (RFC 4918 and 4791)."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false
# lxml says no types.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from lxml import etree

NAMES: Final = {"d": "DAV:", "c": "urn:ietf:params:xml:ns:caldav"}
_UTC: Final = "%Y%m%dT%H%M%SZ"
FIND_CALENDARS: Final = (
    b'<?xml version="1.0" encoding="utf-8"?>'
    b'<d:propfind xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:prop>'
    b"<d:resourcetype/><d:displayname/><d:current-user-principal/><c:calendar-home-set/>"
    b"<c:supported-calendar-component-set/><d:current-user-privilege-set/>"
    b"</d:prop></d:propfind>"
)
_EVENTS: Final = (
    '<?xml version="1.0" encoding="utf-8"?>'
    '<c:calendar-query xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">'
    "<d:prop><c:calendar-data/></d:prop>"
    '<c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT">'
    '<c:time-range start="{start}" end="{end}"/>'
    "</c:comp-filter></c:comp-filter></c:filter></c:calendar-query>"
)
_WRITES: Final = frozenset({"all", "write", "write-content", "bind"})


@dataclass(frozen=True, slots=True)
class DavEntry:
    """What a server says of one address."""

    address: str
    """As the server wrote it: whole, or from the host on."""
    name: str = ""
    principal: str = ""
    """Where the person's own entry is, if it says so."""
    home: str = ""
    """Where the person's calendars are, if it says so."""
    is_calendar: bool = False
    """Whether it is a calendar that may hold events."""
    is_writable: bool = True
    """Whether the person may put events there; so where the server says nothing of it."""
    events: str = ""
    """The iCalendar text, where that was asked for."""


def events_query(start: datetime, end: datetime) -> bytes:
    """Return the question for all events that are on between two moments."""
    return _EVENTS.format(
        start=start.astimezone(UTC).strftime(_UTC), end=end.astimezone(UTC).strftime(_UTC)
    ).encode()


def entries_in(answer: bytes) -> list[DavEntry]:
    """Read a server's answer to either question.

    Raises:
        ValueError: it is no such answer.
    """
    # Entities could name files, or unfold to any size.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(answer, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError("the answer is no XML") from error
    if root.tag != "{DAV:}multistatus":
        raise ValueError("the answer is none of a CalDAV server")
    return [_entry(response) for response in root.iterfind("d:response", NAMES)]


def _entry(response: Any) -> DavEntry:
    properties = list(_properties(response))

    def text(path: str) -> str:
        found = (each.findtext(path, "", NAMES) for each in properties)
        return next((each.strip() for each in found if each and each.strip()), "")

    def has(path: str) -> bool:
        return any(each.find(path, NAMES) is not None for each in properties)

    components = {
        str(each.get("name", "")).upper()
        for found in properties
        for each in found.iterfind("c:supported-calendar-component-set/c:comp", NAMES)
    }
    privileges = {
        etree.QName(each).localname
        for found in properties
        for each in found.iterfind("d:current-user-privilege-set/d:privilege/*", NAMES)
    }
    return DavEntry(
        (response.findtext("d:href", "", NAMES) or "").strip(),
        text("d:displayname"),
        text("d:current-user-principal/d:href"),
        text("c:calendar-home-set/d:href"),
        has("d:resourcetype/c:calendar") and (not components or "VEVENT" in components),
        not privileges or not _WRITES.isdisjoint(privileges),
        text("c:calendar-data"),
    )


def _properties(response: Any) -> Iterator[Any]:
    """Yield the properties that the server has; it lists those that it lacks as well."""
    for found in response.iterfind("d:propstat", NAMES):
        status = found.findtext("d:status", "", NAMES) or ""
        if not status or " 2" in status[:12]:
            yield from found.iterfind("d:prop", NAMES)
