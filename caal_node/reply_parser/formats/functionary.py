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
    cursor, calls = context.cursor, context.calls
    name, stop = yield from cursor.take_until(("\n",), _MAX_NAME_CHARS)
    if not stop:
        return False
    # The name is what is left without the markers that leaked around it.
    name = context.markers.removed_from(name).partition("<")[0].strip()
    if name == _EVERYBODY:
        yield from cursor.take(stop)
        return True
    if calls.tools.named(name) is None or (yield from cursor.skip_space()) != "{":
        return False
    yield from read_arguments(cursor, calls.open(name))
    return True


def _read_in_line(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read a header behind speech, where nothing but a whole one counts."""
    cursor, calls = context.cursor, context.calls
    name = yield from cursor.peek_any((_EVERYBODY, *calls.tools.by_name))
    if name is None:
        return False
    cursor.advance_by(len(name))
    char = yield from cursor.skip_space()
    if not cursor.skipped.startswith(("\n", "\r\n")):
        return False
    if name == _EVERYBODY:
        return True
    if char != "{":
        return False
    yield from read_arguments(cursor, calls.open(name))
    return True


def _read_header(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read version 2's header: the recipient, and its message behind another marker."""
    cursor, calls = context.cursor, context.calls
    name, stop = yield from cursor.take_until(("\n", _CONTENT), _MAX_NAME_CHARS)
    yield from cursor.skip_space()
    if not stop or not (yield from cursor.take(_CONTENT)):
        return False
    if name.strip() == _EVERYBODY:
        return True
    if calls.tools.named(name.strip()) is None or (yield from cursor.skip_space()) != "{":
        return False
    yield from read_arguments(cursor, calls.open(name.strip()))
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
