"""JSON as it streams: its extent, its strings, one piece at a time."""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.syntax.brackets import JSON, nested

_SCALAR_END = re.compile(r"[,}\]\s<;]")
_PLAIN = re.compile(r'[^"\\]+')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def json_value(source: Cursor) -> Steps[tuple[str, bool]]:
    """Take one JSON value: (its text, whether it is whole).

    Only brackets and quotes are checked.
    """
    if (yield from source.peek()) in ("{", "[", '"'):
        return (yield from nested(source, JSON))
    text: list[str] = []
    while True:
        found = _SCALAR_END.search(source.text, source.at)
        if found is not None:
            text.append(source.advance(found.start()))
            return "".join(text), True
        text.append(source.advance(len(source.text)))
        if source.closed:
            return "".join(text), False
        yield


class StringPieces:
    """A JSON string's text, decoded piece by piece. The source stands behind the opening quote."""

    def __init__(self, source: Cursor) -> None:
        self._source = source
        self.whole = False
        """Whether the closing quote has come (it is taken, too)."""

    def next(self) -> Steps[str]:
        """The next piece of decoded text; "" after the last."""
        source = self._source
        if not (yield from source.peek()):
            return ""
        found = _PLAIN.match(source.text, source.at)
        if found is not None:
            return source.advance(found.end())
        if source.text[source.at] == '"':
            source.advance(source.at + 1)
            self.whole = True
            return ""
        return (yield from self._escape())

    def _escape(self) -> Steps[str]:
        source = self._source
        if not (yield from source.has(2)):
            source.advance(len(source.text))
            return ""
        letter = source.text[source.at + 1]
        if letter != "u":
            source.advance(source.at + 2)
            return _ESCAPES.get(letter, letter)
        unit = yield from self._unit()
        if 0xD800 <= unit < 0xDC00 and (yield from source.look(("\\u",))):
            low = yield from self._unit()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
            return "\ufffd" + (chr(low) if not 0xD800 <= low < 0xE000 else "\ufffd")
        return chr(unit) if not 0xD800 <= unit < 0xE000 else "\ufffd"

    def _unit(self) -> Steps[int]:
        r"""The number of one `\uXXXX`; of U+FFFD when it is none."""
        source = self._source
        if not (yield from source.has(6)):
            source.advance(len(source.text))
            return 0xFFFD
        digits = source.text[source.at + 2 : source.at + 6]
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            source.advance(source.at + 2)
            return 0xFFFD
        source.advance(source.at + 6)
        return int(digits, 16)
