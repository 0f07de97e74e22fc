"""JSON and Python lists that stand in the text without any marker."""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ReadOutcome
from caal_node.reply_parser.markers import cut_marker, markers, without_markers
from caal_node.reply_parser.spelling import plausible
from caal_node.reply_parser.syntax.call_object import read_bare_object, read_call_object
from caal_node.reply_parser.syntax.python_calls import bracketed, end_keywords
from caal_node.reply_parser.unmarked.text_position import TextPosition, UnmarkedContext
from caal_node.reply_parser.waiting import Limited, Only

_MAX_NAME_CHARS = 128
_IDENTIFIER = re.compile(rf"[^\W\d][\w.\-]{{0,{_MAX_NAME_CHARS}}}")
_MORE_IDENTIFIER = Only(r"[\w.\-]+")
_KEYWORD = re.compile(r"\s*(?:\)|[^\W\d]\w*\s*=(?!=))")
_AGAIN = re.compile(r"(?<=\n)[^\S\n]*[{\[][^\n]*\Z|\{\s*\"\Z")
"""The beginning of another object at the end of what was read: on a line of its own, or where a
string of the one before seemed to end."""
ENDS_INSIDE = "The reply ends in the middle of the call."
_SPEECH_BEHIND = re.compile(r"\n(?=\s*\w)|```")
"""What no name and no key goes on with."""
_MAX_OPEN_CHARS = 128
"""Of a name or a key that the reply ends in."""
_MAX_KEYWORD_CHARS = 80
_MAX_SPACE_CHARS = 32
"""More white space than any writer of JSON puts behind its first bracket."""
_BEHIND = re.compile(rf"\s{{0,{_MAX_SPACE_CHARS}}}")


class BracketCalls:
    """Reads what begins with `{` or `[`."""

    def __init__(self, reading: UnmarkedContext, place: TextPosition) -> None:
        self._reading = reading
        self._place = place

    def at_bracket(self, bracket: str) -> Steps[bool]:
        """`{` or `[` in running text. False: what follows it has not come yet."""
        source, place = self._reading.source, self._place
        if not place.quoting:
            found = _BEHIND.match(source.text, source.at + 1)
            space = found.group() if found is not None else ""
            end = source.at + 1 + len(space)
            char = source.text[end : end + 1]
            if not char and len(space) < _MAX_SPACE_CHARS and not source.closed:
                return False
            if self._may_be_call(bracket, char):
                place.consulted = True
                read = yield from (self._object() if bracket == "{" else self._list())
                if read is ReadOutcome.CALL:
                    place.after_call()
                return True
        place.say(source.advance(source.at + 1))
        return True

    def _may_be_call(self, bracket: str, char: str) -> bool:
        """Whether the bracket, with `char` behind it, is worth reading for a call."""
        place = self._place
        if bracket == "[" and (char.isalpha() or char == "_"):
            return True
        if char != ('"' if bracket == "{" else "{"):
            return False
        if not place.strict:
            return True
        return place.sentence_over and not (bracket == "{" and self._reading.desk.box.open)

    def _object(self) -> Steps[ReadOutcome]:
        source = self._reading.source
        if self._place.example:
            self._place.say(source.advance(source.at + 1))
            return ReadOutcome.SPEECH
        source.record()
        read = yield from read_bare_object(self._reading, strict=self._place.strict)
        yield from self._settle(read)
        return read

    def _list(self) -> Steps[ReadOutcome]:
        source = self._reading.source
        source.record()
        source.advance(source.at + 1)
        char = yield from source.skip_space()
        read = ReadOutcome.SPEECH
        if char == "{":
            if not self._place.example:
                read = yield from self._objects(strict=self._place.strict)
        elif char.isalpha() or char == "_":
            read = yield from self._python_list()
        yield from self._settle(read)
        return read

    def _settle(self, read: ReadOutcome) -> Steps[None]:
        """What was read is a call, or it goes back to the text."""
        source = self._reading.source
        text = source.recorded()
        if read is ReadOutcome.CALL:
            return
        again = _AGAIN.search(text, 1)
        anew = again is not None and "{" in text[: again.start()]
        if again is not None:  # It broke off, and began again.
            source.unread(text[again.start() :])
            text = text[: again.start()]
        torn = read is ReadOutcome.TORN
        if torn and ((yield from self._reading.wreck(text, anew=anew)) or self.ends_inside(text)):
            return
        self._place.say_back(text)

    def ends_inside(self, text: str) -> bool:
        """Whether the reply is over, so that `text`, which was torn, is a call that it ends in."""
        source = self._reading.source
        if not source.closed or source.at < len(source.text):
            return False
        # A quote may be missing only, and then there is speech behind the call's last line.
        open_end = text.rpartition('"')[2]
        spoken = _SPEECH_BEHIND.search(open_end)
        held = open_end[: spoken.start()] if spoken is not None else open_end
        if len(held) > _MAX_OPEN_CHARS:
            return False
        self._reading.desk.broken("", ENDS_INSIDE)
        source.unread(open_end[len(held) :])
        return True

    def _objects(self, *, strict: bool = False) -> Steps[ReadOutcome]:
        """A list of objects, from its first on."""
        source = self._reading.source
        read = yield from read_bare_object(self._reading, strict=strict)
        if read is not ReadOutcome.CALL:
            return read
        while True:
            char = yield from source.skip_space()
            if char == ",":
                source.advance(source.at + 1)
            elif char == "{":
                yield from read_call_object(self._reading, marked=True)
            else:
                yield from source.take("]")
                return ReadOutcome.CALL

    def _python_list(self) -> Steps[ReadOutcome]:
        """`[set_timer(minutes=5), get_time()]`, from behind the first bracket."""
        source = self._reading.source
        made = False
        while True:
            name = yield from self._identifier()
            box = self._reading.desk.box
            known = box.named(name) is not None
            refused = ReadOutcome.CALL if made else ReadOutcome.SPEECH
            if not plausible(name) or not (known or made or not self._reading.spoken):
                return refused
            if (yield from source.peek()) != "(" or (not made and self._place.example):
                return refused
            if not made and (read := (yield from self._keyword())) is not ReadOutcome.CALL:
                return read
            call = self._reading.desk.open(name)
            made = True
            inner, whole = yield from bracketed(source)
            if whole:
                end_keywords(call, inner)
            else:
                call.cut_off()
            char = yield from source.skip_space()
            if char == ",":
                source.advance(source.at + 1)
                char = yield from source.skip_space()
                if char.isalpha() or char == "_":
                    continue
            yield from source.take("]")
            return ReadOutcome.CALL

    def _identifier(self) -> Steps[str]:
        source = self._reading.source
        while True:
            found = _IDENTIFIER.match(source.text, source.at)
            if found is None:
                return ""
            if (
                found.end() < len(source.text)
                or source.closed
                or len(found.group()) > _MAX_NAME_CHARS
            ):
                return source.advance(found.end())
            left = _MAX_NAME_CHARS + 1 - len(found.group())
            source.waiting = Limited(_MORE_IDENTIFIER, left)
            yield

    def _keyword(self) -> Steps[ReadOutcome]:
        """Whether the bracket that begins here holds `name=` or nothing, as a call's does. Where a
        marker stands instead, it was taken."""
        source = self._reading.source
        length = 2
        while (yield from source.has(length)):
            inside = without_markers(source.text[source.at + 1 : source.at + length])
            if cut_marker(inside) == len(inside):
                if _KEYWORD.match(inside + " ") and inside[-1:] not in ("=",):
                    return ReadOutcome.CALL
                if not re.fullmatch(r"\s*\w*\s*=?", inside) or length > _MAX_KEYWORD_CHARS:
                    break
            length += 1
        found = markers().strip.search(source.text, source.at, source.at + length)
        if found is None:
            return ReadOutcome.SPEECH
        source.advance(found.end())
        return ReadOutcome.TORN

    def in_fence(self, bracket: str) -> Steps[ReadOutcome]:
        """The same as all that a code fence holds. Not a call: what was read is not spoken yet."""
        if bracket == "{":
            return (yield from read_bare_object(self._reading, strict=False))
        source = self._reading.source
        source.advance(source.at + 1)
        char = yield from source.skip_space()
        if char == "{":
            return (yield from self._objects())
        if char.isalpha() or char == "_":
            return (yield from self._python_list())
        return ReadOutcome.SPEECH
