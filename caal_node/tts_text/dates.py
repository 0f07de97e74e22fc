"""Dates and times that only a machine or a form writes. `8:00 PM` is said well as it is."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.output_buffer import Before
from caal_node.tts_text.spoken_forms import Wording

_ISO: Final = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[Tt](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
    r"(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?)?)?"
)
_SLASHES: Final = re.compile(r"(\d{1,2})/(\d{1,2})(?:/(\d{4}))?")
_CLOCKS: Final = re.compile(
    r"(\d{1,2}:\d\d(?:[ap]m)?|\d{1,2}[ap]m)[-–](\d{1,2}:\d\d(?:[ap]m)?|\d{1,2}[ap]m)", re.IGNORECASE
)


def spoken_date(core: str, before: Before, wording: Wording) -> str | None:
    """What is said for `core`; None where it is no date, or could be two of them."""
    if iso := _ISO.fullmatch(core):
        return _iso(iso, wording)
    if clocks := _CLOCKS.fullmatch(core):
        return wording.phrase("range", low=clocks[1], high=clocks[2])
    if slashes := _SLASHES.fullmatch(core):
        a, b, year = int(slashes[1]), int(slashes[2]), slashes[3] or ""
        if not year and (before.word not in wording.date_after or b <= 12):
            return None
        if a <= 12 < b or (a == b and year):
            return _day(year, a, b, wording)
        if b <= 12 < a and year:
            return _day(year, b, a, wording)
    return None


def _iso(iso: re.Match[str], wording: Wording) -> str | None:
    date = _day(iso["year"], int(iso["month"]), int(iso["day"]), wording)
    if date is None or iso["hour"] is None:
        return date
    hour, minute = int(iso["hour"]), int(iso["minute"])
    if hour > 24 or minute > 59:
        return None
    clock = f"{hour}:{iso['minute']}"
    if iso["second"] not in (None, "00"):
        clock += f":{iso['second']}"
    if zone := _zone(iso["zone"] or "", wording):
        clock += f" {zone}"
    return wording.phrase("time", date=date, time=clock)


def _zone(zone: str, wording: Wording) -> str:
    if not zone:
        return ""
    hours = int(zone[1:3] or 0)
    minutes = int(zone[3:].strip(":") or 0)
    if not (hours or minutes):
        return wording.phrases["zone"]
    offset = f"{hours}:{minutes:02}" if minutes else str(hours)
    return wording.phrase("zone_plus" if zone[0] == "+" else "zone_minus", offset=offset)


def _day(year: str, month: int, day: int, wording: Wording) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    name = wording.months[month - 1]
    if not year:
        return wording.phrase("day", month=name, day=str(day))
    return wording.phrase("date", month=name, day=str(day), year=year)
