"""Inkling: `<|message_model|>set_timer<|content_invoke_tool_json|>{"name": ..., "args": ...}`."""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.syntax.call_object import read_call_object

_INVOKE = "<|content_invoke_tool_json|>"
_HEADER = "<|message_model|>"
_MAX_HEADER_CHARS = 128


def _read(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    source = reading.source
    if opener == _HEADER:
        header, _ = yield from source.until(("<|",), _MAX_HEADER_CHARS)
        if not (yield from source.take(_INVOKE)):
            source.unread(header)
            return True
    _, stop = yield from source.until(("{", "<|"))
    if stop == "{":
        yield from read_call_object(reading, marked=True, closers=(*dialect.closers, _INVOKE))
    return True


FORMATS = (
    Format(
        name="inkling",
        openers=(_HEADER, _INVOKE),
        closers=("<|end_message|>",),
        strays=("<|content_text|>",),
        read=_read,
    ),
)
