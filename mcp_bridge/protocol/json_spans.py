"""Finds where the values of a JSON text begin and end, without building them.

This is a Python loop over short searches on purpose: it runs in a worker thread, and between two
steps the event loop gets its turn. A C parser would hold the interpreter's lock for the whole
of a large text (266 ms for 4 MiB of small objects, measured), thread or not.

The functions raise ValueError or IndexError where the text is no JSON; they do not find every
fault, so parse what comes out.
"""

from __future__ import annotations

import codecs
import json
import re
import time
from collections.abc import Iterator
from typing import Final

# Decodes the beginning of a JSON value that is still bytes, and tells how long the whole would be.
#
# What a result may hold is counted in characters, and one of them takes up to 12 bytes on the wire
# (`a`, UTF-8, a pair like `\ud83d\ude00`), so only decoding tells what fits. It stops where there
# is enough, and goes in small steps, as `json_spans.py` does and for the same reason.

_WINDOW: Final = 16 * 1024
"""The bytes of one step."""
_ESCAPE_BYTES: Final = 6
"""The length of the longest escape."""
_PIECES_A_TURN: Final = 512
"""After so many strings and texts between strings, the event loop gets its turn."""
_BETWEEN: Final = re.compile(rb'[^"]++')
_BLANKS: Final = b" \t\r\n"
_TORN: Final = re.compile(rb"[^ \t\r\n\[\]{},:][ \t\r\n]++[^ \t\r\n\[\]{},:]")
"""A number or a word with a blank in it, which must not become one without."""
_DIGITS: Final = re.compile(r"u[0-9a-fA-F]{0,3}\Z")
_HIGH: Final = re.compile("[\ud800-\udbff]")
_Decoder: Final = codecs.getincrementaldecoder("utf-8")
_QUOTE: Final = 0x22


def string_prefix(text: bytes, start: int, end: int, room: int) -> tuple[str, int]:
    """Gives up to `room` characters of the JSON string whose raw body is `text[start:end]`.

    The second value is its length: exact up to `room`, else estimated, and more than `room`.
    """
    pieces: list[str] = []
    length, at = 0, start
    while at < end and length <= room:
        raw = text[at : min(end, at + _WINDOW)]
        piece, used = _whole_characters(raw, last=at + len(raw) == end)
        pieces.append(piece)
        length += len(piece)
        at += used
        if at < end:
            time.sleep(0)  # lets go of the interpreter
    if at < end:
        length = max(length * (end - start) // (at - start), room + 1)
    return "".join(pieces)[:room], length


def value_prefix(text: bytes, start: int, end: int, room: int) -> tuple[str, int]:
    """Does the same for any JSON value, as `json.dumps` writes it without blanks and escapes.

    What is cut may end in half of an escape (`drop_partial_escape`).
    """
    pieces: list[str] = []
    length, at = 0, start
    while at < end and length <= room:
        if text[at] == _QUOTE:
            stop = end_of_string(text, at)
            piece, size = _string(text, at, stop, room - length + 1)
            at = stop
        else:
            between = _BETWEEN.match(text, at, min(end, at + _WINDOW))
            if between is None or _TORN.search(between[0]):
                raise ValueError("no value")
            piece = between[0].translate(None, _BLANKS).decode()
            size = len(piece)
            at = between.end()
        pieces.append(piece)
        length += size
        if len(pieces) % _PIECES_A_TURN == 0:
            time.sleep(0)  # as above
    head = "".join(pieces)
    if at == end and length <= room:
        return head, length
    length = length * (end - start) // (at - start)
    return head[:room], max(length, room + 1)


def drop_partial_escape(text: str) -> str:
    """Removes the half of an escape at the end of JSON text that was cut anywhere."""
    digits = _DIGITS.search(text, max(0, len(text) - 4))
    for stem in (text, text[: digits.start()] if digits else ""):
        # An even number of them are that many halves in the text itself.
        if (len(stem) - len(stem.rstrip("\\"))) % 2:
            return stem[:-1]
    return text


def without_surrogates(text: str) -> str:
    """Replaces lone surrogates, which no UTF-8 can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _string(text: bytes, at: int, stop: int, room: int) -> tuple[str, int]:
    """Gives the string with its quotes, without the last one where it is cut, and its length."""
    if stop - at <= _WINDOW and text.find(b"\\", at, stop) < 0:
        piece = text[at:stop].decode(errors="replace")
        return piece, len(piece)
    said, size = string_prefix(text, at + 1, stop - 1, room)
    piece = json.dumps(said, ensure_ascii=False)
    return (piece[:-1], size + 2) if size > room else (piece, len(piece))


def _whole_characters(raw: bytes, *, last: bool) -> tuple[str, int]:
    """Gives a string's body without what is cut apart at its end, and the bytes that it takes.

    Raises: ValueError, where it is no string's body.
    """
    decoder = _Decoder("replace")
    body = decoder.decode(raw, last)
    whole = len(raw) - len(decoder.getstate()[0])
    for less in range(1 if last else _ESCAPE_BYTES):
        try:
            text: str = json.loads(f'"{body[: len(body) - less]}"', strict=False)
        except ValueError:
            continue
        if not last and _HIGH.match(text, len(text) - 1):
            return text[:-1], whole - less - _ESCAPE_BYTES  # its other half follows, most likely
        return text, whole - less
    raise ValueError("no string")


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
