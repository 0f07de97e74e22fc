"""What may stand between a format's markers, in any of the shared syntaxes.

Nearly every format is the same inside: a name and arguments, or an object that holds both, one or
several, with separators that carry nothing. So one reader serves them all, and a model that puts
one family's syntax between another family's markers is understood, too.
"""

from __future__ import annotations

from caal_node.reply_parser.argument_repair import is_cut, lacks_one_quote
from caal_node.reply_parser.arguments import load_json
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.markers import SEPARATOR
from caal_node.reply_parser.parse_context import CallFormat, ParseContext, ReadOutcome
from caal_node.reply_parser.syntax.call_block import CallBlock, read_word
from caal_node.reply_parser.syntax.call_object import read_bare_object, read_call_object
from caal_node.reply_parser.syntax.call_values import call_parts, end_from_value
from caal_node.reply_parser.syntax.elements import read_elements, read_pairs
from caal_node.reply_parser.syntax.streamed_values import read_json
from caal_node.reply_parser.syntax.tags import Tag, read_tag

_FENCE_LANGUAGES = ("json", "python", "tool_call", "tool_code")
_SQUARE_MARKERS = ("[ARGS]", "[CALL_ID]", "[TOOL_CALLS]", "[/TOOL_CALLS]", "]<]minimax[>[")
_MAX_CALL_ID_CHARS = 64
_CALL_KINDS = frozenset(
    ("tool_call", "tool_calls", "tool_sep", "toolcall", "function_call", "function_calls")
) | {"function", "invoke", "parameter", "param", "arg_key", "arg_type", "arg_value"}
"""Kinds of tags that only calls have, whatever their namespace."""
_END_WORDS = ("end", "eot", "eom", "eos", "call|>", "return", "end▁of")


def read_block(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read calls up to a closer, or to where something else begins. False: there are none."""
    return (yield from read_named_block(context, call_format, None))


def read_named_block(
    context: ParseContext, call_format: CallFormat, name: str | None
) -> Steps[bool]:
    """Read calls like `read_block`, where a header has already told the first one's name."""
    cursor = context.cursor
    block = CallBlock(context, call_format)
    if name is not None:
        block.set_name(name)
    while True:
        char = yield from cursor.skip_space()
        space = cursor.skipped
        if not char:
            block.cut_off_pending()
            return block.made > 0
        if char == "<":
            more = yield from _read_tag(block)
        elif char == "{":
            more = yield from _read_brace(block)
        elif char in "[]":
            more = yield from _read_square(block)
        elif char in ",;})ĠĊ":
            cursor.advance_by(1)
            more = True
        elif char == "`":
            yield from _skip_fence(block)
            more = True
        elif char == "\\" and (yield from cursor.take("\\n")):
            more = True
        else:
            more = yield from read_word(block)
        if not more:
            if block.call is not None:
                block.cut_off_pending()
            if block.made and space and not block.over:
                cursor.unread(space)
            return block.made > 0


# -- what may come next: each returns False where the block ends ----------------------------


def _read_tag(block: CallBlock) -> Steps[bool]:
    cursor, call_format = block.context.cursor, block.call_format
    tag = yield from read_tag(cursor)
    if tag is None:
        block.cut_off_pending()
        if cursor.closed:
            cursor.take_rest()  # The reply ends inside a tag.
        return False
    if tag.text in call_format.closers:
        block.end_pending()
        block.over = True
        return False
    if tag.text in call_format.ends or tag.text in block.context.markers.turn_openers:
        block.end_pending()
        cursor.unread(tag.text)
        return False
    if tag.text in call_format.openers:
        if block.made and block.pending is None:
            block.context.calls.restarted()
        block.end_pending()
        return block.pass_marker(name_due=True)
    if tag.kind in ("invoke", "function") and not tag.closing and tag.value:
        block.end_pending()
        block.made += 1
        yield from read_elements(block.context, call_format, tag)
        return True
    if tag.kind == "arg_key" and not tag.closing and block.pending is not None:
        yield from read_pairs(cursor, call_format, block.take_call(), tag)
        return True
    return _pass_tag(block, tag)


def _pass_tag(block: CallBlock, tag: Tag) -> bool:
    """Deal with a tag that carries no arguments: pass it, or end the block in front of it."""
    passes = tag.kind == "" or tag.text in block.call_format.strays or tag.kind in _CALL_KINDS
    passes = passes and SEPARATOR not in tag.text  # What holds that was no marker.
    if passes or (not block.made and tag.text in block.context.markers.strays):
        ends = tag.closing or any(word in tag.text for word in _END_WORDS)
        if ends:
            block.end_pending()
        return block.pass_marker(name_due=not ends)
    block.end_pending()
    block.context.cursor.unread(tag.text)
    return False


def _read_brace(block: CallBlock) -> Steps[bool]:
    context, closers = block.context, block.call_format.closers
    tentative = block.call_format.tentative
    if block.pending is None and tentative and not block.made:
        return (yield from _read_first_bare(block))
    if block.pending is None:
        made = yield from read_call_object(context, marked=not tentative, closers=closers)
        if not made and tentative:
            return False
        block.made += 1
        if not made:
            context.calls.broken("", "The call has no name.")
        return True
    text, whole = yield from read_json(context.cursor)
    if not whole:
        cut = min((at for at in (text.find(c) for c in closers) if at >= 0), default=-1)
        if cut < 0 or (is_cut(text) and not lacks_one_quote(text[:cut])):
            block.cut_off_pending()
            return False
        context.cursor.try_unread(text[cut:])
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
            end_from_value(context.calls, value)
            return True
    block.take_call().end_json(text, ended=not whole)
    return True


def _read_first_bare(block: CallBlock) -> Steps[bool]:
    """Read the object behind an opener that alone says nothing."""
    context = block.context
    before = context.cursor.recorded_chars
    read = yield from read_bare_object(context, strict=False, closers=block.call_format.closers)
    if read is ReadOutcome.CALL:
        block.made += 1
    elif read is ReadOutcome.BROKEN:
        text = context.cursor.recorded_from(before)
        block.made += yield from context.skip_broken_call(text)
    return read is ReadOutcome.CALL


def _read_square(block: CallBlock) -> Steps[bool]:
    cursor, markers = block.context.cursor, block.context.markers
    known = yield from cursor.take_any(_SQUARE_MARKERS)
    if known == "[CALL_ID]":
        yield from cursor.take_until(("[", "{", "\n"), _MAX_CALL_ID_CHARS)
        return True
    if known in ("[TOOL_CALLS]", "[/TOOL_CALLS]"):
        block.end_pending()
        block.over = known == "[/TOOL_CALLS]"
        return block.pass_marker(name_due=not block.over) and not block.over
    if known is None:
        marker = yield from markers.peek(cursor)
        if marker and (block.made or marker not in markers.strays):
            block.end_pending()
            return False
        cursor.advance_by(max(1, len(marker)))
    return True


def _skip_fence(block: CallBlock) -> Steps[None]:
    """Skip a code fence around arguments: the backticks, and `json` behind them."""
    cursor = block.context.cursor
    while (yield from cursor.peek()) == "`":
        cursor.advance_by(1)
    yield from cursor.take_any(_FENCE_LANGUAGES)
