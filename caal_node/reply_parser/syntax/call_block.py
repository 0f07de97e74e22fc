"""A block of calls that is being read, and the words in it: names, arguments or speech."""

from __future__ import annotations

import re
from dataclasses import dataclass

from caal_node.reply_parser.arguments import typed
from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.literal_arguments import (
    end_braces,
    end_keywords,
    read_braces,
    read_parentheses,
)
from caal_node.reply_parser.syntax.streamed_values import read_json
from caal_node.reply_parser.tool_index import plausible, properties_of

_MAX_PASSED = 4

_MAX_TEXT_CHARS = 160
_NAME_ENDS = ("<", "{", "[", "(", "\n", "`", "\\n", "]")
_NAME_BEGINS = re.compile(r"[\w\"'`]")
_NAME_AND_PAIRS = re.compile(
    r"(\w\S*+)((?:\s++[\w.-]++=(?>\"[^\"]*\"(?!\S)|'[^']*'(?!\S)|[^\s\"']\S*+))++)"
)
_IDENTIFIER = re.compile(r"[^\W\d][\w.:/-]*")
_PAIR = re.compile(r"(?<![\w.-])([\w.-]++)=(?:\"([^\"]*)\"|'([^']*)'|(\S+))")


@dataclass(slots=True)
class CallBlock:
    """A block of calls that is being read, and the call in it whose arguments are to come."""

    context: ParseContext
    call_format: CallFormat
    pending: str | None = None
    """A name whose arguments have not come yet."""
    call: OpenCall | None = None
    """The pending name's call, once it is certain."""
    made: int = 0
    """How many calls were made."""
    passed: int = 0
    """How many markers were passed in front of a call that may not come."""
    over: bool = False
    """Whether a closer ended it."""
    name_due: bool = False
    """Whether the marker that went by last begins a call, so that a name comes."""

    def set_name(self, name: str) -> None:
        """Note a call's name. Its arguments are to come."""
        if self.call is not None:
            self.call.cut_off()
        self.pending = name
        calls = self.context.calls
        self.call = calls.open(name) if calls.tools.find(name) is not None else None

    def take_call(self) -> OpenCall:
        """Return the pending call, which is opened now if it was not."""
        call = self.call or self.context.calls.open(self.pending or "")
        self.pending = self.call = None
        self.made += 1
        return call

    def end_pending(self) -> None:
        """End the pending call, if there is one, as a call without arguments."""
        if self.pending is None:
            return
        if self.pending.strip() in ("function", ""):
            self.pending = self.call = None
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


def read_word(block: CallBlock) -> Steps[bool]:
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
    if block.pending is not None and block.call is not None and not named:
        return True  # `json` behind a header's name, and the like.
    if not fits and (stop != "<" or tentative or tools.find(name) is None):
        return (yield from _read_no_name(block, text, stop))
    if block.pending is not None and block.pending.strip() != "function":
        block.end_pending()
    block.set_name(name)
    if stop == "(":
        yield from _read_keywords(block)
    return True


def _read_keywords(block: CallBlock) -> Steps[None]:
    """Read the arguments in the round brackets that begin here, and end the pending call."""
    inner, whole = yield from read_parentheses(block.context.cursor)
    call = block.take_call()
    if whole:
        end_keywords(call, inner, block.context.markers)
    else:
        call.cut_off()


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
    cursor = block.context.cursor
    if stop == "(":  # Small models mix it with Python's.
        yield from _read_keywords(block)
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
