"""`Action:` and a list of calls (Command R+), or a name with `Action Input:` (ReAct).

What ReAct's models write as `Observation:` behind a call is a result that they made up.
"""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.block import read_block
from caal_node.reply_parser.syntax.values import read_arguments

INPUTS = ("Action Input:", "action_input:", "Input:")
_MAX_NAME_CHARS = 128
_BEHIND_OBSERVATION = ("\nThought:", "\nAction:", "\nFinal Answer:", "\n\n")
_MAX_OBSERVATION_CHARS = 2_000


def _read(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    cursor, markers = context.cursor, context.markers
    char = yield from markers.skip_strays(cursor)
    marker = (yield from markers.peek(cursor)) if char in ("<", "[") else ""
    if marker and marker not in markers.tentative:
        return True  # A label in front of a call in another format.
    if char in ("`", "{", "["):
        return (yield from read_block(context, call_format, opener))
    name, stop = yield from cursor.take_until(("\n",), _MAX_NAME_CHARS)
    name = markers.removed_from(name)
    if not stop or "{" in name or context.calls.tools.named(name) is None:
        return False
    yield from markers.skip_strays(cursor)
    marker = yield from markers.peek(cursor)
    cursor.advance_by(len(marker))
    yield from cursor.skip_space()
    if (yield from cursor.take_any(INPUTS)) is None or (yield from cursor.skip_space()) != "{":
        return False
    yield from read_arguments(cursor, context.calls.open(name))
    return True


def _drop_observation(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    if not context.position.behind_call:
        return False  # Somebody tells of what was observed.
    context.note_result()
    yield from context.cursor.take_until(_BEHIND_OBSERVATION, _MAX_OBSERVATION_CHARS)
    return True


FORMATS = (
    CallFormat(name="action", openers=("Action:",), read=_read, at_line=True),
    CallFormat(name="observation", openers=("Observation:",), read=_drop_observation, at_line=True),
)
