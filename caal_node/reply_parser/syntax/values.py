"""Values in calls: where the one that begins here ends, and the arguments that it holds.

JSON; arguments as Python writes them, `set_timer(minutes=5, label='tea')`; and as Gemma does,
`call:set_timer{minutes:5,label:<|"|>tea<|"|>}`.
"""

from __future__ import annotations

import re
from typing import Any

from caal_node.reply_parser.arguments import allowed_types
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.events import OpenCall
from caal_node.reply_parser.literal_parser import (
    GEMMA_QUOTES,
    LiteralParser,
    UnreadableLiteral,
    has_unquoted_text,
    parse_keywords,
    quote_ends_string,
)
from caal_node.reply_parser.markers import MarkerTable
from caal_node.reply_parser.tool_index import ToolSignature, properties_of

_MAX_STRING_CHARS = 2_000
"""How far behind a closer in a string the string's own quote is looked for."""
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


def read_parentheses(cursor: Cursor) -> Steps[tuple[str, bool]]:
    """Take the bracket that begins here, and return what stands in it and whether it was closed."""
    text, whole = yield from read_nested(cursor, PYTHON)
    return (text[1:-1] if whole else text[1:]), whole


def parse_arguments(
    text: str, tool: ToolSignature | None, markers: MarkerTable, *, literal: bool = False
) -> dict[str, Any] | None:
    """Return the arguments between a call's brackets; None where they cannot be read. If markers
    leaked into the text, it is read without them.

    literal: only literals with a name count; without, positions and words without quotes do, too.
    """
    names = () if literal else tuple(properties_of(tool))
    for attempt in (text, markers.removed_from(text)):
        given = _parse_single_object(attempt, tool)
        if given is None:
            try:
                return parse_keywords(attempt, names, literal=literal)
            except UnreadableLiteral:
                continue
        if not literal or not has_unquoted_text(given):
            return given
    return None


def _parse_single_object(text: str, tool: ToolSignature | None) -> dict[str, Any] | None:
    """Return the arguments of `set_timer({"minutes": 5})`, from what stands between the brackets.

    None: it is no single object, or that may be the tool's first argument itself.
    """
    parser = LiteralParser(text)
    if parser.skip_space() != "{":
        return None
    try:
        found = parser.mapping()
    except UnreadableLiteral:
        return None
    if parser.skip_space():
        return None
    if tool is not None:
        first = next(iter(tool.properties.values()), None)
        takes_object = "object" in allowed_types(first, tool.schema)
        if takes_object or not found.keys() <= tool.properties.keys():
            return None
    return found


def read_keywords(cursor: Cursor, call: OpenCall, markers: MarkerTable) -> Steps[None]:
    """End `call` with the arguments in the round brackets that begin here."""
    text, whole = yield from read_parentheses(cursor)
    given = parse_arguments(text, call.tool, markers) if whole else None
    if given is not None:
        call.end(given)
    elif whole:
        call.fail("The arguments cannot be read; write them as name=value.")
    else:
        call.cut_off()


def read_braces(cursor: Cursor, closers: tuple[str, ...]) -> Steps[tuple[str, bool]]:
    """Take `{...}` with Gemma's strings in it, and return its text and whether it was closed."""
    parts: list[str] = []
    depth = 0
    stops = (*GEMMA_QUOTES, "{", "}", *closers)
    while True:
        text, stop = yield from cursor.take_until(stops)
        parts.append(text)
        if stop in closers or not stop:
            return "".join(parts), bool(stop)
        parts.append(cursor.advance_by(len(stop)))
        if stop in GEMMA_QUOTES:
            text, ended = yield from _take_gemma_string(cursor, stop, closers)
            parts.append(text)
            if not ended:
                return "".join(parts), text.rstrip().endswith("}") and bool(
                    (yield from cursor.peek())
                )
            continue
        depth += 1 if stop == "{" else -1
        if depth <= 0:
            return "".join(parts), True


def _take_gemma_string(
    cursor: Cursor, quote: str, closers: tuple[str, ...]
) -> Steps[tuple[str, bool]]:
    """Take the rest of Gemma's string with the quote that ends it, and return it and whether that
    came. A closer in front of the quote is a part of the string, unless another string begins
    behind it, as it does where the quote was forgotten."""
    parts: list[str] = []
    while True:
        text, stop = yield from cursor.take_until((quote, *closers))
        parts.append(text)
        if not stop:
            return "".join(parts), False
        if stop == quote:
            parts.append(cursor.advance_by(len(quote)))
            return "".join(parts), True
        text, following = yield from cursor.take_until((quote, "call:"), _MAX_STRING_CHARS)
        if following != quote:
            cursor.unread(text)
            return "".join(parts), False
        parts.append(text)


def end_braces(call: OpenCall, text: str) -> None:
    """End `call` with the arguments in `text`."""
    try:
        call.end(LiteralParser(text).mapping())
    except UnreadableLiteral:
        call.fail("The arguments cannot be read.")
