"""JSON as it streams: where a value ends, and a string one piece at a time."""

from __future__ import annotations

import re

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.syntax.brackets import JSON, read_nested

_SCALAR_END = re.compile(r"[,}\]\s<;]")
_PLAIN = re.compile(r'[^"\\]+')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_REPLACEMENT = 0xFFFD


def read_json(cursor: Cursor) -> Steps[tuple[str, bool]]:
    """Take one JSON value, and return its text and whether it is whole.

    Only brackets and quotes are checked.
    """
    if (yield from cursor.peek()) in ("{", "[", '"'):
        return (yield from read_nested(cursor, JSON))
    parts: list[str] = []
    while True:
        found = _SCALAR_END.search(cursor.text, cursor.at)
        if found is not None:
            parts.append(cursor.advance(found.start()))
            return "".join(parts), True
        parts.append(cursor.take_rest())
        if cursor.closed:
            return "".join(parts), False
        yield


def read_arguments(cursor: Cursor, call: OpenCall) -> Steps[None]:
    """End `call` with the JSON object that begins here as its arguments."""
    text, whole = yield from read_json(cursor)
    if whole:
        call.end_json(text)
    else:
        call.cut_off()


def read_string_piece(cursor: Cursor) -> Steps[str]:
    """Return the next piece of a JSON string, decoded; "" behind the last.

    The cursor stands behind the opening quote. The closing quote is taken, too.
    """
    if not (yield from cursor.peek()):
        return ""
    found = _PLAIN.match(cursor.text, cursor.at)
    if found is not None:
        return cursor.advance(found.end())
    if cursor.text[cursor.at] == '"':
        cursor.advance_by(1)
        return ""
    return (yield from _read_escape(cursor))


def _read_escape(cursor: Cursor) -> Steps[str]:
    if not (yield from cursor.has(2)):
        cursor.take_rest()
        return ""
    letter = cursor.text[cursor.at + 1]
    if letter != "u":
        cursor.advance_by(2)
        return _ESCAPES.get(letter, letter)
    units = [(yield from _read_code_unit(cursor))]
    if 0xD800 <= units[0] < 0xDC00 and (yield from cursor.peek_any(("\\u",))):
        units.append((yield from _read_code_unit(cursor)))
    # A surrogate pair is one character; one without the other becomes U+FFFD.
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "replace")


def _read_code_unit(cursor: Cursor) -> Steps[int]:
    r"""Take one `\uXXXX`, and return its number; that of U+FFFD when it is none."""
    if not (yield from cursor.has(6)):
        cursor.take_rest()
        return _REPLACEMENT
    digits = cursor.text[cursor.at + 2 : cursor.at + 6]
    if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
        cursor.advance_by(2)
        return _REPLACEMENT
    cursor.advance_by(6)
    return int(digits, 16)
