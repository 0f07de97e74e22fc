"""BracketStyle and strings: where what begins here ends."""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.nesting import BracketStyle

_REST_OF_STRING = {
    quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.DOTALL) for quote in ("'", '"')
}
_MAX_NESTING = 200
"""Deeper brackets are noise, not arguments."""

JSON = BracketStyle("{[", "}]", '"', _MAX_NESTING)
PYTHON = BracketStyle("([{", ")]}", "'\"", _MAX_NESTING)


def nested(source: Cursor, kind: BracketStyle) -> Steps[tuple[str, bool]]:
    """Take the bracket or the string that begins here, to its end: (text, whether that came)."""
    parts: list[str] = []
    depth, quote = 0, ""
    while True:
        slept = source.take_walked()
        if slept is not None:
            parts.append(slept[0])
            depth, quote = slept[1].depth, slept[1].quote
        while source.at < len(source.text):
            if quote:
                text, quote = _string(source, quote)
            else:
                found = kind.marks.search(source.text, source.at)
                end = found.end() if found is not None else len(source.text)
                text = source.advance(end)
                if found is not None:
                    depth, quote = kind.after(depth, "", found.group())
            parts.append(text)
            if not quote and depth == 0:
                return "".join(parts), True
            if depth > kind.deepest:
                return "".join(parts), False
        if source.closed:
            return "".join(parts), False
        source.waiting = kind.state(depth, quote)
        yield


def _string(source: Cursor, quote: str) -> tuple[str, str]:
    """Take the rest of a string, as far as it has come: (text, the quote that is still open)."""
    escaped = len(quote) - 1  # The backslash came, and what it escapes did not.
    at = source.at + escaped
    found = _REST_OF_STRING[quote[0]].match(source.text, at)
    end = found.end() if found is not None else at
    closing = source.text[end : end + 1]
    left = {"": quote[0], "\\": quote[0] + "\\"}.get(closing, "")
    return source.advance(min(end + 1, len(source.text))), left
