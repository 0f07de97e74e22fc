"""What may stand between a format's markers, in any of the shared syntaxes.

Nearly every format is the same inside: a name and arguments, or an object that holds both, one or
several, with separators that carry nothing. So one reader serves them all, and a model that puts
one family's syntax between another family's markers is understood, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from caal_node.reply_parser.arguments import is_cut, lacks_one_quote, load_json, typed
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.events import OpenCall
from caal_node.reply_parser.markers import SEPARATOR
from caal_node.reply_parser.parse_context import CallFormat, ParseContext, ReadOutcome
from caal_node.reply_parser.syntax.call_object import (
    call_parts,
    end_from_value,
    read_bare_object,
    read_call_object,
)
from caal_node.reply_parser.syntax.elements import Tag, read_elements, read_pairs, read_tag
from caal_node.reply_parser.syntax.values import (
    end_braces,
    read_braces,
    read_json,
    read_keywords,
)
from caal_node.reply_parser.tool_index import plausible, properties_of

_FENCE_LANGUAGES = ("json", "python", "tool_call", "tool_code")
_SQUARE_MARKERS = ("[ARGS]", "[CALL_ID]", "[TOOL_CALLS]", "[/TOOL_CALLS]", "]<]minimax[>[")
_MAX_CALL_ID_CHARS = 64
_CALL_KINDS = frozenset(
    ("tool_call", "tool_calls", "tool_sep", "toolcall", "function_call", "function_calls")
) | {"function", "invoke", "parameter", "param", "arg_key", "arg_type", "arg_value"}
"""Kinds of tags that only calls have, whatever their namespace."""
_END_WORDS = ("end", "eot", "eom", "eos", "call|>", "return", "end▁of")
_MAX_PASSED = 4
"""Markers that are passed in front of a call that may not come."""
_MAX_TEXT_CHARS = 160
_NAME_ENDS = ("<", "{", "[", "(", "\n", "`", "\\n", "]")
_NAME_BEGINS = re.compile(r"[\w\"'`]")
_NAME_AND_PAIRS = re.compile(
    r"(\w\S*+)((?:\s++[\w.-]++=(?>\"[^\"]*\"(?!\S)|'[^']*'(?!\S)|[^\s\"']\S*+))++)"
)
_IDENTIFIER = re.compile(r"[^\W\d][\w.:/-]*")
_PAIR = re.compile(r"(?<![\w.-])([\w.-]++)=(?:\"([^\"]*)\"|'([^']*)'|(\S+))")


@dataclass(slots=True)
class _CallBlock:
    """A block of calls that is being read, and the call in it whose arguments are to come."""

    context: ParseContext
    call_format: CallFormat
    pending: OpenCall | None = None
    """A call whose arguments have not come yet."""
    made: int = 0
    """How many calls were made."""
    passed: int = 0
    """How many markers were passed in front of a call that may not come."""
    over: bool = False
    """Whether a closer ended it."""
    name_due: bool = False
    """Whether the marker that went by last begins a call, so that a name comes."""

    @property
    def pending_is_known(self) -> bool:
        """Whether the pending call names a tool."""
        return self.pending is not None and self.pending.tool is not None

    def set_name(self, name: str) -> None:
        """Note a call's name. Its arguments are to come."""
        if self.pending is not None and self.pending.tool is not None:
            self.pending.cut_off()
        self.pending = self.context.calls.open(name)

    def take_call(self) -> OpenCall:
        """Return the pending call."""
        call = self.pending or self.context.calls.open("")
        self.pending = None
        self.made += 1
        return call

    def end_pending(self) -> None:
        """End the pending call, if there is one, as a call without arguments."""
        if self.pending is None:
            return
        if self.pending.name.strip() in ("function", ""):
            self.pending = None
            return
        self.take_call().end({})

    def cut_off_pending(self) -> None:
        """End the pending call, if there is one, as cut off."""
        if self.pending is not None:
            self.take_call().cut_off()

    def pass_marker(self, *, name_due: bool = False) -> bool:
        """Note that a marker went by that carries nothing. False: the block is to end."""
        self.name_due = name_due
        if self.made or self.pending is not None:
            return True
        if self.call_format.tentative or self.call_format.at_line:
            # It is text again if no call follows; not too much of it, or all would be read twice.
            self.passed += 1
            return self.passed <= _MAX_PASSED
        self.context.cursor.record()  # Nobody needs it again, whether a call follows or not.
        return True


def read_block(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read calls up to a closer, or to where something else begins. False: there are none."""
    return (yield from read_named_block(context, call_format, None))


def read_named_block(
    context: ParseContext, call_format: CallFormat, name: str | None
) -> Steps[bool]:
    """Read calls like `read_block`, where a header has already told the first one's name."""
    cursor = context.cursor
    block = _CallBlock(context, call_format)
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
            more = yield from _read_word(block)
        if not more:
            if block.pending_is_known:
                block.cut_off_pending()
            if block.made and space and not block.over:
                cursor.unread(space)
            return block.made > 0


# -- what may come next: each returns False where the block ends ----------------------------


def _read_tag(block: _CallBlock) -> Steps[bool]:
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


def _pass_tag(block: _CallBlock, tag: Tag) -> bool:
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


def _read_brace(block: _CallBlock) -> Steps[bool]:
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
    if not block.pending_is_known:
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


def _read_first_bare(block: _CallBlock) -> Steps[bool]:
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


def _read_square(block: _CallBlock) -> Steps[bool]:
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


def _skip_fence(block: _CallBlock) -> Steps[None]:
    """Skip a code fence around arguments: the backticks, and `json` behind them."""
    cursor = block.context.cursor
    while (yield from cursor.peek()) == "`":
        cursor.advance_by(1)
    yield from cursor.take_any(_FENCE_LANGUAGES)


def _read_word(block: _CallBlock) -> Steps[bool]:
    """Read the words that come next. False: the block ends in front of them."""
    context, cursor, call_format = block.context, block.context.cursor, block.call_format
    tools, tentative = context.calls.tools, block.call_format.tentative
    closers = (closer for closer in call_format.closers if closer[0] not in "<[")
    text, stop = yield from cursor.take_until((*_NAME_ENDS, *closers), _MAX_TEXT_CHARS)
    name = text.strip()
    name_due, block.name_due = block.name_due, False
    if not text and stop:
        if block.pending is None:
            return False
        cursor.advance_by(1)  # A stray bracket behind a name.
        return True
    if name.startswith("call:"):
        return (yield from _read_gemma_call(block, name[5:], stop))
    pairs = _NAME_AND_PAIRS.fullmatch(name)
    if (
        pairs is not None
        and stop
        and (
            tools.named(pairs[1]) is not None
            or (tools.accepts_any_name and plausible(pairs[1]) and not tentative)
        )
    ):
        block.end_pending()
        block.set_name(pairs[1])
        _end_with_pairs(block.take_call(), pairs[2])
        return True
    named = tools.named(name) is not None
    if tentative and not _NAME_BEGINS.match(name):
        named = False
    fits = named or (
        not tentative
        and plausible(name)
        and (tools.accepts_any_name or stop in ("\n", "<", "[", "(", "\\n"))
    )
    if stop == "" and not (yield from cursor.peek()):
        # The reply ends inside a name, or in prose.
        if fits and block.made == 0:
            block.set_name(name)
            block.cut_off_pending()
            return False
        cursor.unread(text)
        return False
    if stop == "{" and text == name and not named and block.pending is None:
        any_name = tools.accepts_any_name and call_format.name_and_json
        fits = any_name and _IDENTIFIER.fullmatch(name) is not None
    if stop == "<" and not named and (yield from cursor.peek_any(_own_tags(call_format))) is None:
        fits = False
    if block.made and not named and not name_due and stop in ("\n", "", "\\n", "`"):
        fits = False  # Speech behind a call that was never closed.
    if block.pending_is_known and not named:
        return True  # `json` behind a header's name, and the like.
    if not fits and (stop != "<" or tentative or tools.find(name) is None):
        return (yield from _read_no_name(block, text, stop))
    if block.pending is not None and block.pending.name.strip() != "function":
        block.end_pending()
    block.set_name(name)
    if stop == "(":
        yield from read_keywords(cursor, block.take_call(), context.markers)
    return True


def _own_tags(call_format: CallFormat) -> tuple[str, ...]:
    """Return what may stand behind an unknown name for it to be a call's."""
    own = (*call_format.closers, *call_format.openers, *call_format.strays)
    return (*own, "<|", "<｜", "<tool_sep>")


def _read_no_name(block: _CallBlock, text: str, stop: str) -> Steps[bool]:
    """Deal with text that is no name. In front of arguments it is a bad call, else speech."""
    cursor = block.context.cursor
    unreadable = block.made == 0 and not block.call_format.tentative
    if unreadable and stop == "{" and plausible(text.strip()):
        block.made += 1
        yield from read_json(cursor)
        block.context.calls.broken("", "The call cannot be read.")
        return True
    cursor.unread(text)
    return False


def _end_with_pairs(call: OpenCall, text: str) -> None:
    """End `call` with arguments like `minutes=5 label=tea`."""
    properties = properties_of(call.tool)
    call.end(
        {
            m[1]: typed(next(g for g in m.groups()[1:] if g is not None), properties.get(m[1]))
            for m in _PAIR.finditer(text)
        }
    )


def _read_gemma_call(block: _CallBlock, name: str, stop: str) -> Steps[bool]:
    block.end_pending()
    block.set_name(name.strip())
    cursor = block.context.cursor
    if stop == "(":  # Small models mix it with Python's.
        yield from read_keywords(cursor, block.take_call(), block.context.markers)
        return True
    if stop != "{":
        block.cut_off_pending()
        return stop != ""
    text, ended = yield from read_braces(cursor, block.call_format.closers)
    call = block.take_call()
    if ended:
        end_braces(call, text)
    else:
        call.cut_off()
    return True
