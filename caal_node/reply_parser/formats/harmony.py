"""Messages with headers that name their recipient: gpt-oss (harmony), Glimmer and Functionary.

`<|start|>assistant<|channel|>commentary to=functions.set_timer<|message|>{...}<|call|>`, and
`<|start|>assistant to=set_timer<|message|><atem:function_calls>...`. The header says whether the
message is thinking, speech or a call.
"""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.block import read_named_block
from caal_node.reply_parser.syntax.values import read_arguments

_MESSAGE = "<|message|>"
_CALLS_OPEN, _CALLS_CLOSE = "<atem:function_calls>", "</atem:function_calls>"
_MAX_HEADER_CHARS = 256
_TO = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>")
_THOUGHT_ENDS = (*_ENDS, "<|start|>", "<|channel|>")
_CHANNEL_MARK = "<|channel|>"
_HEADER_ENDS = (_MESSAGE, "<|start|>", "<|end|>", _CHANNEL_MARK, "\n")
_MAX_HEADER_PARTS = 8
_BARE_HEADER = re.compile(
    r"(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*"
    r"(?P<channel>analysis|thought|thinking|commentary|final)\b(?:\s+to=(?P<to>[^\s<{]+))?"
    r"(?:\s*<\|constrain\|>\s*json)?\s*"
)
_MARK = re.compile(r"<\|\w+\|>")
_WORDS = ("assistant", "analysis", "commentary", "final", "to=", "json")
"""Words of a header, in which a reply may be cut."""
_SPOKEN_CHANNEL = "final"
_HIDDEN_CHANNELS = frozenset({"analysis", "thought", "thinking"})


def _read(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    cursor = context.cursor
    header = opener
    if opener != _MESSAGE:
        rest, stop = yield from _take_header(cursor, opener)
        if stop != _MESSAGE:
            return (yield from _read_without_message(context, call_format, header + rest))
        yield from cursor.take(_MESSAGE)
        header += rest
    to, channel = _TO.search(header), _CHANNEL.search(header)
    recipient = to[1] if to else ""
    if recipient == "user":
        yield from _read_for_user(context, call_format)
    elif recipient == "assistant":  # A tool's result, which the model made up.
        yield from cursor.take_until((*_ENDS, "<|start|>"))
    elif recipient == "self" or (
        not recipient and channel is not None and channel[1].lower() in _HIDDEN_CHANNELS
    ):
        context.begin_thinking(_THOUGHT_ENDS)
    elif not recipient and channel is not None and channel[1].lower() == _SPOKEN_CHANNEL:
        context.literal = _THOUGHT_ENDS  # What looks like a call in it is shown, not made.
    elif recipient:
        yield from _read_call(context, call_format, recipient)
    elif channel is None and (yield from cursor.peek_any(("<atem:",))):
        yield from _read_call(context, call_format, "")
    return True


def _take_header(cursor: Cursor, opener: str) -> Steps[tuple[str, str]]:
    """Take a message's header, and return it and what ends it: `<|message|>`, or what shows that
    it is none. It has one channel, and may go on in the next line with a marker."""
    parts: list[str] = []
    next_parts = (_MESSAGE, "<|constrain|>", *((_CHANNEL_MARK,) if opener == "<|start|>" else ()))
    while True:
        rest, stop = yield from cursor.take_until(_HEADER_ENDS, _MAX_HEADER_CHARS)
        parts.append(rest)
        if stop == _CHANNEL_MARK and len(next_parts) > 2:
            parts.append(cursor.advance_by(len(stop)))
            next_parts = next_parts[:2]
        elif stop != "\n" or len(parts) > _MAX_HEADER_PARTS:
            return "".join(parts), stop
        else:
            yield from cursor.skip_space()
            space = cursor.skipped
            if (yield from cursor.peek_any(next_parts)) is None:
                cursor.unread(space)
                return "".join(parts), stop
            parts.append(space)


def _read_without_message(
    context: ParseContext, call_format: CallFormat, header: str
) -> Steps[bool]:
    """Read a header that lacks its `<|message|>`, and what follows it. False: it is none."""
    cursor = context.cursor
    found = _BARE_HEADER.match(header)
    if found is None:
        words = _MARK.sub(" ", header).split()
        whole = (
            each.startswith("to=") or any(w.startswith(each) for w in _WORDS) for each in words
        )
        return not (yield from cursor.peek()) and all(whole)
    cursor.unread(header[found.end() :])
    if found["to"]:
        yield from _read_call(context, call_format, found["to"])
    elif found["channel"] in _HIDDEN_CHANNELS:
        context.begin_thinking(_THOUGHT_ENDS)
    elif found["channel"] == _SPOKEN_CHANNEL:
        context.literal = _THOUGHT_ENDS
    return True


def _read_for_user(context: ParseContext, call_format: CallFormat) -> Steps[None]:
    """Read a message for the person. It is speech, even if it shows a call, unless it is nothing
    but a call."""
    cursor = context.cursor
    if not context.calls.tools.accepts_any_name and (yield from cursor.peek_any((_CALLS_OPEN,))):
        body, stop = yield from cursor.take_until((_CALLS_CLOSE,))
        yield from cursor.take(stop)
        yield from cursor.skip_space()
        space = cursor.skipped
        alone = not (yield from cursor.peek()) or (yield from cursor.peek_any(_ENDS)) is not None
        cursor.unread(body + stop + space)
        if alone and stop:
            yield from _read_call(context, call_format, "")
            return
    context.literal = _ENDS


def _read_call(context: ParseContext, call_format: CallFormat, recipient: str) -> Steps[None]:
    cursor = context.cursor
    char = yield from cursor.skip_space()
    if char == "<" and (yield from cursor.peek_any(("<atem:",))):
        if context.calls.tools.accepts_any_name:
            context.literal = _ENDS  # A recipient is free text; only declared tools count.
            return
        yield from read_named_block(context, call_format, None)
    elif char == "{":
        yield from read_named_block(context, call_format, recipient)
    else:
        yield from cursor.take_until((*_ENDS, "<|start|>"))
        context.calls.broken(recipient, "The arguments must be one JSON object.")
    yield from cursor.take_any(_ENDS)


# Functionary. 3.2: `>>>set_timer` and its arguments on the next line; `>>>all` is speech.
# 2: `<|from|>assistant`, `<|recipient|>set_timer` and `<|content|>{...}`, each on a line.
#
# Its template ends the prompt with the first `>>>`, and no line ends in front of the others.

_MAX_NAME_CHARS = 128
_RECIPIENT, _CONTENT = "<|recipient|>", "<|content|>"
_EVERYBODY = "all"
"""The recipient whose message is speech."""


def _read_at_line(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    cursor = context.cursor
    name, stop = yield from cursor.take_until(("\n",), _MAX_NAME_CHARS)
    if not stop:
        return False
    # The name is what is left without the markers that leaked around it.
    name = context.markers.removed_from(name).partition("<")[0].strip()
    if name == _EVERYBODY:
        yield from cursor.take(stop)
        return True
    return (yield from _read_recipient_call(context, name))


def _read_in_line(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read a header behind speech, where nothing but a whole one counts."""
    cursor = context.cursor
    name = yield from cursor.peek_any((_EVERYBODY, *context.calls.tools.by_name))
    if name is None:
        return False
    cursor.advance_by(len(name))
    yield from cursor.skip_space()
    if not cursor.skipped.startswith(("\n", "\r\n")):
        return False
    return name == _EVERYBODY or (yield from _read_recipient_call(context, name))


def _read_header(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read version 2's header: the recipient, and its message behind another marker."""
    cursor = context.cursor
    name, stop = yield from cursor.take_until(("\n", _CONTENT), _MAX_NAME_CHARS)
    yield from cursor.skip_space()
    if not stop or not (yield from cursor.take(_CONTENT)):
        return False
    name = name.strip()
    if name == _EVERYBODY:
        return True
    return (yield from _read_recipient_call(context, name))


def _read_recipient_call(context: ParseContext, name: str) -> Steps[bool]:
    """Read the call of `name`, if that is a tool's and the object with its arguments comes next."""
    cursor, calls = context.cursor, context.calls
    if calls.tools.named(name) is None or (yield from cursor.skip_space()) != "{":
        return False
    yield from read_arguments(cursor, calls.open(name))
    return True


def _skip_sender(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Skip who speaks, in front of the recipient."""
    cursor = context.cursor
    name, stop = yield from cursor.take_until(("\n", "<"), _MAX_NAME_CHARS)
    yield from cursor.skip_space()
    if stop and (yield from cursor.peek_any((_RECIPIENT,))) is not None:
        return True
    return name.strip() == "assistant"


FORMATS = (
    CallFormat(
        name="harmony",
        openers=("<|start|>", "<|channel|>", _MESSAGE),
        closers=(_CALLS_CLOSE,),
        ends=(*_ENDS, "<|start|>"),
        strays=(_CALLS_OPEN,),
        read=_read,
        untyped_json=True,
    ),
    CallFormat(name="functionary-2", openers=(_RECIPIENT,), strays=(_CONTENT,), read=_read_header),
    CallFormat(name="functionary-sender", openers=("<|from|>",), read=_skip_sender),
    CallFormat(name="functionary", openers=(">>>",), read=_read_at_line, at_line=True),
    CallFormat(name="functionary", openers=(">>>",), read=_read_in_line, tentative=True),
)
