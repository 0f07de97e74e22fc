"""Code spans and code fences: what they show is no call, but a fence may hold one."""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ParseContext, ReadOutcome
from caal_node.reply_parser.formats import FORMAT_BY_OPENER
from caal_node.reply_parser.unmarked.bracket_calls import BracketCalls
from caal_node.reply_parser.unmarked.line_calls import LineCalls

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


class FencedCalls:
    """Reads runs of backticks, and what a code fence holds."""

    def __init__(
        self,
        context: ParseContext,
        lines: LineCalls,
        brackets: BracketCalls,
    ) -> None:
        self._context = context
        self._position = context.position
        self._lines = lines
        self._brackets = brackets

    def at_backticks(self, run: str) -> Steps[None]:
        """Deal with a run of backticks that was taken, or the first three of a longer one."""
        cursor, position = self._context.cursor, self._position
        if len(run) < len(_FENCE):
            self._context.say(run)
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
            self._context.say(run)
        else:
            yield from self._open_fence(run)

    def _open_fence(self, run: str) -> Steps[None]:
        context, cursor, position = self._context, self._context.cursor, self._position
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
            read = yield from self._read_tentative(opener)
        else:
            read = yield from self._read_call(char, language)
        shown = cursor.recorded()
        if read is ReadOutcome.BROKEN:
            skipped = yield from context.skip_broken_call(opening + shown)
            if skipped or (char in ("{", "[") and self._brackets.report_end_inside(shown)):
                read = ReadOutcome.CALL
        if read is ReadOutcome.CALL:
            position.fence_to_close = True
            position.after_call()
            return
        position.fence = True
        position.remember(before)
        self._context.say_rejected(opening + shown)

    def _read_tentative(self, opener: str) -> Steps[ReadOutcome]:
        """Read what a fence holds that begins with a tentative opener."""
        call_format = FORMAT_BY_OPENER[opener]
        self._context.cursor.advance_by(len(opener))
        made = yield from call_format.read(self._context, call_format, opener)
        return ReadOutcome.CALL if made else ReadOutcome.SPEECH

    def _read_call(self, char: str, language: str) -> Steps[ReadOutcome]:
        """Read what the fence holds. char: the first character in it."""
        if not char:
            return ReadOutcome.SPEECH
        if char in "{[":
            self._position.line_start = True
            return (yield from self._brackets.in_fence(char))
        if language == _PYTHON:
            return (yield from self._read_python())
        name = yield from self._lines.peek_tool_name(char)
        if name is None:
            return ReadOutcome.SPEECH
        self._context.cursor.advance_by(len(name))
        self._context.events.guard_call_beginning()
        return (yield from self._lines.read_named(name))

    def _read_python(self) -> Steps[ReadOutcome]:
        """Read `print(set_timer(minutes=5))` or `x = set_timer(minutes=5)`, one or several. Other
        code behind them is dropped."""
        cursor = self._context.cursor
        made = ReadOutcome.SPEECH
        while (char := (yield from cursor.skip_space())) and char != "`":
            wrapped = yield from cursor.take(_PRINT)
            if not wrapped:
                yield from self._skip_target()
            name = yield from self._lines.peek_tool_name((yield from cursor.peek()))
            if name is None:
                if made is not ReadOutcome.CALL:
                    self._context.events.guard_call_beginning()
                break
            cursor.advance_by(len(name))
            read = yield from self._lines.read_named(name, wrapped=wrapped)
            if read is not ReadOutcome.CALL:
                self._context.events.guard_call_beginning()
                made = made if made is ReadOutcome.CALL else read
                break
            made = read
            yield from cursor.take(")" if wrapped else ";")
        if made is ReadOutcome.CALL:
            yield from cursor.take_until((_FENCE,), _MAX_CODE_CHARS)
        return made

    def _skip_target(self) -> Steps[None]:
        """Skip `x = ` in front of a call."""
        cursor = self._context.cursor
        target, stop = yield from cursor.take_until(("=", "(", "\n", "`"), _MAX_TARGET_CHARS)
        if stop == "=" and target.strip().isidentifier():
            cursor.advance_by(1)
            yield from cursor.skip_space()
        else:
            cursor.unread(target)
