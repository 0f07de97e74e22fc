"""Inkling: `<|message_model|>set_timer<|content_invoke_tool_json|>{"name": ..., "args": ...}`.

This file is an example of a format that no shared reader covers. `FORMATS` lists its markers:
`openers` begin something that is to be read, `closers` end it, and `strays` are left out of the
speech wherever they stand. When an opener was found and taken, `_read` takes the text behind it
from `context.cursor`, and tells `context.calls` which calls that makes. It returns whether this was
a call, or at least nothing to be spoken; otherwise what it took is read again as running text.
"""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.call_object import read_call_object

_INVOKE = "<|content_invoke_tool_json|>"
_HEADER = "<|message_model|>"
_MAX_HEADER_CHARS = 128


def _read(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    # Whatever needs more text than has arrived pauses by `yield from`.
    cursor = context.cursor
    if opener == _HEADER:
        header, _ = yield from cursor.take_until(("<|",), _MAX_HEADER_CHARS)
        if not (yield from cursor.take(_INVOKE)):
            cursor.unread(header)  # The header of a message that is speech.
            return True
    _, stop = yield from cursor.take_until(("{", "<|"))
    if stop == "{":
        # The name stands in the object, too. If it is cut off or broken, the closers end it.
        closers = (*call_format.closers, _INVOKE)
        yield from read_call_object(context, marked=True, closers=closers)
    return True


FORMATS = (
    CallFormat(
        name="inkling",
        openers=(_HEADER, _INVOKE),
        closers=("<|end_message|>",),
        strays=("<|content_text|>",),
        read=_read,
    ),
)
