"""Finds where the values of a JSON text begin and end, without building them.

This is a Python loop over short searches on purpose: it runs in a worker thread, and between two
steps the event loop gets its turn. A C parser would hold the interpreter's lock for the whole
of a large text (266 ms for 4 MiB of small objects, measured), thread or not.

The functions raise ValueError or IndexError where the text is no JSON; they do not find every
fault, so parse what comes out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Final

_WINDOW: Final = 16 * 1024
"""The bytes of one step, which takes under a millisecond."""
_SINGLE_STEPS: Final = 256
"""So many brackets and strings are taken one by one; a value with more is skipped by windows."""
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_MARK: Final = re.compile(rb'["\[\]{}]')
# The possessive `+` keeps a string without an end from being tried at each of its quotes.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WHOLE_STRINGS: Final = re.compile(rb'(?:[^"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_WINDOW_LEVELS: Final = 64
"""Levels of nesting inside one window. Where there are more, the steps are small again."""
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_SCALAR: Final = re.compile(rb"[^,\]}\s]+")
_QUOTE: Final = 0x22
_BACKSLASH: Final = 0x5C


def skip_space(text: bytes, at: int) -> int:
    matched = _SPACE.match(text, at)
    return matched.end() if matched else at


def end_of_string(text: bytes, at: int) -> int:
    """Gives the place just past the closing quote; `at` is the opening one."""
    while True:
        at = text.index(b'"', at + 1)
        back = at
        while text[back - 1] == _BACKSLASH:
            back -= 1
        if (at - back) % 2 == 0:
            return at + 1


def end_of_value(text: bytes, at: int) -> int:
    """Gives the place just past the value that begins at `at`."""
    if text[at] == _QUOTE:
        return end_of_string(text, at)
    if text[at] not in b"{[":
        matched = _SCALAR.match(text, at, at + _WINDOW)
        if matched is None:
            raise ValueError("no value")
        return matched.end()
    depth, steps = 0, 0
    while at < len(text):
        if steps > _SINGLE_STEPS:
            at, depth = _skip_windows(text, at, depth)
            steps = 0
        steps += 1
        mark = _MARK.search(text, at, at + _WINDOW)
        if mark is None:
            at += _WINDOW
        elif mark[0] == b'"':
            at = end_of_string(text, mark.start())
        else:
            at = mark.end()
            depth += 1 if mark[0] in b"{[" else -1
            if depth == 0:
                return at
    raise ValueError("not closed")


def _skip_windows(text: bytes, at: int, depth: int) -> tuple[int, int]:
    """Goes on for as long as what is open cannot close within the window ahead."""
    while at < len(text):
        ahead = _WHOLE_STRINGS.match(text, at, at + _WINDOW)
        if ahead is None or ahead.end() == at:
            break  # a string that is longer than the window
        left = _unpaired(_STRING.sub(b"", ahead[0]).translate(None, _NO_BRACKETS))
        closing = left.count(b"}") + left.count(b"]")
        if depth <= closing:
            break
        depth += len(left) - 2 * closing
        at = ahead.end()
        time.sleep(0)  # lets go of the interpreter: the loop need not wait its 5 ms for a turn
    return at, depth


def _unpaired(brackets: bytes) -> bytes:
    """Removes the pairs that open and close inside: first what closes is left, then what opens."""
    for _ in range(_WINDOW_LEVELS):
        before = len(brackets)
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(brackets) == before:
            break
    return brackets


def members(text: bytes, at: int) -> Iterator[tuple[str, int, int]]:
    """Yields key, start and end of each value of the object that begins at `at`."""
    if text[at : at + 1] != b"{":
        raise ValueError("no object")
    at = skip_space(text, at + 1)
    while text[at] != ord("}"):
        key_end = end_of_string(text, at)
        key = json.loads(text[at:key_end])
        colon = skip_space(text, key_end)
        if text[colon] != ord(":"):
            raise ValueError("no colon")
        start = skip_space(text, colon + 1)
        end = end_of_value(text, start)
        yield key, start, end
        at = _next(text, end)


def items(text: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Yields start and end of each item of the array that begins at `at`."""
    if text[at : at + 1] != b"[":
        raise ValueError("no array")
    at = skip_space(text, at + 1)
    while text[at] != ord("]"):
        end = end_of_value(text, at)
        yield at, end
        at = _next(text, end)


def _next(text: bytes, at: int) -> int:
    at = skip_space(text, at)
    return skip_space(text, at + 1) if text[at] == ord(",") else at
