"""Reads a service's JSON, and ends where it holds more than any service has to say.

Python's own reader builds a whole text before anything can be counted, and keeps the interpreter to
itself meanwhile, in a thread too. A long text is read value by value here, and what was read of it
is freed value by value, in the thread of whoever calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

AT_ONCE_CHARS: Final = 65_536
"""A longer text is read value by value: this much takes a millisecond at once."""
VALUES_MAX: Final = 200_000
"""Values of one long text: Home Assistant's registry of six thousand devices has as many. They take
half a second in a thread, and 30 MB."""
DEPTH_MAX: Final = 32
"""Lists and objects within each other; Home Assistant's have six."""
_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class TooLarge(ValueError):
    """A text holds more than is read."""


def read_json(text: str) -> Any:
    """Return the value that a text is.

    Raises:
        TooLarge: it has more values, or more of them within each other, than is read.
        ValueError: it is no JSON.
        RecursionError: it is short, and nothing but lists within each other.
    """
    return json.loads(text) if len(text) <= AT_ONCE_CHARS else _Reader(text).read()


def read_object(text: str) -> Mapping[str, Any]:
    """Return the object that a text is; what is no object is an empty one. It raises the same."""
    found = read_json(text)
    if isinstance(found, dict):
        return cast("Mapping[str, Any]", found)
    let_go(found)
    return {}


def let_go(value: object) -> None:
    """Empty the lists and objects of a JSON value that nobody needs any more, one after the other.

    A hundred thousand of them that are freed at once would keep the interpreter for 20 ms.
    """
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            found = cast("dict[str, object]", each)
            left.extend(found.values())
            found.clear()
        elif isinstance(each, list):
            rows = cast("list[object]", each)
            left.extend(rows)
            rows.clear()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._at = 0
        self._left = VALUES_MAX
        self._begun: Final = list[object]()
        """The lists and objects whose ends are not read yet."""

    def read(self) -> Any:
        try:
            value = self._value(0)
            self._begun.append(value)
            self._skip_space()
            if self._at < len(self._text):
                raise ValueError("there is something behind it")
        except ValueError:
            let_go(self._begun)
            raise
        return value

    def _value(self, depth: int) -> Any:
        self._skip_space()
        self._left -= 1
        if self._left < 0 or depth > DEPTH_MAX:
            raise TooLarge("it holds too much")
        match self._text[self._at : self._at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case _:
                return self._scalar()

    def _scalar(self) -> Any:
        value, self._at = _DECODER.raw_decode(self._text, self._at)
        return value

    def _object(self, depth: int) -> dict[str, Any]:
        found = dict[str, Any]()
        self._begun.append(found)
        self._at += 1
        while not self._ends("}", first=not found):
            key = self._scalar() if self._text.startswith('"', self._at) else None
            self._skip_space()
            if not isinstance(key, str) or not self._text.startswith(":", self._at):
                raise ValueError("a member has no name")
            self._at += 1
            found[key] = self._value(depth + 1)
        self._begun.pop()
        return found

    def _list(self, depth: int) -> list[Any]:
        found = list[Any]()
        self._begun.append(found)
        self._at += 1
        while not self._ends("]", first=not found):
            found.append(self._value(depth + 1))
        self._begun.pop()
        return found

    def _ends(self, bracket: str, *, first: bool) -> bool:
        """Take the bracket, or the comma that stands before each value but the first."""
        self._skip_space()
        char = self._text[self._at : self._at + 1]
        if char == bracket:
            self._at += 1
            return True
        if not first:
            if char != ",":
                raise ValueError("there is no comma")
            self._at += 1
            self._skip_space()
        return False

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space is not None else self._at
