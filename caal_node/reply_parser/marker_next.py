"""Whether a marker comes next."""

from __future__ import annotations

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.markers import is_marker, markers


def next_marker(source: Cursor) -> Steps[str]:
    """The marker that comes next, left where it is; "" if none does."""
    while True:
        found = markers().scan.match(source.text, source.at)
        text = found.group() if found is not None else ""
        if is_marker(text):
            return text
        half = source.at + len(text) == len(source.text) and text not in ("{", "\n", "```")
        if not half or source.closed:
            return ""
        yield


def pass_strays(source: Cursor) -> Steps[str]:
    """Take the markers that come next and mean nothing where they stand, and white space; give the
    character behind them, or ""."""
    while (char := (yield from source.skip_space())) and char in "<[]◁":
        marker = yield from next_marker(source)
        if not marker or marker in markers().openers:
            return char
        source.advance(source.at + len(marker))
    return char
