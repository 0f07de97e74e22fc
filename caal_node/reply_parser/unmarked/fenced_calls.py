"""Code spans and code fences: what they show is no call, but a fence may hold one."""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.formats import FORMAT_BY_OPENER
from caal_node.reply_parser.parse_context import ParseContext, ReadOutcome
from caal_node.reply_parser.unmarked.bracket_calls import (
    read_bracketed,
    report_end_inside,
)
from caal_node.reply_parser.unmarked.named_calls import peek_tool_name, read_named

_CALL_LANGUAGES = frozenset(
    ("", "json", "jsonc", "json5", "tool", "tool_call", "tool_calls", "tool_code")
) | {"function_call", "xml", "text", "plaintext"}
"""Languages of fences in which models put calls. Program code is not among them."""
_PYTHON = "tool_code"
"""Gemma's language: a call on each line, printed or given a name, as in Python."""
_PRINT = "print("
_MAX_TARGET_CHARS = 64
_MAX_CODE_CHARS = 2_000
_LANGUAGE = re.compile(r"[\w+.-]*")
_MAX_LANGUAGE_CHARS = 24
_FENCE = "```"
_BACKTICKS = re.compile("`*")
_OPENERS = tuple(FORMAT_BY_OPENER)


def read_at_backticks(context: ParseContext, run: str) -> Steps[None]:
    """Deal with a run of backticks that was taken, or the first three of a longer one."""
    cursor, position = context.cursor, context.position
    if len(run) < len(_FENCE):
        context.say(run)
        position.span = not position.span
        return
    while True:
        more = _BACKTICKS.match(cursor.text, cursor.at)
        run += cursor.advance(more.end() if more is not None else cursor.at)
        if cursor.at < len(cursor.text) or cursor.closed:
            break
        yield
    if position.fence_to_close:
        position.fence_to_close = False
        position.forget()
        position.line_start = True
    elif position.fence:
        position.fence = False
        context.say(run)
    else:
        yield from _open_fence(context, run)


def _open_fence(context: ParseContext, run: str) -> Steps[None]:
    cursor, position = context.cursor, context.position
    cursor.record()
    language = (yield from cursor.take_match(_LANGUAGE, _MAX_LANGUAGE_CHARS + 1)).lower()
    char = ""
    if language in _CALL_LANGUAGES and not position.example:
        char = yield from context.markers.skip_strays(cursor)
    opening = run + cursor.recorded()
    before = position.forget()
    opener = (yield from cursor.peek_any(_OPENERS)) if char in ("<", "[", "]") else None
    if opener is not None and opener not in context.markers.tentative:
        position.fence_to_close = True  # The scanner reads the call inside.
        position.line_start = True
        return
    cursor.record()
    if opener is not None:
        read = yield from _read_tentative(context, opener)
    else:
        read = yield from _read_call(context, char, language)
    shown = cursor.recorded()
    if read is ReadOutcome.BROKEN:
        skipped = yield from context.skip_broken_call(opening + shown)
        if skipped or (char in ("{", "[") and report_end_inside(context, shown)):
            read = ReadOutcome.CALL
    if read is ReadOutcome.CALL:
        position.fence_to_close = True
        position.after_call()
        return
    position.fence = True
    position.remember(before)
    context.say_rejected(opening + shown)


def _read_tentative(context: ParseContext, opener: str) -> Steps[ReadOutcome]:
    """Read what a fence holds that begins with a tentative opener."""
    call_format = FORMAT_BY_OPENER[opener]
    context.cursor.advance_by(len(opener))
    made = yield from call_format.read(context, call_format, opener)
    return ReadOutcome.CALL if made else ReadOutcome.SPEECH


def _read_call(context: ParseContext, char: str, language: str) -> Steps[ReadOutcome]:
    """Read what the fence holds. char: the first character in it."""
    if not char:
        return ReadOutcome.SPEECH
    if char in "{[":
        context.position.line_start = True
        return (yield from read_bracketed(context, char, strict=False))
    if language == _PYTHON:
        return (yield from _read_python(context))
    name = yield from peek_tool_name(context, char)
    if name is None:
        return ReadOutcome.SPEECH
    context.cursor.advance_by(len(name))
    context.events.guard_call_beginning()
    return (yield from read_named(context, name))


def _read_python(context: ParseContext) -> Steps[ReadOutcome]:
    """Read `print(set_timer(minutes=5))` or `x = set_timer(minutes=5)`, one or several. Other
    code behind them is dropped."""
    cursor = context.cursor
    made = ReadOutcome.SPEECH
    while (char := (yield from cursor.skip_space())) and char != "`":
        wrapped = yield from cursor.take(_PRINT)
        if not wrapped:
            yield from _skip_target(context)
        name = yield from peek_tool_name(context, (yield from cursor.peek()))
        if name is None:
            if made is not ReadOutcome.CALL:
                context.events.guard_call_beginning()
            break
        cursor.advance_by(len(name))
        read = yield from read_named(context, name, wrapped=wrapped)
        if read is not ReadOutcome.CALL:
            context.events.guard_call_beginning()
            made = made if made is ReadOutcome.CALL else read
            break
        made = read
        yield from cursor.take(")" if wrapped else ";")
    if made is ReadOutcome.CALL:
        yield from cursor.take_until((_FENCE,), _MAX_CODE_CHARS)
    return made


def _skip_target(context: ParseContext) -> Steps[None]:
    """Skip `x = ` in front of a call."""
    cursor = context.cursor
    target, stop = yield from cursor.take_until(("=", "(", "\n", "`"), _MAX_TARGET_CHARS)
    if stop == "=" and target.strip().isidentifier():
        cursor.advance_by(1)
        yield from cursor.skip_space()
    else:
        cursor.unread(target)
