"""A file's values and their lines, so that a complaint about a value can say where it stands."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias, cast

from mcp_bridge.core.errors import ConfigError

# JSON that remembers its lines, which no library's reader tells.
#
# Besides plain JSON this reads what editors allow in such files: `//` and `/* */` comments, and a
# comma before a closing bracket. A key that stands twice in one object is noted, because one of the
# two is lost.

_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


def parse_json(text: str) -> Document:
    """Raises: DocumentSyntaxError."""
    parser = _Parser(text)
    value = parser.document()
    return Document(value, parser.lines, parser.twice)


def openings(text: str) -> Mapping[Path, int]:
    """Gives where every object and list begins, as places in the text.

    Raises: DocumentSyntaxError.
    """
    parser = _Parser(text)
    parser.document()
    return parser.openings


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._scalars = json.JSONDecoder(parse_constant=_refuse_constant)
        self.lines: dict[Path, int] = {}
        self.twice: dict[Path, int] = {}
        self.openings: dict[Path, int] = {}

    def document(self) -> Any:
        start = self._skip_space(0)
        self.lines[()] = self._line(start)
        value, end = self._value(start, ())
        if (rest := self._skip_space(end)) < len(self._text):
            self._fail("something follows the end of the JSON; remove it", rest)
        return value

    def _value(self, at: int, path: Path) -> tuple[Any, int]:
        if len(path) > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels; flatten it", at)
        opening = self._text[at : at + 1]
        if not opening:
            self._fail("the file ends too early; close what is open", at)
        if opening in "{[":
            self.openings[path] = at
        if opening == "{":
            return self._object(at, path)
        return self._array(at, path) if opening == "[" else self._scalar(at)

    def _object(self, at: int, path: Path) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._skip_space(at + 1)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                self._fail('expected a key in double quotes, or "}"', at)
            key, after = self._scalar(at)
            if key in found:
                self.twice.setdefault((*path, key), self.lines[(*path, key)])
            self.lines[(*path, key)] = self._line(at)
            after = self._skip_space(after)
            if self._text[after : after + 1] != ":":
                self._fail(f"expected ':' after the key {key!r}", after)
            found[key], at = self._value(self._skip_space(after + 1), (*path, key))
            at = self._separator(at, "}")
        return found, at + 1

    def _array(self, at: int, path: Path) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._skip_space(at + 1)
        while self._text[at : at + 1] != "]":
            here = (*path, len(found))
            self.lines[here] = self._line(at)
            item, at = self._value(at, here)
            found.append(item)
            at = self._separator(at, "]")
        return found, at + 1

    def _separator(self, at: int, closing: str) -> int:
        """Gives the start of the next member, or of `closing`."""
        at = self._skip_space(at)
        if self._text[at : at + 1] == closing:
            return at
        if self._text[at : at + 1] != ",":
            self._fail(f"expected ',' or '{closing}'", at)
        return self._skip_space(at + 1)

    def _scalar(self, at: int) -> tuple[Any, int]:
        try:
            return self._scalars.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            self._fail(f"{error.msg.lower()}; fix the JSON here", error.pos)
        except ValueError as error:  # NaN and Infinity; an integer of thousands of digits
            self._fail(str(error), at)

    def _skip_space(self, at: int) -> int:
        matched = _SPACE.match(self._text, at)
        return matched.end() if matched else at

    def _line(self, at: int) -> int:
        return bisect_right(self._breaks, at - 1) + 1

    def _fail(self, message: str, at: int) -> NoReturn:
        raise DocumentSyntaxError(message, self._line(min(at, len(self._text))))


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON; write a number or null")


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
