"""What may stand between a dialect's markers, in any of the shared syntaxes.

Nearly every dialect is the same inside: a name and arguments, or an object that holds both, one
or several, with separators that carry nothing. So one reader serves them all, and a model that
puts one family's syntax between another family's markers is understood, too.
"""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext, ReadOutcome
from caal_node.reply_parser.syntax.block_names import at_word
from caal_node.reply_parser.syntax.call_block import CallBlock
from caal_node.reply_parser.syntax.call_object import read_bare_object, read_call_object
from caal_node.reply_parser.syntax.call_values import call_parts, end_from_value
from caal_node.reply_parser.syntax.elements import read_invoke
from caal_node.reply_parser.syntax.json_text import json_value
from caal_node.reply_parser.syntax.key_value_pairs import read_pairs
from caal_node.reply_parser.syntax.tags import Tag, read_tag
from caal_node.reply_parser.values import load_json

_FENCE_LANGUAGES = ("json", "python", "tool_call", "tool_code")
_SQUARE_NOISE = ("[ARGS]", "[CALL_ID]", "[TOOL_CALLS]", "[/TOOL_CALLS]", "]<]minimax[>[")
_OWN_KINDS = frozenset(
    ("tool_call", "tool_calls", "tool_sep", "toolcall", "function_call", "function_calls")
) | {"function", "invoke", "parameter", "param", "arg_key", "arg_value"}
"""Kinds of tags that only calls have, whatever their namespace."""
_END_WORDS = ("end", "eot", "eom", "eos", "call|>", "return", "end▁of")


def read_block(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    """Read calls up to a closer, or to where something else begins."""
    return (yield from read_named_block(reading, dialect, None))


def read_named_block(reading: ParseContext, dialect: Format, name: str | None) -> Steps[bool]:
    """The same, where a header has already told the name."""
    source = reading.source
    block = CallBlock(reading, dialect)
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
            more = yield from at_word(block)
        if not more:
            if block.call is not None:
                block.cut()
            if block.made and gap and not block.over:
                source.unread(gap)
            return block.made > 0


def _at_tag(block: CallBlock) -> Steps[bool]:
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
    if _begins_turn(tag.text):
        block.end_bare()
        source.unread(tag.text)
        return False
    if tag.text in dialect.openers:
        if block.made and block.pending is None:
            block.reading.desk.restarted()
        block.end_bare()
        return block.pass_marker()
    if tag.kind in ("invoke", "function") and not tag.closing and tag.value:
        block.end_bare()
        block.made += 1
        yield from read_invoke(block.reading, dialect, tag)
        return True
    if tag.kind == "arg_key" and not tag.closing and block.pending is not None:
        yield from read_pairs(block.reading, dialect, block.take_call(), tag)
        return True
    return _pass_tag(block, tag)


def _begins_turn(text: str) -> bool:
    # The scanner knows all dialects, and dialects use this.
    from caal_node.reply_parser.markers import markers

    opens = markers().openers.get(text)
    return opens is not None and opens.turn


def _pass_tag(block: CallBlock, tag: Tag) -> bool:
    """A tag that carries no arguments: one of the dialect's own, or where the block ends."""
    # The scanner knows all dialects, and dialects use this.
    from caal_node.reply_parser.markers import APART, markers

    passes = tag.kind == "" or tag.text in block.dialect.strays or tag.kind in _OWN_KINDS
    passes = passes and APART not in tag.text  # What holds that was no marker.
    if passes or (not block.made and tag.text in markers().strays):
        if tag.closing or any(word in tag.text for word in _END_WORDS):
            block.end_bare()
        return block.pass_marker()
    block.end_bare()
    block.reading.source.unread(tag.text)
    return False


def _at_brace(block: CallBlock) -> Steps[bool]:
    reading, closers = block.reading, block.dialect.closers
    if block.pending is None and block.dialect.tentative and not block.made:
        return (yield from _first_bare(block))
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
    cut = min((at for at in (text.find(c) for c in closers) if at >= 0), default=-1)
    if not whole:
        if cut < 0:
            block.cut()
            return False
        reading.source.retry(text[cut:])
        text = text[:cut]
    if block.call is None:
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
    block.take_call().end_json(text)
    return True


def _first_bare(block: CallBlock) -> Steps[bool]:
    """The object behind an opener that alone says nothing."""
    reading = block.reading
    before = reading.source.recorded_chars
    read = yield from read_bare_object(reading, strict=False, closers=block.dialect.closers)
    if read is ReadOutcome.CALL:
        block.made += 1
    elif read is ReadOutcome.TORN:
        text = reading.source.recorded_from(before)
        block.made += yield from reading.wreck(text)
    return read is ReadOutcome.CALL


def _at_square(block: CallBlock, char: str) -> Steps[bool]:
    # The scanner knows all dialects, and dialects use this.
    from caal_node.reply_parser.marker_next import next_marker
    from caal_node.reply_parser.markers import markers

    source = block.reading.source
    noise = yield from source.take_any(_SQUARE_NOISE)
    if noise == "[CALL_ID]":
        yield from source.until(("[", "{", "\n"), 64)
        return True
    if noise in ("[TOOL_CALLS]", "[/TOOL_CALLS]"):
        block.end_bare()
        block.over = noise == "[/TOOL_CALLS]"
        return block.pass_marker() and not block.over
    if noise is None:
        marker = yield from next_marker(source)
        if marker and (block.made or marker not in markers().strays):
            block.end_bare()
            return False
        source.advance(source.at + max(1, len(marker)))
    return True


def _skip_fence(block: CallBlock) -> Steps[None]:
    """A code fence around arguments: the backticks, and `json` behind them."""
    source = block.reading.source
    while (yield from source.peek()) == "`":
        source.advance(source.at + 1)
    yield from source.take_any(_FENCE_LANGUAGES)
