"""Calls that begin a line: a tool's name, `Action:`, and the words some models put before."""

from __future__ import annotations

import re

from caal_node.replies.bare.place import Place, Running
from caal_node.replies.markers import markers
from caal_node.replies.reading import Dialect
from caal_node.replies.source import Steps
from caal_node.replies.syntax.block import read_block
from caal_node.replies.syntax.calls_python import bracketed, end_keywords
from caal_node.replies.syntax.json_text import json_value
from caal_node.replies.syntax.loose import Unreadable, keywords

_BLANK = re.compile(r"[ \t\r]*")
_ACTION = "Action:"
_ACTION_INPUT = ("Action Input:", "action_input:", "Input:")
_FUNCTION_CALL = "function call<|role_sep|>"
_FUNCTOOLS = "functools["
"""Phi 4 mini and FireFunction: a list of calls behind this word."""
_TO = ("to=", " to=")
_BLOCK = Dialect(name="action", openers=(_ACTION,), read=read_block)


class Lines:
    """Looks at the beginning of the reply, of each line, and at what stands behind a call."""

    def __init__(self, reading: Running, place: Place) -> None:
        self._reading = reading
        self._place = place
        self._heads: dict[str, tuple[str, ...]] = {}
        names = (tool.name for tool in reading.desk.box.tools)
        for head in (_ACTION, _FUNCTION_CALL, _FUNCTOOLS, *names):
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
            self._reading.say(source.advance(blank.end() if blank else source.at))
            char = source.text[source.at : source.at + 1]
            if not char or char in "{[`<\n":
                return
        if self._place.fence:
            self._place.line_start = False
            return
        head = yield from source.look(self._heads.get(char, ()))
        if head is None:
            self._place.line_start = False
            return
        source.record()
        source.advance(source.at + len(head))
        if head == _ACTION:
            made = yield from self._action()
        elif head in (_FUNCTION_CALL, _FUNCTOOLS):
            made = yield from read_block(self._reading, _BLOCK, head)
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
            tool = reading.desk.box.by_name[name]
            try:
                keywords(inner, tuple(tool.properties))
            except Unreadable:
                return False
            if inner.strip() and "=" not in inner:
                return False
            end_keywords(reading.desk.open(name), inner)
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
        yield from self._json_call(name)
        return True

    def _action(self) -> Steps[bool]:
        """`Action:` and a list of calls, or a name with `Action Input:`."""
        reading = self._reading
        source = reading.source
        char = yield from source.skip_space()
        if char in ("`", "{", "[") and not self._place.example:
            return (yield from read_block(reading, _BLOCK, _ACTION))
        name, stop = yield from source.until(("\n",), 128)
        if not stop or reading.desk.box.named(name) is None:
            return False
        yield from source.skip_space()
        if (yield from source.take_any(_ACTION_INPUT)) is None:
            return False
        char = yield from source.skip_space()
        if char != "{":
            return False
        yield from self._json_call(name)
        return True

    def _json_call(self, name: str) -> Steps[None]:
        call = self._reading.desk.open(name)
        text, whole = yield from json_value(self._reading.source)
        if whole:
            call.end_json(text)
        else:
            call.cut_off()
