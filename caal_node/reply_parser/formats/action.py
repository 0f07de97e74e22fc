"""`Action:` and a list of calls (Command R+), or a name with `Action Input:` (ReAct)."""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.syntax.block import read_block
from caal_node.reply_parser.syntax.json_arguments import read_arguments

INPUTS = ("Action Input:", "action_input:", "Input:")
_MAX_NAME_CHARS = 128


def _read(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    # Dialects use this, and the scanner knows all dialects.
    from caal_node.reply_parser.marker_next import next_marker, pass_strays
    from caal_node.reply_parser.markers import markers, without_markers

    source = reading.source
    char = yield from pass_strays(source)
    behind = (yield from next_marker(source)) if char in ("<", "[") else ""
    if behind and not markers().openers[behind].tentative:
        return True  # A label in front of a call in another dialect.
    if char in ("`", "{", "["):
        return (yield from read_block(reading, dialect, opener))
    name, stop = yield from source.until(("\n",), _MAX_NAME_CHARS)
    name = without_markers(name)
    if not stop or "{" in name or reading.desk.box.named(name) is None:
        return False
    yield from pass_strays(source)
    marker = yield from next_marker(source)
    source.advance(source.at + len(marker))
    yield from source.skip_space()
    if (yield from source.take_any(INPUTS)) is None or (yield from source.skip_space()) != "{":
        return False
    yield from read_arguments(source, reading.desk.open(name))
    return True


FORMATS = (Format(name="action", openers=("Action:",), read=_read, at_line=True),)
