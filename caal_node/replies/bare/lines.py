"""Calls that begin a line: with a tool's own name, or with a word that is no marker elsewhere."""

from __future__ import annotations

import re

from caal_node.replies.bare.place import Place, Running
from caal_node.replies.dialects import dialects
from caal_node.replies.markers import markers
from caal_node.replies.source import Steps
from caal_node.replies.syntax.calls_python import bracketed
from caal_node.replies.syntax.json_arguments import read_arguments
from caal_node.replies.syntax.loose import Unreadable, keywords

_BLANK = re.compile(r"[ \t\r]*")
_TO = ("to=", " to=")


class Lines:
    """Looks at the beginning of the reply, of each line, and at what stands behind a call."""

    def __init__(self, reading: Running, place: Place) -> None:
        self._reading = reading
        self._place = place
        self._heads: dict[str, tuple[str, ...]] = {}
        names = (tool.name for tool in reading.desk.box.tools)
        self._dialects = {
            opener: dialect
            for dialect in dialects()
            if dialect.at_line
            for opener in dialect.openers
        }
        for head in (*self._dialects, *names):
            self._heads[head[0]] = (*self._heads.get(head[0], ()), head)

    def at_start(self) -> Steps[None]:
        """` to=NAME<|message|>`: a header whose beginning was in the prompt."""
        source = self._reading.source
        if (yield from source.look(_TO)) is None:
            return
        head = source.advance(source.text.index("to=", source.at) + 3)
        name, stop = yield from source.until(("<|message|>", " ", "\n", "<|channel|>"), 128)
        source.unread(head + name)
        if stop.startswith("<|"):
            yield from self._reading.open(markers().openers["<|start|>"], "")
        if source.text.startswith(head + name, source.at):
            self._place.say(source.advance(source.at + len(head)))

    def at_line(self) -> Steps[None]:
        """A line begins, or a call has just ended."""
        source = self._reading.source
        if self._place.behind_call:
            while source.text[source.at : source.at + 1] in tuple(";,]}"):
                if (yield from source.look(("]<]",))) is not None:
                    break  # No bracket left over, but MiniMax's separator.
                source.advance(source.at + 1)
        char = source.text[source.at : source.at + 1]
        if not char or char in "{[`<\n":
            return
        if char in " \t\r":
            blank = _BLANK.match(source.text, source.at)
            self._place.say(source.advance(blank.end() if blank else source.at))
            char = source.text[source.at : source.at + 1]
            if not char or char in "{[`<\n":
                return
        if self._place.fence or self._place.indented:
            self._place.line_start = False
            return
        head = yield from source.look(self._heads.get(char, ()))
        if head is None:
            self._place.line_start = False
            return
        source.record()
        source.advance(source.at + len(head))
        dialect = self._dialects.get(head)
        if dialect is not None:
            made = not self._place.example and (
                yield from dialect.read(self._reading, dialect, head)
            )
        else:
            made = yield from self.named(head)
        text = source.recorded()
        if made:
            self._place.after_call()
        else:
            self._place.line_start = False
            self._place.say_back(text)

    def tool_head(self, char: str) -> Steps[str | None]:
        """The tool's name that comes next, if one does; `char` is the next character."""
        names = self._reading.desk.box.by_name
        heads = tuple(head for head in self._heads.get(char, ()) if head in names)
        return (yield from self._reading.source.look(heads))

    def named(self, name: str) -> Steps[bool]:
        """`set_timer {"minutes": 5}`, `set_timer(minutes=5)` on a line of its own."""
        reading = self._reading
        source = reading.source
        char = yield from source.peek()
        if char == "(" and not self._place.example:
            inner, whole = yield from bracketed(source)
            following = yield from source.peek()
            if not whole or (following and following not in "\r\n;`"):
                return False
            try:
                given = keywords(inner, (), literal=True)
            except Unreadable:
                return False  # An expression: program code, no call.
            reading.desk.open(name).end(given)
            return True
        if char not in ("{", " ", "\n", "\r", ":") or self._place.example:
            return False
        if char == ":":
            source.advance(source.at + 1)
        while (char := (yield from source.peek())) in (" ", "\n", "\r", "\t"):
            source.advance(source.at + 1)
        if char != "{":
            return False
        if not (yield from source.has(2)) or source.text[source.at + 1] not in '"} \n':
            return False
        yield from read_arguments(source, reading.desk.open(name))
        return True
