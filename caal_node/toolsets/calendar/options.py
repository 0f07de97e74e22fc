"""What `[toolsets.calendar]` of caal.toml may say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from caal_node.core.paths import from_home
from caal_node.toolsets.base import BASE, ToolsetOptions

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
