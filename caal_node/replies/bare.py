"""Calls without any marker: JSON, Python lists, `name {json}`, code fences, `Action:`.

Here the text is speech until it proves to be a call: by its place (the beginning of a line, or
behind the end of a sentence), by a tool's own name, and by arguments.
"""

from __future__ import annotations

import re
from typing import Protocol

from caal_node.replies.markers import markers
from caal_node.replies.names import plausible
from caal_node.replies.reading import Dialect, Reading
from caal_node.replies.source import Steps
from caal_node.replies.syntax.block import read_block
from caal_node.replies.syntax.call_object import read_call_object
from caal_node.replies.syntax.calls_python import bracketed, end_keywords
from caal_node.replies.syntax.json_text import json_value
from caal_node.replies.syntax.loose import Unreadable, keywords

_TAIL_CHARS = 160
"""How much of the text before a bare call is looked at for words that make it an example."""
_EXAMPLE = re.compile(
    r"\b(?:examples?|for instance|e\.g\.|samples?|looks? like|would (?:look|be|write|call|use|say)"
    r"|could (?:write|call|use|say)|syntax|don't call|do not call|never call)\b[^\n]*\s*\Z",
    re.IGNORECASE,
)
_SENTENCE_ENDS = frozenset(".!?:;>)…。！？：")
_BLANK = re.compile(r"[ \t\r]*")
_IDENTIFIER = re.compile(r"[^\W\d][\w.\-]*")
_KEYWORD = re.compile(r"\s*(?:\)|[^\W\d]\w*\s*=(?!=))")
_MAX_KEYWORD_CHARS = 80
_CALL_LANGUAGES = frozenset(
    [
        "json",
        "jsonc",
        "json5",
        "tool_call",
        "tool_calls",
        "tool_code",
        "tool",
        "function_call",
        "xml",
        "text",
        "plaintext",
    ]
) | {""}
_INFO = re.compile(r"[\w+.-]*")
_MAX_INFO_CHARS = 24
_ACTION = "Action:"
_ACTION_INPUT = ("Action Input:", "action_input:", "Input:")
_FUNCTION_CALL = "function call<|role_sep|>"
_FUNCTOOLS = "functools["
"""Phi 4 mini and FireFunction: a list of calls behind this word."""
_TO = ("to=", " to=")
_BLOCK = Dialect(name="action", openers=(_ACTION,), read=read_block)


class Running(Reading, Protocol):
    """The parser, as seen from here."""

    def open(self, dialect: Dialect, opener: str) -> Steps[None]:
        """Let `dialect` read what follows `opener`."""
        ...


class BareCalls:
    """Keeps track of where in a line, a code span or a fence the text stands."""

    def __init__(self, reading: Running) -> None:
        self._reading = reading
        self.line_start = True
        self._after_call = False
        self._fence = False
        """Inside a code fence that holds no call."""
        self._closing_fence = False
        """A fence that held a call is still to be closed."""
        self._span = False
        """Inside a code span."""
        self._tail = ""
        box = reading.desk.box
        heads = [_ACTION, _FUNCTION_CALL, _FUNCTOOLS, *(tool.name for tool in box.tools)]
        self._heads: dict[str, tuple[str, ...]] = {}
        for head in heads:
            self._heads[head[0]] = (*self._heads.get(head[0], ()), head)

    # -- where the text stands --------------------------------------------------------------

    @property
    def quoting(self) -> bool:
        """Whether markers are being shown, not used."""
        return self._fence or self._span

    def passed(self, text: str) -> None:
        """`text` has gone by as running text."""
        if "\n" in text:
            self.line_start = text.rpartition("\n")[2].strip(" \t") == ""
            self._span = False
        elif text.strip():
            self.line_start = False
        if text.strip():
            self._after_call = False
        self._tail = (self._tail + text)[-_TAIL_CHARS:]

    def after_call(self) -> None:
        self.line_start = True
        self._after_call = True
        self._span = False
        self._tail = ""

    def _say(self, text: str) -> None:
        self.passed(text)
        self._reading.say(text)

    def _say_back(self, text: str) -> None:
        """`text` was read for a call and is none."""
        self._reading.say_back(text)
        self.passed(text)

    def _example(self) -> bool:
        return _EXAMPLE.search(self._tail) is not None

    def _sentence_over(self) -> bool:
        last = self._tail.rstrip()[-1:]
        return not last or last in _SENTENCE_ENDS

    # -- the beginning of the reply, and of a line --------------------------------------------

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
            self._say(source.advance(source.at + len(head)))

    def at_line(self) -> Steps[None]:
        """A line begins, or a call has just ended."""
        source = self._reading.source
        if self._after_call:
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
        if self._fence:
            self.line_start = False
            return
        head = yield from source.look(self._heads.get(char, ()))
        if head is None:
            self.line_start = False
            return
        source.record()
        source.advance(source.at + len(head))
        if head == _ACTION:
            made = yield from self._action()
        elif head in (_FUNCTION_CALL, _FUNCTOOLS):
            made = yield from read_block(self._reading, _BLOCK, head)
        else:
            made = yield from self._named(head)
        text = source.recorded()
        if made:
            self.after_call()
        else:
            self.line_start = False
            self._say_back(text)

    def _named(self, name: str) -> Steps[bool]:
        """`set_timer {"minutes": 5}`, `set_timer(minutes=5)` on a line of its own."""
        reading = self._reading
        source = reading.source
        char = yield from source.peek()
        if char == "(" and not self._example():
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
        if char not in ("{", " ", "\n", "\r", ":") or self._example():
            return False
        if char == ":":
            source.advance(source.at + 1)
        while (char := (yield from source.peek())) in (" ", "\n", "\r", "\t"):
            source.advance(source.at + 1)
        if char != "{":
            return False
        if not (yield from source.has(2)) or source.text[source.at + 1] not in '"} \n':
            return False
        call = reading.desk.open(name)
        text, whole = yield from json_value(source)
        if whole:
            call.end_json(text)
        else:
            call.cut_off()
        return True

    def _action(self) -> Steps[bool]:
        """`Action:` and a list of calls, or a name with `Action Input:`."""
        reading = self._reading
        source = reading.source
        char = yield from source.skip_space()
        if char in ("`", "{", "[") and not self._example():
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
        call = reading.desk.open(name)
        text, whole = yield from json_value(source)
        if whole:
            call.end_json(text)
        else:
            call.cut_off()
        return True

    # -- brackets ---------------------------------------------------------------------------

    def at_bracket(self, bracket: str) -> Steps[bool]:
        """`{` or `[` in running text. Always takes at least the bracket."""
        if self.quoting:
            self._say(self._reading.source.advance(self._reading.source.at + 1))
            return True
        if bracket == "{":
            made = yield from self._object()
        else:
            made = yield from self._list()
        if made:
            self.after_call()
        return True

    def _object(self) -> Steps[bool]:
        source = self._reading.source
        strict = not (self.line_start or self._after_call)
        if (
            (strict and not self._sentence_over())
            or (strict and self._reading.desk.box.open)
            or self._example()
        ):
            self._say(source.advance(source.at + 1))
            return False
        source.record()
        made = yield from read_call_object(self._reading, marked=False, strict=strict)
        text = source.recorded()
        if not made:
            self._say_back(text)
        return made

    def _list(self) -> Steps[bool]:
        source = self._reading.source
        source.record()
        source.advance(source.at + 1)
        char = yield from source.skip_space()
        made = False
        if char == "{":
            strict = not (self.line_start or self._after_call)
            if not self._example() and not (strict and not self._sentence_over()):
                made = yield from read_call_object(self._reading, marked=False, strict=strict)
                if made:
                    yield from self._rest_of_list()
        elif char.isalpha() or char == "_":
            made = yield from self._python_list()
        text = source.recorded()
        if not made:
            self._say_back(text)
        return made

    def _rest_of_list(self) -> Steps[None]:
        source = self._reading.source
        while True:
            char = yield from source.skip_space()
            if char == ",":
                source.advance(source.at + 1)
            elif char == "{":
                yield from read_call_object(self._reading, marked=True)
            else:
                yield from source.take("]")
                return

    def _python_list(self) -> Steps[bool]:
        """`[set_timer(minutes=5), get_time()]`, from behind the first bracket."""
        source = self._reading.source
        made = False
        while True:
            name = yield from self._identifier()
            box = self._reading.desk.box
            known = box.named(name) is not None
            if (not made and not (known or self.line_start)) or not plausible(name):
                return made
            if (yield from source.peek()) != "(" or (not made and self._example()):
                return made
            if not made and not (yield from self._keyword_follows()):
                return made
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
            return True

    def _identifier(self) -> Steps[str]:
        source = self._reading.source
        while True:
            found = _IDENTIFIER.match(source.text, source.at)
            if found is None:
                return ""
            if found.end() < len(source.text) or source.closed or len(found.group()) > 128:
                return source.advance(found.end())
            yield

    def _keyword_follows(self) -> Steps[bool]:
        """Whether the bracket that begins here holds `name=` or nothing."""
        source = self._reading.source
        length = 2
        while (yield from source.has(length)):
            inside = source.text[source.at + 1 : source.at + length]
            if _KEYWORD.match(inside + " ") and inside[-1:] not in ("=",):
                return True
            if not re.fullmatch(r"\s*\w*\s*=?", inside) or length > _MAX_KEYWORD_CHARS:
                return False
            length += 1
        return False

    # -- code -------------------------------------------------------------------------------

    def backticks(self, run: str) -> Steps[None]:
        """A run of backticks was taken."""
        if len(run) < 3:
            self._say(run)
            self._span = not self._span
            return
        if self._closing_fence:
            self._closing_fence = False
            self._tail = ""
            self.line_start = True
            return
        if self._fence:
            self._fence = False
            self._say(run)
            return
        yield from self._fence_opens(run)

    def _fence_opens(self, run: str) -> Steps[None]:
        source = self._reading.source
        source.record()
        while True:
            found = _INFO.match(source.text, source.at)
            end = found.end() if found else source.at
            if end < len(source.text) or source.closed or end - source.at > _MAX_INFO_CHARS:
                break
            yield
        language = source.advance(end).lower()
        char = ""
        if language in _CALL_LANGUAGES and not self._example():
            char = yield from source.skip_space()
        opening = run + source.recorded()
        tail, self._tail = self._tail, ""
        if char == "<" and (yield from source.look(tuple(markers().openers))) is not None:
            self._closing_fence = True
            self.line_start = True
            return
        if char and char in "{[":
            self.line_start = True
            source.record()
            if char == "{":
                made = yield from read_call_object(self._reading, marked=False)
            else:
                made = yield from self._fenced_list()
            text = source.recorded()
            if made:
                self._closing_fence = True
                self.after_call()
                return
            self._fence = True
            self._tail = tail
            self._say_back(opening + text)
            return
        if char in self._heads and char != "A":
            head = yield from source.look(self._heads[char])
            if head is not None:
                source.record()
                source.advance(source.at + len(head))
                made = (
                    yield from self._named(head)
                    if head in self._reading.desk.box.by_name
                    else _no()
                )
                text = source.recorded()
                if made:
                    self._closing_fence = True
                    self.after_call()
                    return
                opening += text
        self._fence = True
        self._tail = tail
        self._say_back(opening)

    def _fenced_list(self) -> Steps[bool]:
        source = self._reading.source
        source.advance(source.at + 1)
        char = yield from source.skip_space()
        if char == "{":
            made = yield from read_call_object(self._reading, marked=False)
            if made:
                yield from self._rest_of_list()
            return made
        if char.isalpha() or char == "_":
            return (yield from self._python_list())
        return False


def _no() -> Steps[bool]:
    return False
    yield
