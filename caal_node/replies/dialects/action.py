"""`Action:` and a list of calls (Command R+), or a name with `Action Input:` (ReAct)."""

from __future__ import annotations

from caal_node.replies.reading import Dialect, Reading
from caal_node.replies.source import Steps
from caal_node.replies.syntax.block import read_block
from caal_node.replies.syntax.json_arguments import read_arguments

_INPUTS = ("Action Input:", "action_input:", "Input:")
_MAX_NAME_CHARS = 128


def _read(reading: Reading, dialect: Dialect, opener: str) -> Steps[bool]:
    source = reading.source
    if (yield from source.skip_space()) in ("`", "{", "["):
        return (yield from read_block(reading, dialect, opener))
    name, stop = yield from source.until(("\n",), _MAX_NAME_CHARS)
    if not stop or reading.desk.box.named(name) is None:
        return False
    yield from source.skip_space()
    if (yield from source.take_any(_INPUTS)) is None or (yield from source.skip_space()) != "{":
        return False
    yield from read_arguments(source, reading.desk.open(name))
    return True


DIALECTS = (Dialect(name="action", openers=("Action:",), read=_read, at_line=True),)
