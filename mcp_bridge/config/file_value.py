"""A value in the file of servers, where it stands, and what may be read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, cast

from mcp_bridge.config.json_positions import Path, PositionedJson
from mcp_bridge.core.errors import ConfigError

MAX_TIMEOUT_S: Final = 3600.0
"""An hour. Larger numbers are milliseconds written where seconds are read."""


@dataclass(frozen=True, slots=True)
class FileValue:
    """A value in the file, and where it stands: what a complaint needs."""

    file: str
    document: PositionedJson
    path: Path

    @property
    def value(self) -> Any:
        value = self.document.value
        for step in self.path:
            value = value[step]
        return value

    def __truediv__(self, step: str | int) -> FileValue:
        return FileValue(self.file, self.document, (*self.path, step))

    def refuse(self, message: str) -> NoReturn:
        """Raises: ConfigError, with this place's file, line and key."""
        key = ".".join(str(step) for step in self.path)
        raise ConfigError(
            message, file=self.file, line=self.document.line(self.path), key=key or "(top)"
        )

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.refuse(f"is {_kind(self.value)}; write a text in double quotes")
        if "\0" in self.value:
            self.refuse("holds a NUL character; remove it")
        return self.value

    def filled(self) -> str:
        """A text of at least one visible character."""
        if not self.text().strip():
            self.refuse("is empty; write it, or remove the entry")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.refuse(f"is {_kind(self.value)}; write true or false")
        return self.value

    def seconds(self) -> float:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            self.refuse("is no number of seconds; write one above 0, for example 20")
        if value > MAX_TIMEOUT_S:
            self.refuse(f"is over {MAX_TIMEOUT_S:.0f} seconds; write seconds, not milliseconds")
        return float(value)

    def members(self) -> Mapping[str, Any]:
        value = self.value
        if not isinstance(value, dict):
            self.refuse(f"is {_kind(value)}; write an object in braces")
        return cast("Mapping[str, Any]", value)

    def items(self) -> tuple[FileValue, ...]:
        value = self.value
        if not isinstance(value, list):
            self.refuse(f"is {_kind(value)}; write a list in brackets")
        return tuple(self / index for index in range(len(cast("list[Any]", value))))


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
