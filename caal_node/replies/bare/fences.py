"""Code spans and code fences: what they show is no call, but a fence may hold one."""

from __future__ import annotations

import re

from caal_node.replies.bare.brackets import Brackets
from caal_node.replies.bare.lines import Lines
from caal_node.replies.bare.place import Place, Running
from caal_node.replies.marker_next import pass_strays
from caal_node.replies.markers import markers
from caal_node.replies.reading import Read
from caal_node.replies.source import Steps
from caal_node.replies.waiting import Limited, Only

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


class Fences:
    """Reads runs of backticks."""

    def __init__(self, reading: Running, place: Place, lines: Lines, brackets: Brackets) -> None:
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
        if read is Read.TORN:
            torn = yield from self._reading.wreck(opening + shown)
            if torn or (char in ("{", "[") and self._brackets.ends_inside(shown)):
                read = Read.CALL
        if read is Read.CALL:
            place.closing = True
            place.after_call()
            return
        place.fence = True
        place.remember(before)
        place.say_back(opening + shown)

    def _framed(self, opener: str) -> Steps[Read]:
        """What a fence holds that begins with an opener that alone says nothing."""
        dialect = markers().openers[opener]
        self._reading.source.advance(self._reading.source.at + len(opener))
        made = yield from dialect.read(self._reading, dialect, opener)
        return Read.CALL if made else Read.SPEECH

    def _language(self) -> Steps[str]:
        source = self._reading.source
        while True:
            found = _LANGUAGE.match(source.text, source.at)
            end = found.end() if found else source.at
            if end < len(source.text) or source.closed or end - source.at > _MAX_LANGUAGE_CHARS:
                return source.advance(end)
            source.waiting = Limited(_MORE_LANGUAGE, _MAX_LANGUAGE_CHARS + 1 - (end - source.at))
            yield

    def _call(self, char: str, language: str) -> Steps[Read]:
        """What the fence holds."""
        source = self._reading.source
        if not char:
            return Read.SPEECH
        if char in "{[":
            self._place.line_start = True
            return (yield from self._brackets.in_fence(char))
        if language == _PYTHON:
            return (yield from self._code())
        head = yield from self._lines.tool_head(char)
        if head is None:
            return Read.SPEECH
        source.advance(source.at + len(head))
        self._reading.beware()
        return (yield from self._lines.named(head))

    def _code(self) -> Steps[Read]:
        """`print(set_timer(minutes=5))`, `x = set_timer(minutes=5)`; other code behind it goes."""
        source = self._reading.source
        made = Read.SPEECH
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
                if made is not Read.CALL:
                    self._reading.beware()
                break
            source.advance(source.at + len(head))
            read = yield from self._lines.named(head, wrapped=wrapped)
            if read is not Read.CALL:
                self._reading.beware()
                made = made if made is Read.CALL else read
                break
            made = read
            yield from source.take(")" if wrapped else ";")
        if made is Read.CALL:
            yield from source.until(("```",), _MAX_CODE_CHARS)
        return made
