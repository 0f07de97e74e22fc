"""A file's values and their lines, so that a complaint about a value can say where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias, cast

from mcp_bridge.core.errors import ConfigError

Path: TypeAlias = tuple[str | int, ...]

MAX_DEPTH: Final = 64
"""Levels of nesting. A file of servers needs 5; the bound keeps hostile nesting off Python's
stack."""


class DocumentSyntaxError(ValueError):
    """The text cannot be read. `line` counts from 1; the message says how to fix it."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """A value, and the lines of everything in it."""

    value: Any
    lines: Mapping[Path, int]
    """The path of each member or item, with the line of its key or of the item itself."""
    twice: Mapping[Path, int] = field(default_factory=dict[Path, int])
    """Keys that stand twice in one object, with the line of the first; the last one counts."""
    written: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    """What the file calls something that goes by a name of ours here."""

    def path_in_file(self, path: Path) -> Path:
        """Gives the path that the file has for `path`."""
        for length in range(len(path), 0, -1):
            if (written := self.written.get(path[:length])) is not None:
                return (*written, *path[length:])
        return path

    def line(self, path: Path) -> int:
        """Gives the line of `path`, or of the nearest thing around it that is in the file."""
        path = self.path_in_file(path)
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines[path]


@dataclass(frozen=True, slots=True)
class FileValue:
    """A value in the file and where it stands, which is what a complaint about it needs."""

    file: str
    document: Document
    path: Path = ()

    @property
    def value(self) -> Any:
        value = self.document.value
        for step in self.path:
            value = value[step]
        return value

    @property
    def line(self) -> int:
        return self.document.line(self.path)

    def __truediv__(self, step: str | int) -> FileValue:
        return FileValue(self.file, self.document, (*self.path, step))

    def holds(self, step: str | int) -> bool:
        """Tells whether this is an object with such a member, or a list with such an item."""
        value = self.value
        if isinstance(value, list) and isinstance(step, int):
            return step < len(cast("list[Any]", value))
        return isinstance(value, dict) and step in value

    def key(self) -> str:
        """Gives the dotted path as the file has it."""
        return ".".join(str(step) for step in self.document.path_in_file(self.path))

    def refuse(self, message: str) -> NoReturn:
        """Raises: ConfigError, with this value's file, line and key."""
        raise ConfigError(message, file=self.file, line=self.line, key=self.key() or "(top)")

    def members(self) -> Mapping[str, Any]:
        """Gives the members of an object. Raises: ConfigError, where the value is none."""
        value = self.value
        if not isinstance(value, dict):
            self.refuse(f"is {kind_of(value)}; write an object in braces")
        return cast("Mapping[str, Any]", value)

    def items(self) -> tuple[FileValue, ...]:
        """Gives the items of a list. Raises: ConfigError, where the value is none."""
        value = self.value
        if not isinstance(value, list):
            self.refuse(f"is {kind_of(value)}; write a list in brackets")
        return tuple(self / index for index in range(len(cast("list[Any]", value))))

    def repeated(self) -> Iterator[FileValue]:
        """Yields the keys in this value that stand twice."""
        depth = len(self.path)
        for path in self.document.twice:
            if path[:depth] == self.path and len(path) > depth:
                yield FileValue(self.file, self.document, path)


def as_object(value: Any) -> dict[str, Any]:
    """Gives the value where it is an object, and an empty one where it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def kind_of(value: Any) -> str:
    """Names the kind of a value, with its article."""
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
        case dict():
            return "an object"
        case _:  # TOML and YAML have dates
            return "a date"
