"""JSON that remembers its lines, so that a complaint about a key can say where the key stands.

Besides plain JSON it reads `//` and `/* */` comments, which editors allow in such files. It is
stricter in one thing: a key that stands twice in one object is an error, because one of the two
would be lost.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

MAX_DEPTH: Final = 64
"""Levels. A file of servers needs 5; the bound keeps hostile nesting off Python's stack."""
_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


class JsonSyntaxError(ValueError):
    """The text is not JSON. `line` counts from 1; the message holds the mend."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class PositionedJson:
    value: Any
    lines: Mapping[Path, int]
    """Path of a member or an item -> the line of its key, or of the item itself."""

    def line(self, path: Path) -> int:
        """The line of `path`, or of the nearest thing around it that is in the file."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines[path]


def parse_json(text: str) -> PositionedJson:
    """Raises: JsonSyntaxError."""
    reader = _Reader(text)
    value = reader.document()
    return PositionedJson(value, reader.lines)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._scalars = json.JSONDecoder(parse_constant=_no_constant)
        self.lines: dict[Path, int] = {}

    def document(self) -> Any:
        start = self._skip(0)
        self.lines[()] = self._line(start)
        value, end = self._value(start, ())
        if (rest := self._skip(end)) < len(self._text):
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
        if opening == "[":
            return self._array(at, path)
        return self._scalar(at)

    def _object(self, at: int, path: Path) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._skip(at + 1)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                self._fail('expected a key in double quotes, or "}"', at)
            key, after = self._scalar(at)
            if key in found:
                self._fail(f"the key {key!r} stands twice; rename or remove one", at)
            self.lines[(*path, key)] = self._line(at)
            after = self._skip(after)
            if self._text[after : after + 1] != ":":
                self._fail(f"expected ':' after the key {key!r}", after)
            found[key], at = self._value(self._skip(after + 1), (*path, key))
            at = self._separator(at, "}")
        return found, at + 1

    def _array(self, at: int, path: Path) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._skip(at + 1)
        while self._text[at : at + 1] != "]":
            here = (*path, len(found))
            self.lines[here] = self._line(at)
            item, at = self._value(at, here)
            found.append(item)
            at = self._separator(at, "]")
        return found, at + 1

    def _separator(self, at: int, closing: str) -> int:
        """The start of the next member, or of `closing`."""
        at = self._skip(at)
        if self._text[at : at + 1] == closing:
            return at
        if self._text[at : at + 1] != ",":
            self._fail(f"expected ',' or '{closing}'", at)
        following = self._skip(at + 1)
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

    def _skip(self, at: int) -> int:
        matched = _SPACE.match(self._text, at)
        return matched.end() if matched else at

    def _line(self, at: int) -> int:
        return bisect_right(self._breaks, at - 1) + 1

    def _fail(self, message: str, at: int) -> NoReturn:
        raise JsonSyntaxError(message, self._line(min(at, len(self._text))))


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON; write a number or null")
