"""Words in a block of calls: a name, a name with its arguments, or speech behind a call."""

from __future__ import annotations

import re

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import CallFormat
from caal_node.reply_parser.spelling import plausible
from caal_node.reply_parser.syntax.call_block import CallBlock
from caal_node.reply_parser.syntax.gemma_arguments import end_braces, read_braces
from caal_node.reply_parser.syntax.json_text import read_json
from caal_node.reply_parser.syntax.python_calls import end_keywords, read_parentheses
from caal_node.reply_parser.tool_index import properties_of
from caal_node.reply_parser.values import typed

_MAX_TEXT_CHARS = 160
_NAME_ENDS = ("<", "{", "[", "(", "\n", "`", "\\n", "]")
_NAME_BEGINS = re.compile(r"[\w\"'`]")
_NAME_AND_PAIRS = re.compile(r"(\w\S*)((?:\s+[\w.-]+=(?:\"[^\"]*\"|'[^']*'|\S+))+)")
_PAIR = re.compile(r"([\w.-]+)=(?:\"([^\"]*)\"|'([^']*)'|(\S+))")


def read_word(block: CallBlock) -> Steps[bool]:
    """Read the words that come next. False: the block ends in front of them."""
    context, cursor, call_format = block.context, block.context.cursor, block.call_format
    tools, tentative = context.calls.tools, block.call_format.tentative
    closers = (closer for closer in call_format.closers if closer[0] not in "<[")
    text, stop = yield from cursor.take_until((*_NAME_ENDS, *closers), _MAX_TEXT_CHARS)
    name = text.strip()
    if not text and stop:
        if block.pending is None:
            return False
        cursor.advance_by(1)  # A stray bracket behind a name.
        return True
    if name.startswith("call:"):
        return (yield from _read_gemma_call(block, name[5:], stop))
    pairs = _NAME_AND_PAIRS.fullmatch(name)
    if pairs is not None and (
        tools.named(pairs[1]) is not None
        or (tools.accepts_any_name and plausible(pairs[1]) and not tentative)
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
        fits = False
    if stop == "<" and not named and (yield from cursor.peek_any(_own_tags(call_format))) is None:
        fits = False
    if block.made and not named and stop in ("\n", "", "\\n", "`"):
        fits = False  # Speech behind a call that was never closed.
    if block.pending is not None and block.call is not None and not named:
        return True  # `json` behind a header's name, and the like.
    if not fits and (stop != "<" or tentative or tools.find(name) is None):
        return (yield from _read_no_name(block, text, stop))
    if block.pending is not None and block.pending.strip() != "function":
        block.end_pending()
    block.set_name(name)
    if stop == "(":
        inner, whole = yield from read_parentheses(cursor)
        call = block.take_call()
        if whole:
            end_keywords(call, inner, context.markers)
        else:
            call.cut_off()
    return True


def _own_tags(call_format: CallFormat) -> tuple[str, ...]:
    """Return what may stand behind an unknown name for it to be a call's."""
    own = (*call_format.closers, *call_format.openers, *call_format.strays)
    return (*own, "<|", "<｜", "<tool_sep>")


def _read_no_name(block: CallBlock, text: str, stop: str) -> Steps[bool]:
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


def _read_gemma_call(block: CallBlock, name: str, stop: str) -> Steps[bool]:
    block.end_pending()
    block.set_name(name.strip())
    if stop != "{":
        block.cut_off_pending()
        return stop != ""
    text, ended = yield from read_braces(block.context.cursor, block.call_format.closers)
    call = block.take_call()
    if ended:
        end_braces(call, text)
    else:
        call.cut_off()
    return True
