r"""The beginning of a JSON value that is still bytes, decoded, and how long the whole would be.

What a result may hold is counted in characters, and one of them takes up to 12 bytes on the wire
(`a`, UTF-8, a pair like `\ud83d\ude00`), so only decoding tells what fits. It stops where there is
enough, and goes in small steps, as `spans.py` does and for the same reason.
"""

from __future__ import annotations

import codecs
import json
import re
import time
from typing import Final

from mcp_bridge.protocol.json_spans import end_of_string

_WINDOW: Final = 16 * 1024
"""Bytes of one step."""
_ESCAPE: Final = 6
"""Bytes of the longest one."""
_BREATH: Final = 512
"""Strings and what is between them, taken one by one, until the event loop gets its turn."""
_BETWEEN: Final = re.compile(rb'[^"]++')
_BLANKS: Final = b" \t\r\n"
_TORN: Final = re.compile(rb"[^ \t\r\n\[\]{},:][ \t\r\n]++[^ \t\r\n\[\]{},:]")
"""A number or a word with a blank in it, which must not become one without."""
_DIGITS: Final = re.compile(r"u[0-9a-fA-F]{0,3}\Z")
_HIGH: Final = re.compile("[\ud800-\udbff]")
_Decoder: Final = codecs.getincrementaldecoder("utf-8")
_QUOTE: Final = 0x22


def string_head(text: bytes, start: int, end: int, room: int) -> tuple[str, int]:
    """Up to `room` characters of the JSON string whose raw body is `text[start:end]`.

    And how many it has: exactly where that is up to `room`, else about, and more than `room`.
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


def value_head(text: bytes, start: int, end: int, room: int) -> tuple[str, int]:
    """The same of any JSON value, as `json.dumps` would write it without blanks and escapes.

    What is cut may end in half of an escape (`whole_escapes`).
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
        if len(pieces) % _BREATH == 0:
            time.sleep(0)  # as above
    head = "".join(pieces)
    if at == end and length <= room:
        return head, length
    length = length * (end - start) // (at - start)
    return head[:room], max(length, room + 1)


def whole_escapes(text: str) -> str:
    """JSON text that was cut anywhere, without the half of an escape at its end."""
    digits = _DIGITS.search(text, max(0, len(text) - 4))
    for stem in (text, text[: digits.start()] if digits else ""):
        # An even number of them are that many halves in the text itself.
        if (len(stem) - len(stem.rstrip("\\"))) % 2:
            return stem[:-1]
    return text


def sendable(text: str) -> str:
    """Without lone surrogates, which no UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()


def _string(text: bytes, at: int, stop: int, room: int) -> tuple[str, int]:
    """The string with its quotes, without the last one where it is cut; and its length."""
    if stop - at <= _WINDOW and text.find(b"\\", at, stop) < 0:
        piece = text[at:stop].decode(errors="replace")
        return piece, len(piece)
    said, size = string_head(text, at + 1, stop - 1, room)
    piece = json.dumps(said, ensure_ascii=False)
    return (piece[:-1], size + 2) if size > room else (piece, len(piece))


def _whole_characters(raw: bytes, *, last: bool) -> tuple[str, int]:
    """A string's body without what is cut apart at its end, and the bytes that it takes.

    Raises: ValueError: it is no string's body.
    """
    decoder = _Decoder("replace")
    body = decoder.decode(raw, last)
    whole = len(raw) - len(decoder.getstate()[0])
    for less in range(1 if last else _ESCAPE):
        try:
            text: str = json.loads(f'"{body[: len(body) - less]}"', strict=False)
        except ValueError:
            continue
        if not last and _HIGH.match(text, len(text) - 1):
            return text[:-1], whole - less - _ESCAPE  # its other half follows, most likely
        return text, whole - less
    raise ValueError("no string")
