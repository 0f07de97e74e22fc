"""Calls that are known by where they stand: at the beginning of a line or of the reply.

A line may begin with a tool's own name, or with a word that is no marker elsewhere. A reply's first
header may be bare words: it stood in the prompt, or lost its special tokens. Functionary's template
ends with `>>>`, so a reply begins with `all` and a line's end. Servers that leave special tokens
out make of gpt-oss's headers `analysis`, `assistantfinal` and `assistantcommentary
to=functions.set_timer json`. Only at a reply's very beginning can such words be told from prose: by
what stands right behind them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.formats import FORMAT_BY_LINE_OPENER, FORMAT_BY_OPENER
from caal_node.reply_parser.markers import prefix_pattern
from caal_node.reply_parser.parse_context import MarkerScrubber, ParseContext, ReadOutcome
from caal_node.reply_parser.syntax.values import read_arguments
from caal_node.reply_parser.unmarked.named_calls import read_named, read_named_tag

_BLANK = re.compile(r"[ \t\r]*")
_MINIMAX_SEPARATORS = ("]<]",)
_CHANNELS: Final = ("analysis", "commentary", "final")
_NEXT: Final = tuple(f"assistant{channel}" for channel in _CHANNELS)
_NEXT_OR_CUT: Final = re.compile(prefix_pattern(_NEXT))
_ALL: Final = "all\n"
_TO: Final = " to="
_MESSAGE: Final = "<|message|>"
_MAX_HEADER_CHARS: Final = 128
_RECIPIENT: Final = re.compile(r" to=(functions\.)?([\w.-]+?)(?:\s*(?:json|code))?\s*")
_LINE_OPENERS: Final = tuple(FORMAT_BY_LINE_OPENER)


def read_line_beginning(context: ParseContext) -> Steps[bool]:
    """Look whether a call begins here, where a line begins or a call has just ended.

    False: it is running text. True: look again; more has arrived, or something was read for a call,
    and what is left may be another.
    """
    cursor, position = context.cursor, context.position
    while (char := cursor.text[cursor.at : cursor.at + 1]) and char in " \t\r;,]}":
        if char in " \t\r":
            blank = _BLANK.match(cursor.text, cursor.at)
            context.say(cursor.advance(blank.end() if blank else cursor.at + 1))
            if not position.line_start:
                return False  # A separator from a marker stands first.
            continue
        if not position.behind_call:
            break
        separator, certain = cursor.match_next(_MINIMAX_SEPARATORS)
        if not certain:
            yield
            return True
        if separator is not None:
            break  # No bracket left over, but MiniMax's separator.
        cursor.advance_by(1)
    if not char or char in "{[`\n":
        return False
    shown = position.fence or position.indented
    tools = context.calls.tools
    names = tools.tag_beginnings if char == "<" else tools.names_from(char)
    word, certain = cursor.match_next(() if shown else (*_LINE_OPENERS, *names))
    if not certain:
        yield
        return True
    if word is None:
        # It may be a marker's beginning, and then a call may begin behind that.
        position.line_start = position.line_start and char == "<"
        return False
    if char == "<":
        return (yield from _read_at_tag(context, word.removeprefix("<")))
    yield from _read_at_word(context, word)
    return True


def _read_at_tag(context: ParseContext, name: str) -> Steps[bool]:
    cursor, position = context.cursor, context.position
    cursor.record()
    read = ReadOutcome.SPEECH
    if not position.example:
        read = yield from read_named_tag(context, name)
    text = cursor.recorded()
    if read is ReadOutcome.SPEECH and not text:
        position.line_start = False
        return False
    yield from _settle(context, read, text)
    return True


def _read_at_word(context: ParseContext, word: str) -> Steps[None]:
    cursor = context.cursor
    cursor.record()
    cursor.advance_by(len(word))
    call_format = FORMAT_BY_LINE_OPENER.get(word)
    if call_format is None:
        read = yield from read_named(context, word)
    elif not context.position.example and (yield from call_format.read(context, call_format, word)):
        read = ReadOutcome.CALL
    else:
        read = ReadOutcome.SPEECH
    if (yield from _settle(context, read, cursor.recorded())):
        context.events.guard_call_beginning()


def _settle(context: ParseContext, read: ReadOutcome, text: str) -> Steps[bool]:
    """Give `text`, which was recorded, back to the speech unless it is a call.

    Returns:
        Whether it was given back.
    """
    position = context.position
    if read is ReadOutcome.CALL:
        position.after_call()
        return False
    if read is ReadOutcome.BROKEN and (yield from context.skip_broken_call(text)):
        return False
    position.line_start = False
    if text:
        context.say_rejected(text)
    return True


def read_missing_header(context: ParseContext) -> Steps[None]:
    """Read what follows such a header, if the reply begins with one."""
    cursor = context.cursor
    header = yield from cursor.peek_any((_ALL, *_CHANNELS))
    if header is None:
        return
    cursor.advance_by(len(header))
    char = yield from cursor.peek()
    if header == _ALL:
        if not char or char.isspace() or char.islower():
            cursor.unread(header)  # A sentence goes on there.
    elif (yield from cursor.peek_any((_MESSAGE,))) is not None:
        yield from _read_harmony(context, header)
    elif char.isupper() or (yield from cursor.peek_any((_TO,))) is not None:
        yield from _read_messages(context, header)
    else:
        cursor.unread(header)


def read_missing_recipient(context: ParseContext) -> Steps[None]:
    """Read ` to=NAME<|message|>`, if the reply begins with it: the prompt began its header."""
    cursor = context.cursor
    if (yield from cursor.peek_any((_TO, _TO.lstrip()))) is None:
        return
    header = cursor.advance(cursor.text.index("to=", cursor.at) + 3)
    stops = (_MESSAGE, " ", "\n", "<|channel|>")
    name, stop = yield from cursor.take_until(stops, _MAX_HEADER_CHARS)
    cursor.unread(header + name)
    start = FORMAT_BY_OPENER["<|start|>"]
    if not stop.startswith("<|") or not (yield from context.read_format(start, "<|start|>")):
        context.say(cursor.advance_by(len(header)))


def _read_harmony(context: ParseContext, channel: str) -> Steps[None]:
    """Read a message whose header has lost its first special token only."""
    call_format = FORMAT_BY_OPENER["<|channel|>"]
    yield from context.read_format(call_format, f"<|channel|>{channel}")


def _read_messages(context: ParseContext, channel: str) -> Steps[None]:
    """Read messages, from behind the first one's channel on."""
    cursor = context.cursor
    first = True
    while True:
        if channel != "final" and (yield from cursor.peek_any((_TO,))) is not None:
            if not (yield from _read_call(context)):
                yield from _read_other(context, channel, first=first)
                return
        elif channel == "analysis":
            yield from _pass_on_message(context, context.events.think)
        elif channel == "commentary":
            scrubber = MarkerScrubber(context.events)
            yield from _pass_on_message(context, scrubber.say)
            scrubber.end()
        else:
            return  # The answer, which is running text like any other.
        header = yield from cursor.take_any(_NEXT)
        if header is None:
            return
        channel, first = header.removeprefix("assistant"), False


def _read_call(context: ParseContext) -> Steps[bool]:
    """Read a call, from ` to=` on. False: it is none, and it was put back."""
    cursor, calls = context.cursor, context.calls
    header, stop = yield from cursor.take_until(("{", "\n", _MESSAGE), _MAX_HEADER_CHARS)
    recipient = _RECIPIENT.fullmatch(header)
    known = recipient is not None and (recipient[1] or calls.tools.named(recipient[2]))
    if stop != "{" or recipient is None or not known:
        cursor.unread(header)
        return False
    yield from read_arguments(cursor, calls.open(recipient[2]))
    context.position.after_call()
    space = (yield from cursor.skip_space()) and cursor.skipped
    if (yield from cursor.peek_any(_NEXT)) is None:
        cursor.unread(space)
    return True


def _read_other(context: ParseContext, channel: str, *, first: bool) -> Steps[None]:
    """Deal with ` to=` without a call: a header that kept its special tokens, or prose."""
    cursor = context.cursor
    header, stop = yield from cursor.take_until((_MESSAGE, "\n"), _MAX_HEADER_CHARS)
    cursor.unread(header)
    if stop == _MESSAGE:
        yield from _read_harmony(context, channel)
    elif first:
        cursor.unread(channel)


def _pass_on_message(context: ParseContext, tell: Callable[[str], None]) -> Steps[None]:
    """Tell a message's text as it arrives, all but what may begin the next header."""
    cursor = context.cursor
    while True:
        found = _NEXT_OR_CUT.search(cursor.text, cursor.at)
        end = found.start() if found is not None else len(cursor.text)
        if end > cursor.at:
            tell(cursor.advance(end))
        if found is not None and found.group() in _NEXT:
            return
        if cursor.closed:
            tell(cursor.take_rest())
            return
        yield
