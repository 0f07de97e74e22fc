"""Values as they stream: where the JSON, the bracket or the string that begins here ends."""

from __future__ import annotations

import re

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.literal_parser import quote_ends_string

_SCALAR_END = re.compile(r"[,}\]\s<;]")
_REST_OF_STRING = {
    quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.DOTALL) for quote in ("'", '"')
}
_MAX_DEPTH = 200
"""Deeper brackets are noise, not arguments."""


class BracketStyle:
    """Which brackets a language has, and which quotes. `unescaped` says that a quote that words
    follow is a part of its string, see `quote_ends_string`."""

    def __init__(self, opening: str, closing: str, quotes: str, *, unescaped: bool = False) -> None:
        self.signs = re.compile(f"[{re.escape(opening + closing + quotes)}]")
        self.opening, self.closing, self.quotes = opening, closing, quotes
        self.unescaped = unescaped


JSON = BracketStyle("{[", "}]", '"')
PYTHON = BracketStyle("([{", ")]}", "'\"", unescaped=True)


def read_nested(cursor: Cursor, style: BracketStyle) -> Steps[tuple[str, bool]]:
    """Take the bracket or the string that begins here, and return its text and whether its end
    has come."""
    parts: list[str] = []
    depth, quote = 0, ""
    take_string = _take_unescaped_string if style.unescaped else _take_string
    while True:
        while cursor.at < len(cursor.text):
            if quote:
                text, quote = take_string(cursor, quote)
                parts.append(text)
                if not text:
                    break  # What stands behind the quote decides.
            else:
                found = style.signs.search(cursor.text, cursor.at)
                parts.append(cursor.advance(found.end() if found else len(cursor.text)))
                sign = found.group() if found is not None else ""
                if sign and sign in style.quotes:
                    quote = sign
                elif sign:
                    depth += 1 if sign in style.opening else -1
            if not quote and depth == 0:
                return "".join(parts), True
            if depth > _MAX_DEPTH:
                return "".join(parts), False
        if cursor.closed:
            return "".join(parts), False
        yield


def _take_string(cursor: Cursor, quote: str) -> tuple[str, str]:
    """Take the rest of a string, as far as it has arrived.

    quote: the string's quote, with a backslash behind it if one came last.

    Returns:
        The text, and the same for the string that is still open; "" if it has ended.
    """
    at = cursor.at + len(quote) - 1  # The backslash came, and what it escapes did not.
    found = _REST_OF_STRING[quote[0]].match(cursor.text, at)
    end = found.end() if found is not None else at
    closing = cursor.text[end : end + 1]
    still_open = {"": quote[0], "\\": quote[0] + "\\"}.get(closing, "")
    return cursor.advance(min(end + 1, len(cursor.text))), still_open


def _take_unescaped_string(cursor: Cursor, quote: str) -> tuple[str, str]:
    """Take the rest of a string in which quotes may stand unescaped, like `_take_string`. Nothing
    is taken while more text has to tell whether the quote that comes next is the last."""
    found = _REST_OF_STRING[quote[0]].match(cursor.text, cursor.at + len(quote) - 1)
    end = found.end() if found is not None else cursor.at
    if cursor.text[end : end + 1] != quote[0]:
        return _take_string(cursor, quote)
    ends = quote_ends_string(cursor.text, end, closed=cursor.closed)
    text = cursor.advance(end if ends is None else end + 1)
    return text, "" if ends else quote[0]


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
