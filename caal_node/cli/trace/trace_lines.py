"""Reads a trace: a line of JSON for each event, as `caal_node.room.trace_file` writes it."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from caal_node.core.errors import ConfigError
from caal_node.room.trace_file import MAX_FILE_BYTES
from mcp_bridge.core.files import open_regular

MAX_LINE_BYTES: Final = 2 << 20
"""A line of a whole trace (`CAAL_TRACE_CONTENT`) has some texts of at most 64 Ki characters."""
MAX_BYTES: Final = MAX_FILE_BYTES + 8 * MAX_LINE_BYTES
"""The writer ends behind the lines that pass its limit."""
MAX_NUMBER: Final = 1e12
"""No time and no count of tokens is larger; what is has been made up."""
NAME_CHARS: Final = 60
"""Characters of a name that are read: no tool's is longer."""


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One event of a trace. `time_s` only grows within a session."""

    path: Path
    number: int
    session: str
    type: str
    at: datetime
    """The wall clock's time."""
    time_s: float
    """Seconds by the monotonic clock; by the wall clock where an older version wrote the line."""
    fields: Mapping[str, Any]

    def ms(self, name: str) -> float:
        """Return a field in milliseconds as seconds."""
        if (value := self.count(name)) is None:
            self._refuse(name, "a number of milliseconds")
        return value / 1000

    def optional_ms(self, name: str) -> float | None:
        value = self.count(name)
        return None if value is None else value / 1000

    def count(self, name: str) -> float | None:
        """Return a number that is not negative, or None where the line has none."""
        value = self.fields.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(name, "a number")
        if not 0 <= value <= MAX_NUMBER:
            self._refuse(name, f"a number from 0 to {MAX_NUMBER:g}")
        return value

    def flag(self, name: str) -> bool:
        value = self.fields.get(name)
        if not isinstance(value, bool):
            self._refuse(name, "true or false")
        return value

    def name(self, name: str) -> str:
        """Return a name as it can be shown: printable, and cut to NAME_CHARS."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            self._refuse(name, "a name")
        return _shown(value)

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return a list of names, or None where the line has none, as one without content may."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            self._refuse(name, "a list of names")
        return tuple(_shown(each) for each in cast("list[object]", value) if isinstance(each, str))

    def _refuse(self, name: str, wanted: str) -> NoReturn:
        _refuse(self.path, self.number, f'"{name}" of "{self.type}" is not {wanted}')


def read_trace(path: Path) -> Generator[TraceLine]:
    """Yield the lines of a trace, which is read piece by piece.

    Raises:
        ConfigError: the file cannot be read, is too long, or holds what is no line of a trace.
    """
    try:
        file = open_regular(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that CAAL_TRACE wrote") from None
    with closing(file):
        number = size = 0
        while data := file.readline(MAX_LINE_BYTES + 1):
            number, size = number + 1, size + len(data)
            if len(data) > MAX_LINE_BYTES:
                _refuse(path, number, f"it has more than {MAX_LINE_BYTES >> 20} MiB")
            if size > MAX_BYTES:
                raise ConfigError(
                    f"{path}: larger than {MAX_BYTES >> 20} MiB, and no trace is. Is it the right "
                    "file? Traces can be cut between any two lines"
                )
            if data.strip():
                yield _line(path, number, data)


def _line(path: Path, number: int, data: bytes) -> TraceLine:
    try:
        value = json.loads(data.decode(), parse_constant=_no_number)
    except RecursionError:
        _refuse(path, number, "it is nested too deeply")
    except ValueError:  # what is no UTF-8 as well
        _refuse(path, number, "it is no whole JSON, as where a write was cut off")
    if not isinstance(value, dict):
        _refuse(path, number, "it is no JSON object")
    fields = cast("dict[str, Any]", value)
    kind, session = fields.get("type"), fields.get("session")
    if not isinstance(kind, str) or not isinstance(session, str):
        _refuse(path, number, 'it lacks "type" or "session"')
    try:
        at = datetime.fromisoformat(fields.get("at", ""))
        time_s = fields.get("mono_s", at.timestamp())
    except (TypeError, ValueError, OverflowError, OSError):
        _refuse(path, number, 'its "at" is no time, such as "2026-11-23T12:00:00.250+00:00"')
    if isinstance(time_s, bool) or not isinstance(time_s, int | float):
        _refuse(path, number, '"mono_s" is not a number of seconds')
    if not -MAX_NUMBER <= time_s <= MAX_NUMBER:
        _refuse(path, number, f'"mono_s" is not between -{MAX_NUMBER:g} and {MAX_NUMBER:g}')
    return TraceLine(path, number, _shown(session), _shown(kind), at, float(time_s), fields)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else "·" for c in name[:NAME_CHARS])


def _refuse(path: Path, number: int, what: str) -> NoReturn:
    raise ConfigError(
        f"{path}, line {number}: {what}. Delete that line, if the file is a trace of CAAL_TRACE; "
        "the others can be read without it"
    )
