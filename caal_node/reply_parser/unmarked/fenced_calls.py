"""Code spans and code fences: what they show is no call, but a fence may hold one."""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ReadOutcome
from caal_node.reply_parser.marker_next import pass_strays
from caal_node.reply_parser.markers import markers
from caal_node.reply_parser.unmarked.bracket_calls import BracketCalls
from caal_node.reply_parser.unmarked.line_calls import LineCalls
from caal_node.reply_parser.unmarked.text_position import TextPosition, UnmarkedContext
from caal_node.reply_parser.waiting import Limited, Only

_CALL_LANGUAGES = frozenset(
    ("", "json", "jsonc", "json5", "tool", "tool_call", "tool_calls", "tool_code")
) | {"function_call", "xml", "text", "plaintext"}
"""Languages of fences in which models put calls. Program code is not among them."""
_PYTHON = "tool_code"
"""Gemma's: a call a line, printed or given a name, as in Python."""
_PRINT = "print("
_MAX_TARGET_CHARS = 64
_MAX_CODE_CHARS = 2_000
_LANGUAGE = re.compile(r"[\w+.-]*")
_MORE_LANGUAGE = Only(r"[\w+.-]+")
_MAX_LANGUAGE_CHARS = 24
_FENCE_CHARS = 3
_BACKTICKS = re.compile("`*")
_MORE_BACKTICKS = Only("`+")


_OPENERS = tuple(markers().openers)


class FencedCalls:
    """Reads runs of backticks."""

    def __init__(
        self,
        reading: UnmarkedContext,
        place: TextPosition,
        lines: LineCalls,
        brackets: BracketCalls,
    ) -> None:
        self._reading = reading
        self._place = place
        self._lines = lines
        self._brackets = brackets

    def backticks(self, run: str) -> Steps[None]:
        """A run of backticks was taken, or the first three of a longer one."""
        place = self._place
        if len(run) < _FENCE_CHARS:
            place.say(run)
            place.span = not place.span
            return
        place.consulted = True
        source = self._reading.source
        while True:
            more = _BACKTICKS.match(source.text, source.at)
            run += source.advance(more.end() if more is not None else source.at)
            if source.at < len(source.text) or source.closed:
                break
            source.waiting = _MORE_BACKTICKS
            yield
        if place.closing:
            place.closing = False
            place.forget()
            place.line_start = True
        elif place.fence:
            place.fence = False
            place.say(run)
        else:
            yield from self._opens(run)

    def _opens(self, run: str) -> Steps[None]:
        source, place = self._reading.source, self._place
        source.record()
        language = (yield from self._language()).lower()
        char = ""
        if language in _CALL_LANGUAGES and not place.example:
            char = yield from pass_strays(source)
        opening = run + source.recorded()
        before = place.forget()
        opener = (yield from source.look(_OPENERS)) if char in ("<", "[", "]") else None
        if opener is not None and not markers().openers[opener].tentative:
            place.closing = True
            place.line_start = True
            return
        source.record()
        read = yield from (
            self._framed(opener) if opener is not None else self._call(char, language)
        )
        shown = source.recorded()
        if read is ReadOutcome.TORN:
            torn = yield from self._reading.wreck(opening + shown)
            if torn or (char in ("{", "[") and self._brackets.ends_inside(shown)):
                read = ReadOutcome.CALL
        if read is ReadOutcome.CALL:
            place.closing = True
            place.after_call()
            return
        place.fence = True
        place.remember(before)
        place.say_back(opening + shown)

    def _framed(self, opener: str) -> Steps[ReadOutcome]:
        """What a fence holds that begins with an opener that alone says nothing."""
        dialect = markers().openers[opener]
        self._reading.source.advance(self._reading.source.at + len(opener))
        made = yield from dialect.read(self._reading, dialect, opener)
        return ReadOutcome.CALL if made else ReadOutcome.SPEECH

    def _language(self) -> Steps[str]:
        source = self._reading.source
        while True:
            found = _LANGUAGE.match(source.text, source.at)
            end = found.end() if found else source.at
            if end < len(source.text) or source.closed or end - source.at > _MAX_LANGUAGE_CHARS:
                return source.advance(end)
            source.waiting = Limited(_MORE_LANGUAGE, _MAX_LANGUAGE_CHARS + 1 - (end - source.at))
            yield

    def _call(self, char: str, language: str) -> Steps[ReadOutcome]:
        """What the fence holds."""
        source = self._reading.source
        if not char:
            return ReadOutcome.SPEECH
        if char in "{[":
            self._place.line_start = True
            return (yield from self._brackets.in_fence(char))
        if language == _PYTHON:
            return (yield from self._code())
        head = yield from self._lines.tool_head(char)
        if head is None:
            return ReadOutcome.SPEECH
        source.advance(source.at + len(head))
        self._reading.beware()
        return (yield from self._lines.named(head))

    def _code(self) -> Steps[ReadOutcome]:
        """`print(set_timer(minutes=5))`, `x = set_timer(minutes=5)`; other code behind it goes."""
        source = self._reading.source
        made = ReadOutcome.SPEECH
        while (char := (yield from source.skip_space())) and char != "`":
            wrapped = yield from source.take(_PRINT)
            if not wrapped:
                target, stop = yield from source.until(("=", "(", "\n", "`"), _MAX_TARGET_CHARS)
                if stop == "=" and target.strip().isidentifier():
                    source.advance(source.at + 1)
                    yield from source.skip_space()
                else:
                    source.unread(target)
            head = yield from self._lines.tool_head((yield from source.peek()))
            if head is None:
                if made is not ReadOutcome.CALL:
                    self._reading.beware()
                break
            source.advance(source.at + len(head))
            read = yield from self._lines.named(head, wrapped=wrapped)
            if read is not ReadOutcome.CALL:
                self._reading.beware()
                made = made if made is ReadOutcome.CALL else read
                break
            made = read
            yield from source.take(")" if wrapped else ";")
        if made is ReadOutcome.CALL:
            yield from source.until(("```",), _MAX_CODE_CHARS)
        return made
