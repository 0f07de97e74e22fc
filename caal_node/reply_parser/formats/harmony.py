"""Messages with headers: gpt-oss (harmony) and Glimmer.

`<|start|>assistant<|channel|>commentary to=functions.set_timer<|message|>{...}<|call|>`, and
`<|start|>assistant to=set_timer<|message|><atem:function_calls>...`. The header says whether the
message is thinking, speech or a call.
"""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.syntax.block import read_named_block

_MESSAGE = "<|message|>"
_CALLS_OPEN, _CALLS_CLOSE = "<atem:function_calls>", "</atem:function_calls>"
_MAX_HEADER_CHARS = 256
_TO = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>")
_THOUGHT_ENDS = (*_ENDS, "<|start|>", "<|channel|>")
_HIDDEN_CHANNELS = frozenset({"analysis", "thought", "thinking"})


def _read(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    source = reading.source
    header = opener
    if opener != _MESSAGE:
        rest, stop = yield from source.until((_MESSAGE, "<|start|>", "\n"), _MAX_HEADER_CHARS)
        if stop != _MESSAGE:
            return False
        yield from source.take(_MESSAGE)
        header += rest
    to, channel = _TO.search(header), _CHANNEL.search(header)
    recipient = to[1] if to else ""
    if recipient == "user":
        yield from _for_user(reading, dialect)
    elif recipient == "assistant":  # A tool's result, which the model made up.
        yield from source.until((*_ENDS, "<|start|>"))
    elif recipient == "self" or (
        not recipient and channel is not None and channel[1].lower() in _HIDDEN_CHANNELS
    ):
        reading.begin_thinking(_THOUGHT_ENDS)
    elif recipient:
        yield from _call(reading, dialect, recipient)
    elif channel is None and (yield from source.look(("<atem:",))):
        yield from _call(reading, dialect, "")
    return True


def _for_user(reading: ParseContext, dialect: Format) -> Steps[None]:
    """Speech, even if it shows a call; a call only if it is nothing else."""
    source = reading.source
    if not reading.desk.box.open and (yield from source.look((_CALLS_OPEN,))):
        body, stop = yield from source.until((_CALLS_CLOSE,))
        yield from source.take(stop)
        yield from source.skip_space()
        gap = source.skipped
        alone = not (yield from source.peek()) or (yield from source.look(_ENDS)) is not None
        source.unread(body + stop + gap)
        if alone and stop:
            yield from _call(reading, dialect, "")
            return
    reading.begin_literal(_ENDS)


def _call(reading: ParseContext, dialect: Format, recipient: str) -> Steps[None]:
    source = reading.source
    char = yield from source.skip_space()
    if char == "<" and (yield from source.look(("<atem:",))):
        if reading.desk.box.open:
            reading.begin_literal(_ENDS)  # A recipient is free text; only declared tools count.
            return
        yield from read_named_block(reading, dialect, None)
    elif char == "{":
        yield from read_named_block(reading, dialect, recipient)
    else:
        yield from source.until((*_ENDS, "<|start|>"))
        reading.desk.broken(recipient, "The arguments must be one JSON object.")
    yield from source.take_any(_ENDS)


FORMATS = (
    Format(
        name="harmony",
        openers=("<|start|>", "<|channel|>", _MESSAGE),
        closers=(_CALLS_CLOSE,),
        ends=(*_ENDS, "<|start|>"),
        strays=(_CALLS_OPEN,),
        read=_read,
        untyped_json=True,
    ),
)
