"""JSON and Python lists that stand in the text without any marker."""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ParseContext, ReadOutcome
from caal_node.reply_parser.syntax.call_object import read_bare_object, read_call_object
from caal_node.reply_parser.syntax.literal_arguments import end_keywords, read_parentheses
from caal_node.reply_parser.tool_index import MAX_NAME_CHARS, plausible

ENDS_INSIDE = "The reply ends in the middle of the call."
_IDENTIFIER = re.compile(r"(?:[^\W\d][\w.\-]*)?")
_KEYWORD = re.compile(r"\s*(?:\)|[^\W\d]\w*\s*=(?!=))")
_MAY_BECOME_KEYWORD = re.compile(r"\s*\w*\s*=?")
_MAX_KEYWORD_CHARS = 80
_SECOND_BEGINNING = re.compile(r"(?<=\n)[^\S\n]*[{\[][^\n]*\Z|\{\s*\"\Z")
"""The beginning of another object at the end of what was read: on a line of its own, or where a
string of the one before seemed to end."""
_SPEECH_BEHIND = re.compile(r"\n(?=\s*\w)|```")
"""What neither a name nor a key continues with."""
_MAX_OPEN_STRING_CHARS = 128
"""The most of a name or a key in which the reply may end."""
_MAX_SPACE_CHARS = 32
"""More white space than any writer of JSON puts behind its first bracket."""
_SPACE = re.compile(rf"\s{{0,{_MAX_SPACE_CHARS}}}")


class BracketCalls:
    """Reads what begins with `{` or `[`."""

    def __init__(self, context: ParseContext) -> None:
        self._context = context
        self._position = context.position

    def at_bracket(self, bracket: str) -> Steps[bool]:
        """Deal with `{` or `[` in running text. False: more text is needed first."""
        cursor, position = self._context.cursor, self._position
        if not position.quoting:
            found = _SPACE.match(cursor.text, cursor.at + 1)
            space = found.group() if found is not None else ""
            end = cursor.at + 1 + len(space)
            char = cursor.text[end : end + 1]
            if not char and len(space) < _MAX_SPACE_CHARS and not cursor.closed:
                return False
            if self._may_be_call(bracket, char):
                read = yield from (self._read_object() if bracket == "{" else self._read_list())
                if read is ReadOutcome.CALL:
                    position.after_call()
                return True
        self._context.say(cursor.advance_by(1))
        return True

    def in_fence(self, bracket: str) -> Steps[ReadOutcome]:
        """Read what a code fence holds. If it is no call, it is not spoken yet."""
        if bracket == "{":
            return (yield from read_bare_object(self._context, strict=False))
        return (yield from self._read_items(strict=False))

    def report_end_inside(self, text: str) -> bool:
        """If the reply is over, report that it ends in the call whose beginning is `text`.

        Returns:
            Whether it was reported.
        """
        cursor = self._context.cursor
        if not cursor.closed or cursor.at < len(cursor.text):
            return False
        # Perhaps only a quote is missing, and then there is speech behind the call's last line.
        open_string = text.rpartition('"')[2]
        speech = _SPEECH_BEHIND.search(open_string)
        held = open_string[: speech.start()] if speech is not None else open_string
        if len(held) > _MAX_OPEN_STRING_CHARS:
            return False
        self._context.calls.broken("", ENDS_INSIDE)
        cursor.unread(open_string[len(held) :])
        return True

    def _may_be_call(self, bracket: str, char: str) -> bool:
        """Return whether the bracket, with `char` behind it, is worth reading for a call."""
        position = self._position
        if bracket == "[" and (char.isalpha() or char == "_"):
            return True
        if char != ('"' if bracket == "{" else "{"):
            return False
        if not position.strict:
            return True
        any_name = self._context.calls.tools.accepts_any_name
        return position.sentence_over and not (bracket == "{" and any_name)

    def _read_object(self) -> Steps[ReadOutcome]:
        cursor, position = self._context.cursor, self._position
        if position.example:
            self._context.say(cursor.advance_by(1))
            return ReadOutcome.SPEECH
        cursor.record()
        read = yield from read_bare_object(self._context, strict=position.strict)
        yield from self._settle(read)
        return read

    def _read_list(self) -> Steps[ReadOutcome]:
        self._context.cursor.record()
        read = yield from self._read_items(strict=self._position.strict)
        yield from self._settle(read)
        return read

    def _read_items(self, *, strict: bool) -> Steps[ReadOutcome]:
        """Read a list of objects or of Python's calls, from its bracket on."""
        cursor = self._context.cursor
        cursor.advance_by(1)
        char = yield from cursor.skip_space()
        if char == "{" and not self._position.example:
            return (yield from self._read_objects(strict=strict))
        if char.isalpha() or char == "_":
            return (yield from self._read_python_list())
        return ReadOutcome.SPEECH

    def _settle(self, read: ReadOutcome) -> Steps[None]:
        """Give what was recorded back to the text, unless it is a call."""
        cursor = self._context.cursor
        text = cursor.recorded()
        if read is ReadOutcome.CALL:
            return
        again = _SECOND_BEGINNING.search(text, 1)
        restarted = again is not None and "{" in text[: again.start()]
        if again is not None:
            cursor.unread(text[again.start() :])
            text = text[: again.start()]
        if read is ReadOutcome.BROKEN:
            skipped = yield from self._context.skip_broken_call(text, restarted=restarted)
            if skipped or self.report_end_inside(text):
                return
        self._context.say_rejected(text)

    def _read_objects(self, *, strict: bool) -> Steps[ReadOutcome]:
        """Read a list of objects, from its first on."""
        cursor = self._context.cursor
        read = yield from read_bare_object(self._context, strict=strict)
        if read is not ReadOutcome.CALL:
            return read
        while True:
            char = yield from cursor.skip_space()
            if char == ",":
                cursor.advance_by(1)
            elif char == "{":
                yield from read_call_object(self._context, marked=True)
            else:
                yield from cursor.take("]")
                return ReadOutcome.CALL

    def _read_python_list(self) -> Steps[ReadOutcome]:
        """Read `[set_timer(minutes=5), get_time()]`, from behind the first bracket."""
        cursor, calls = self._context.cursor, self._context.calls
        made = False
        while True:
            name = yield from cursor.take_match(_IDENTIFIER, MAX_NAME_CHARS + 1)
            known = calls.tools.named(name) is not None
            refused = ReadOutcome.CALL if made else ReadOutcome.SPEECH
            if not plausible(name) or not (known or made or not self._context.events.spoken):
                return refused
            if (yield from cursor.peek()) != "(" or (not made and self._position.example):
                return refused
            if not made and (read := (yield from self._check_keyword())) is not ReadOutcome.CALL:
                return read
            call = calls.open(name)
            made = True
            inner, whole = yield from read_parentheses(cursor)
            if whole:
                end_keywords(call, inner, self._context.markers)
            else:
                call.cut_off()
            char = yield from cursor.skip_space()
            if char == ",":
                cursor.advance_by(1)
                char = yield from cursor.skip_space()
                if char.isalpha() or char == "_":
                    continue
            yield from cursor.take("]")
            return ReadOutcome.CALL

    def _check_keyword(self) -> Steps[ReadOutcome]:
        """Find out whether the bracket that begins here holds `name=` or nothing, as a call's
        does. Where a marker stands instead, it is taken."""
        cursor, markers = self._context.cursor, self._context.markers
        length = 2
        while (yield from cursor.has(length)):
            inside = markers.removed_from(cursor.text[cursor.at + 1 : cursor.at + length])
            if markers.partial_start(inside) == len(inside):
                if _KEYWORD.match(inside + " ") and not inside.endswith("="):
                    return ReadOutcome.CALL
                if not _MAY_BECOME_KEYWORD.fullmatch(inside) or length > _MAX_KEYWORD_CHARS:
                    break
            length += 1
        found = markers.strip.search(cursor.text, cursor.at, cursor.at + length)
        if found is None:
            return ReadOutcome.SPEECH
        cursor.advance(found.end())
        return ReadOutcome.BROKEN
