"""What may stand between a dialect's markers, in any of the shared syntaxes.

Nearly every dialect is the same inside: a name and arguments, or an object that holds both, one
or several, with separators that carry nothing. So one reader serves them all, and a model that
puts one family's syntax between another family's markers is understood, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from caal_node.replies.arguments import load_json, typed
from caal_node.replies.calls import OpenCall
from caal_node.replies.names import plausible, properties_of
from caal_node.replies.reading import Dialect, Reading
from caal_node.replies.source import Steps
from caal_node.replies.syntax.call_object import read_call_object
from caal_node.replies.syntax.calls_python import bracketed, end_keywords
from caal_node.replies.syntax.elements import read_invoke, read_pairs
from caal_node.replies.syntax.gemma import end_braces, read_braces
from caal_node.replies.syntax.json_text import json_value
from caal_node.replies.syntax.objects import call_parts, end_from_value
from caal_node.replies.syntax.tags import Tag, read_tag

_MAX_NAME_CHARS = 160
_NAME_ENDS = ("<", "{", "[", "(", "\n", "`", "\\n", "]<]")
_PAIRS = re.compile(r"(\S+)((?:\s+[\w.-]+=(?:\"[^\"]*\"|'[^']*'|\S+))+)")
_PAIR = re.compile(r"([\w.-]+)=(?:\"([^\"]*)\"|'([^']*)'|(\S+))")
_SQUARE_NOISE = ("[ARGS]", "[CALL_ID]", "[TOOL_CALLS]", "[/TOOL_CALLS]", "]<]minimax[>[")
_END_WORDS = ("end", "eot", "eom", "eos", "call|>", "return", "end▁of")


@dataclass(slots=True)
class _Block:
    reading: Reading
    dialect: Dialect
    pending: str | None = None
    """A name whose arguments have not come yet."""
    call: OpenCall | None = None
    """The pending name's call, once it is certain."""
    made: int = 0
    over: bool = False
    """Whether a closer ended it."""

    def name(self, name: str) -> None:
        if self.call is not None:
            self.call.cut_off()
        self.pending = name
        box = self.reading.desk.box
        self.call = self.reading.desk.open(name) if box.find(name) is not None else None

    def take_call(self) -> OpenCall:
        """The pending call, opened now if it was not."""
        call = self.call or self.reading.desk.open(self.pending or "")
        self.pending = self.call = None
        self.made += 1
        return call

    def end_bare(self) -> None:
        """A name was all there was: a call without arguments."""
        if self.pending is None:
            return
        if self.pending.strip() in ("function", ""):
            self.pending = self.call = None
            return
        self.take_call().end({})

    def pass_marker(self) -> None:
        """A marker went by that nobody needs again, whether a call follows or not."""
        if not self.made and self.pending is None:
            self.reading.source.record()

    def cut(self) -> None:
        if self.pending is not None:
            self.take_call().cut_off()


def read_block(reading: Reading, dialect: Dialect, opener: str) -> Steps[bool]:
    """Read calls up to a closer, or to where something else begins."""
    return (yield from read_named_block(reading, dialect, None))


def read_named_block(reading: Reading, dialect: Dialect, name: str | None) -> Steps[bool]:
    """The same, where a header has already told the name."""
    source = reading.source
    block = _Block(reading, dialect)
    if name is not None:
        block.name(name)
    while True:
        char = yield from source.skip_space()
        gap = source.skipped
        if not char:
            block.cut()
            return block.made > 0
        if char == "<":
            more = yield from _at_tag(block)
        elif char == "{":
            more = yield from _at_brace(block)
        elif char in "[]":
            more = yield from _at_square(block, char)
        elif char in ",;})":
            source.advance(source.at + 1)
            more = True
        elif char == "`":
            yield from _skip_fence(block)
            more = True
        elif char == "\\" and (yield from source.take("\\n")):
            more = True
        else:
            more = yield from _at_word(block)
        if not more:
            if block.call is not None:
                block.cut()
            if block.made and gap and not block.over:
                source.unread(gap)
            return block.made > 0


def _at_tag(block: _Block) -> Steps[bool]:
    source, dialect = block.reading.source, block.dialect
    tag = yield from read_tag(source)
    if tag is None:
        block.cut()
        if source.closed:
            source.advance(len(source.text))  # The reply ends inside a tag.
        return False
    if tag.text in dialect.closers:
        block.end_bare()
        block.over = True
        return False
    if tag.text in dialect.ends:
        block.end_bare()
        source.unread(tag.text)
        return False
    if tag.text in dialect.openers:
        if block.made and block.pending is None:
            block.reading.desk.restarted()
        block.end_bare()
        block.pass_marker()
        return True
    if tag.kind in ("invoke", "function") and not tag.closing and tag.value:
        block.end_bare()
        block.made += 1
        yield from read_invoke(block.reading, dialect, tag)
        return True
    if tag.kind == "arg_key" and not tag.closing and block.pending is not None:
        yield from read_pairs(block.reading, dialect, block.take_call(), tag)
        return True
    return _pass_tag(block, tag)


def _pass_tag(block: _Block, tag: Tag) -> bool:
    """A tag that carries no arguments: one of the dialect's own, or where the block ends."""
    if tag.kind == "" or tag.text in block.dialect.strays or tag.kind in _OWN_KINDS:
        if tag.closing or any(word in tag.text for word in _END_WORDS):
            block.end_bare()
        block.pass_marker()
        return True
    block.end_bare()
    block.reading.source.unread(tag.text)
    return False


_OWN_KINDS = frozenset(
    ("tool_call", "tool_calls", "tool_sep", "toolcall", "function_call", "function_calls")
    + ("function", "invoke", "parameter", "param", "arg_key", "arg_value")
)


def _at_brace(block: _Block) -> Steps[bool]:
    reading, closers = block.reading, block.dialect.closers
    if block.pending is None:
        marked = not block.dialect.tentative
        made = yield from read_call_object(reading, marked=marked, closers=closers)
        if not made and not marked:
            return False
        block.made += 1
        if not made:
            reading.desk.broken("", "The call has no name.")
        return True
    text, whole = yield from json_value(reading.source)
    call, pending = block.call, block.pending
    cut = min((at for at in (text.find(c) for c in closers) if at >= 0), default=-1)
    if not whole:
        if cut < 0:
            block.cut()
            return False
        reading.source.retry(text[cut:])
        text = text[:cut]
    if call is None:
        # The name is no tool's: the object may hold a call of its own.
        try:
            value = load_json(text)
        except ValueError:
            value = None
        parts = call_parts(value)
        if parts is not None and parts[1] is not None:
            block.pending = None
            block.made += 1
            end_from_value(reading.desk, value)
            return True
    del pending
    block.take_call().end_json(text)
    return True


def _at_square(block: _Block, char: str) -> Steps[bool]:
    source = block.reading.source
    noise = yield from source.take_any(_SQUARE_NOISE)
    if noise == "[CALL_ID]":
        yield from source.until(("[", "{", "\n"), 64)
        return True
    if noise in ("[TOOL_CALLS]", "[/TOOL_CALLS]"):
        block.end_bare()
        block.over = noise == "[/TOOL_CALLS]"
        return not block.over
    if noise is None:
        source.advance(source.at + 1)
    return True


def _skip_fence(block: _Block) -> Steps[None]:
    """A code fence around arguments: the backticks, and `json` behind them."""
    source = block.reading.source
    while (yield from source.peek()) == "`":
        source.advance(source.at + 1)
    yield from source.take_any(("json", "python", "tool_call", "tool_code"))


def _at_word(block: _Block) -> Steps[bool]:
    reading, source = block.reading, block.reading.source
    text, stop = yield from source.until(
        (*_NAME_ENDS, *(c for c in block.dialect.closers if c[0] not in "<[]")), _MAX_NAME_CHARS
    )
    name = text.strip()
    if not text and stop:
        if block.pending is None:
            return False
        source.advance(source.at + 1)  # A stray bracket behind a name.
        return True
    if name.startswith("call:"):
        return (yield from _gemma(block, name[5:], stop))
    box = reading.desk.box
    pairs = _PAIRS.fullmatch(name)
    if pairs is not None and (box.named(pairs[1]) is not None or box.open):
        block.end_bare()
        block.name(pairs[1])
        _end_pairs(block.take_call(), pairs[2])
        return True
    named = box.named(name) is not None
    fits = named or (
        not block.dialect.tentative
        and plausible(name)
        and (box.open or stop in ("\n", "<", "[", "(", "\\n"))
    )
    if stop == "" and not (yield from source.peek()):
        # The reply ends inside a name, or in prose.
        if fits and block.made == 0:
            block.name(name)
            block.cut()
            return False
        source.unread(text)
        return False
    if stop == "{" and text == name and not named and block.pending is None:
        fits = False
    if stop == "<" and not named and (yield from source.look(_own_tags(block.dialect))) is None:
        fits = False
    if block.made and not named and stop in ("\n", "", "\\n", "`"):
        fits = False  # Speech behind a call that was never closed.
    if block.pending is not None and block.call is not None and not named:
        return True  # `json` behind a header's name, and the like.
    if not fits and not (
        stop == "<" and not block.dialect.tentative and box.find(name) is not None
    ):
        return (yield from _no_name(block, text, stop))
    if block.pending is not None and block.pending.strip() != "function":
        block.end_bare()
    if stop == "(":
        block.name(name)
        inner, whole = yield from bracketed(source)
        call = block.take_call()
        if whole:
            end_keywords(call, inner)
        else:
            call.cut_off()
        return True
    block.name(name)
    return True


def _own_tags(dialect: Dialect) -> tuple[str, ...]:
    """What may stand behind an unknown name for it to be a call's."""
    return (*dialect.closers, *dialect.openers, *dialect.strays, "<|", "<｜", "<tool_sep>")


def _no_name(block: _Block, text: str, stop: str) -> Steps[bool]:
    """What follows is no name. In front of arguments it is a bad call, else it is speech."""
    source = block.reading.source
    if block.made == 0 and stop == "{" and plausible(text.strip()):
        block.made += 1
        yield from json_value(source)
        block.reading.desk.broken("", "The call cannot be read.")
        return True
    source.unread(text)
    return False


def _end_pairs(call: OpenCall, text: str) -> None:
    """`minutes=5 label=tea`"""
    properties = properties_of(call.tool)
    call.end(
        {
            m[1]: typed(next(g for g in m.groups()[1:] if g is not None), properties.get(m[1]))
            for m in _PAIR.finditer(text)
        }
    )


def _gemma(block: _Block, name: str, stop: str) -> Steps[bool]:
    source = block.reading.source
    block.end_bare()
    block.name(name.strip())
    if stop != "{":
        block.cut()
        return stop != ""
    text, ended = yield from read_braces(source, block.dialect.closers)
    call = block.take_call()
    if ended:
        end_braces(call, text)
    else:
        call.cut_off()
    return True
