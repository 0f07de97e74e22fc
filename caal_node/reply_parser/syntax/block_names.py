"""Words in a block: a name, a name with its arguments, or speech behind a call."""

from __future__ import annotations

import re

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format
from caal_node.reply_parser.spelling import plausible
from caal_node.reply_parser.syntax.call_block import CallBlock
from caal_node.reply_parser.syntax.gemma_arguments import end_braces, read_braces
from caal_node.reply_parser.syntax.json_text import json_value
from caal_node.reply_parser.syntax.python_calls import bracketed, end_keywords
from caal_node.reply_parser.tool_index import properties_of
from caal_node.reply_parser.values import typed

_MAX_NAME_CHARS = 160
_NAME_ENDS = ("<", "{", "[", "(", "\n", "`", "\\n", "]")
_PAIRS = re.compile(r"(\w\S*)((?:\s+[\w.-]+=(?:\"[^\"]*\"|'[^']*'|\S+))+)")
_NAME_BEGINS = re.compile(r"[\w\"'`]")
_PAIR = re.compile(r"([\w.-]+)=(?:\"([^\"]*)\"|'([^']*)'|(\S+))")


def at_word(block: CallBlock) -> Steps[bool]:
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
    if pairs is not None and (
        box.named(pairs[1]) is not None
        or (box.open and plausible(pairs[1]) and not block.dialect.tentative)
    ):
        block.end_bare()
        block.name(pairs[1])
        _end_pairs(block.take_call(), pairs[2])
        return True
    named = box.named(name) is not None
    if block.dialect.tentative and not _NAME_BEGINS.match(name):
        named = False
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


def _own_tags(dialect: Format) -> tuple[str, ...]:
    """What may stand behind an unknown name for it to be a call's."""
    return (*dialect.closers, *dialect.openers, *dialect.strays, "<|", "<｜", "<tool_sep>")


def _no_name(block: CallBlock, text: str, stop: str) -> Steps[bool]:
    """What follows is no name. In front of arguments it is a bad call, else it is speech."""
    source = block.reading.source
    unread = block.made == 0 and not block.dialect.tentative
    if unread and stop == "{" and plausible(text.strip()):
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


def _gemma(block: CallBlock, name: str, stop: str) -> Steps[bool]:
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
