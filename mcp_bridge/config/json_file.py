"""JSON that remembers its lines, which no library's reader tells.

Besides plain JSON this reads what editors allow in such files: `//` and `/* */` comments, and a
comma before a closing bracket. A key that stands twice in one object is noted, because one of the
two is lost.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from mcp_bridge.config.document import MAX_DEPTH, Document, DocumentSyntaxError, Path

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
