"""Functionary. 3.2: `>>>set_timer` and its arguments on the next line; `>>>all` is speech.
2: `<|from|>assistant`, `<|recipient|>set_timer` and `<|content|>{...}`, each on a line.

Its template ends the prompt with the first `>>>`, and no line ends in front of the others.
"""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.values import read_arguments

_MAX_NAME_CHARS = 128
_RECIPIENT, _CONTENT = "<|recipient|>", "<|content|>"
_EVERYBODY = "all"
"""The recipient whose message is speech."""


def _read(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    cursor = context.cursor
    name, stop = yield from cursor.take_until(("\n",), _MAX_NAME_CHARS)
    if not stop:
        return False
    # The name is what is left without the markers that leaked around it.
    name = context.markers.removed_from(name).partition("<")[0].strip()
    if name == _EVERYBODY:
        yield from cursor.take(stop)
        return True
    return (yield from _read_call(context, name))


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
    return name == _EVERYBODY or (yield from _read_call(context, name))


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
    return (yield from _read_call(context, name))


def _read_call(context: ParseContext, name: str) -> Steps[bool]:
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
    CallFormat(name="functionary-2", openers=(_RECIPIENT,), strays=(_CONTENT,), read=_read_header),
    CallFormat(name="functionary-sender", openers=("<|from|>",), read=_skip_sender),
    CallFormat(name="functionary", openers=(">>>",), read=_read, at_line=True),
    CallFormat(name="functionary", openers=(">>>",), read=_read_in_line, tentative=True),
)
