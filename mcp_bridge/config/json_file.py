"""JSON that remembers its lines, so that a complaint about a value can say where the value stands.

Besides plain JSON this reads `//` and `/* */` comments, which editors allow in such files. It is
stricter in one thing: a key that stands twice in one object is an error, because one of the two
would be lost.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias, cast

from mcp_bridge.core.errors import ConfigError

Path: TypeAlias = tuple[str | int, ...]

MAX_DEPTH: Final = 64
"""Levels of nesting. A file of servers needs 5; the bound keeps hostile nesting off Python's
stack."""
_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


class JsonSyntaxError(ValueError):
    """The text is not JSON. `line` counts from 1; the message says how to mend it."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class PositionedJson:
    """A JSON value and the lines of everything in it."""

    value: Any
    lines: Mapping[Path, int]
    """The path of each member or item, with the line of its key or of the item itself."""

    def line(self, path: Path) -> int:
        """Gives the line of `path`, or of the nearest thing around it that is in the file."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines[path]


@dataclass(frozen=True, slots=True)
class FileValue:
    """A value in the file and where it stands, which is what a complaint about it needs."""

    file: str
    document: PositionedJson
    path: Path = ()

    @property
    def value(self) -> Any:
        value = self.document.value
        for step in self.path:
            value = value[step]
        return value

    def __truediv__(self, step: str | int) -> FileValue:
        return FileValue(self.file, self.document, (*self.path, step))

    def refuse(self, message: str) -> NoReturn:
        """Raises: ConfigError, with this value's file, line and key."""
        key = ".".join(str(step) for step in self.path)
        line = self.document.line(self.path)
        raise ConfigError(message, file=self.file, line=line, key=key or "(top)")

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


def kind_of(value: Any) -> str:
    """Names the kind of a JSON value, with its article."""
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


def parse_json(text: str) -> PositionedJson:
    """Raises: JsonSyntaxError."""
    parser = _Parser(text)
    value = parser.document()
    return PositionedJson(value, parser.lines)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._scalars = json.JSONDecoder(parse_constant=_refuse_constant)
        self.lines: dict[Path, int] = {}

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
                self._fail(f"the key {key!r} stands twice; rename or remove one", at)
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
        following = self._skip_space(at + 1)
        if self._text[following : following + 1] == closing:
            self._fail(f"a comma stands before '{closing}'; remove the comma", at)
        return following

    def _scalar(self, at: int) -> tuple[Any, int]:
        try:
            return self._scalars.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            self._fail(f"{error.msg.lower()}; mend the JSON here", error.pos)
        except ValueError as error:  # NaN and Infinity; an integer of thousands of digits
            self._fail(str(error), at)

    def _skip_space(self, at: int) -> int:
        matched = _SPACE.match(self._text, at)
        return matched.end() if matched else at

    def _line(self, at: int) -> int:
        return bisect_right(self._breaks, at - 1) + 1

    def _fail(self, message: str, at: int) -> NoReturn:
        raise JsonSyntaxError(message, self._line(min(at, len(self._text))))


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON; write a number or null")
