"""Reading a reply, in pieces or whole: running text, the markers that are found in it, and what its
lines begin with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.events import Event, Reply, summarise
from caal_node.reply_parser.formats import FORMAT_BY_LINE_OPENER, FORMAT_BY_OPENER, FORMATS, MARKERS
from caal_node.reply_parser.markers import (
    LINE_THINKING,
    THINKING_BLOCKS,
    THINKING_CLOSERS,
    prefix_pattern,
    spoken_rest,
    thinking_closers,
)
from caal_node.reply_parser.parse_context import (
    CallFormat,
    MarkerScrubber,
    ParseContext,
    ReadOutcome,
)
from caal_node.reply_parser.syntax.values import read_arguments
from caal_node.reply_parser.tool_index import ToolIndex
from caal_node.reply_parser.unmarked.bracket_calls import read_at_backticks, read_at_bracket
from caal_node.reply_parser.unmarked.named_calls import read_named, read_named_tag

_LINES: Final = re.compile(r"\n(?:[ \t\r]*\n)*")
"""The end of a line, and empty lines."""


class ReplyParser:
    """Reads one reply as it streams.

    tools: OpenAI-style schemas; without any, every name is allowed.
    in_thinking: the prompt left a think block open, so the reply begins inside it.
    id_prefix: what call ids begin with; they are numbered from 1, so a conversation that needs
        ids of its own for every reply gives a prefix of its own for each.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        *,
        in_thinking: bool = False,
        id_prefix: str = "call_",
    ) -> None:
        index = ToolIndex.from_schemas(tools)
        self._context = ParseContext(index, MARKERS, in_thinking=in_thinking, id_prefix=id_prefix)
        self._prompted = in_thinking
        """Whether the prompt left thinking open."""
        self._steps = self._read()
        self._finished = False
        self.invented_result = False
        """Whether the model has begun to make up, behind a call, what that call gave. Whatever
        comes from then on rests on it."""

    def feed(self, chunk: str) -> list[Event]:
        """Take the next piece of the reply, and return the events that it made certain."""
        if self._finished or not chunk:
            return []
        context = self._context
        context.cursor.append(chunk)
        next(self._steps, None)
        self.invented_result = context.invented_result
        return context.events.take()

    def finish(self) -> list[Event]:
        """End the reply, and return the events that are left. Later chunks are not read."""
        if self._finished:
            return []
        self._finished = True
        self._context.cursor.closed = True
        next(self._steps, None)
        self.invented_result = self._context.invented_result
        return self._context.events.take()

    def _read(self) -> Steps[None]:
        """Read the reply to its end, and yield whenever more text is needed."""
        context, cursor, position = self._context, self._context.cursor, self._context.position
        if context.thinking is None:
            yield from read_missing_header(context)
        yield from read_missing_recipient(context)
        while True:
            plain = context.thinking is None and not context.literal
            if plain and position.broken_depth:
                yield from skip_rest_of_broken_call(context)
            if (
                plain
                and position.line_start
                and not position.broken_depth
                and (yield from read_line_beginning(context))
            ):
                continue
            found = MARKERS.scan.search(cursor.text, cursor.at)
            end = found.start() if found is not None else len(cursor.text)
            if end > cursor.at:
                context.pass_on(cursor.advance(end))
            if found is not None and (yield from self._handle(found.group())):
                continue
            if not cursor.closed:
                yield
            elif cursor.at >= len(cursor.text):
                context.events.release()
                return

    def _handle(self, text: str) -> Steps[bool]:
        """Deal with what the scanner found. False: more text is needed first."""
        context, cursor = self._context, self._context.cursor
        if text[0] == "`" or text in ("{", "[", "\n"):
            return (yield from self._handle_single(text))
        if MARKERS.is_marker(text):
            cursor.advance_by(len(text))
            yield from self._handle_marker(text)
        elif cursor.closed:
            cursor.advance_by(len(text))
            context.pass_on(spoken_rest(text))
        else:
            return False
        return True

    def _handle_single(self, text: str) -> Steps[bool]:
        """Deal with a bracket, backticks or a new line, which may begin a call without markers."""
        context, cursor = self._context, self._context.cursor
        at_end = cursor.at + len(text) >= len(cursor.text) and not cursor.closed
        if at_end and text in ("[", "`", "``"):
            return False  # `[` begins markers, too, and one backtick may not be alone.
        lines = _LINES.match(cursor.text, cursor.at)
        if lines is not None:
            context.pass_on(cursor.advance(lines.end()))
        elif context.thinking is not None or context.literal:
            context.pass_on(cursor.advance_by(len(text)))
        elif text[0] == "`":
            cursor.advance_by(len(text))
            yield from read_at_backticks(context, text)
        else:
            return (yield from read_at_bracket(context, text))
        return True

    def _handle_marker(self, marker: str) -> Steps[None]:
        context, events = self._context, self._context.events
        context.gap_before_marker, events.gap = events.gap, True
        call_format = FORMAT_BY_OPENER.get(marker)
        if context.thinking is not None:
            yield from self._handle_marker_in_thinking(marker, call_format)
        elif context.literal:
            if marker in context.literal:
                context.literal = ()
                if call_format is not None:
                    yield from context.read_format(call_format, marker)
        elif context.position.quoting:
            if marker in MARKERS.tentative or marker in MARKERS.in_line:
                events.gap = context.gap_before_marker
                context.pass_on(marker)
        elif marker in MARKERS.in_line and not context.position.line_start:
            events.gap = context.gap_before_marker
            context.pass_on(marker)
        elif marker in THINKING_BLOCKS or marker in LINE_THINKING:
            context.begin_thinking(thinking_closers(marker))
        elif marker in THINKING_CLOSERS:
            context.position.after_unopened_thinking()
            events.end_unopened_thinking()
        elif call_format is not None:
            yield from context.read_format(call_format, marker)

    def _handle_marker_in_thinking(
        self, marker: str, call_format: CallFormat | None
    ) -> Steps[None]:
        context = self._context
        closers: tuple[str, ...] = context.thinking or ()
        closes = marker in closers
        if call_format is not None and (closes or call_format.in_thinking):
            if not closes and not call_format.ends:
                context.events.hold()
            yield from context.read_format(call_format, marker)
        elif closes:
            context.thinking = None
            context.events.skip_space = True
            context.position.after_thinking()
        elif marker in THINKING_BLOCKS and self._prompted:
            context.begin_thinking((THINKING_BLOCKS[marker], *THINKING_CLOSERS))
        else:
            inner = THINKING_BLOCKS.get(marker)
            if inner not in closers[:1]:  # Another spelling of the closer ends the inner block.
                context.thinking = tuple(one for one in closers if one != inner)
            context.events.think(marker)


def parse_reply(
    text: str, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool = False
) -> Reply:
    """Return what a whole reply means. The arguments are those of `ReplyParser`."""
    parser = ReplyParser(tools, in_thinking=in_thinking)
    return summarise([*parser.feed(text), *parser.finish()])


# Calls that are known by where they stand: at the beginning of a line or of the reply.
#
# A line may begin with a tool's own name, or with a word that is no marker elsewhere. A reply's
# first header may be bare words: it stood in the prompt, or lost its special tokens. Functionary's
# template ends with `>>>`, so a reply begins with `all` and a line's end. Servers that leave
# special tokens out make of gpt-oss's headers `analysis`, `assistantfinal` and
# `assistantcommentary to=functions.set_timer json`. Only at a reply's very beginning can such words
# be told from prose: by what stands right behind them.

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


# What is left of a call that a marker broke: it is no call any more, and no speech.
#
#   {"name": "get_w<tool_call>{"name": "get_time", "arguments": {}}</tool_call>eather", "arguments":
#
# Without the call in its middle the halves would close up into one that nobody wrote; spoken, they
# would be noise. `ParseContext.skip_broken_call` leaves out what stands in front of the marker.
# Here is what stands behind it: everything up to where the brackets close, or where a line ends and
# the next one does not continue as JSON does. A model may also break off for good and begin to
# speak, so words are left out only if a bracket closes behind them, or a quote in front of a comma,
# a colon or a bracket.

_OPENING, _CLOSING, _QUOTES = "[{(", "]})", "\"'"
_BEHIND_STRING = ",:]})"
_FENCE = "```"
_MARKER_BEGINS = "<[]◁"
_STOPS = (*_OPENING, *_CLOSING, *_QUOTES, "<", "◁", "\n", _FENCE)
_CONTINUES = (*_QUOTES, *_CLOSING, ",")
"""How a line begins that continues an object."""
_MAX_PIECE_CHARS = 160
"""The most text without any sign of JSON that is held back."""
_MAX_SPACE_CHARS = 32
_MAX_DEPTH = 32
_SPEECH = re.compile(r"[\s.!?…。]*\w(?:\S*\s+\w|.*[.!?…。！？]\s*\Z)", re.DOTALL)
"""Two words or a sentence: no second half of a name."""
_CLOSING_TAGS = tuple(closer for each in FORMATS if each.tentative for closer in each.closers)
"""Tags that are markers only where they close a call."""


def skip_rest_of_broken_call(context: ParseContext) -> Steps[None]:
    """Read on up to the next marker, or to the end of the broken call.

    `position.broken_depth` is 0 where the call is over.
    """
    cursor, position = context.cursor, context.position
    piece = ""  # Text that has no sign of JSON behind it yet.
    depth = position.broken_depth  # Brackets that are open behind that.
    while position.broken_depth:
        text, stop = yield from cursor.take_until(_STOPS, max(0, _MAX_PIECE_CHARS - len(piece)))
        piece += text
        may_be_marker = stop != "" and stop in _MARKER_BEGINS
        at_marker = may_be_marker and (yield from context.markers.peek(cursor)) != ""
        if at_marker or stop in ("", "\n", _FENCE):
            # Nothing says that the piece is JSON.
            position.broken_depth = min(depth, _MAX_DEPTH)
            if _SPEECH.match(piece) is not None:
                cursor.unread(piece)
                position.broken_depth = 0
            piece = ""
            if at_marker:
                return
            yield from _end_line(context, stop)
            continue
        sign = cursor.advance_by(1)
        piece += sign
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if sign in _QUOTES:
            certain = (yield from _peek_behind_space(cursor)) in _BEHIND_STRING
        else:
            certain = depth < position.broken_depth
        if certain:
            piece = ""
            position.broken_depth = depth = min(depth, _MAX_DEPTH)
            if not depth:
                yield from cursor.take_any(_CLOSING_TAGS)


def _end_line(context: ParseContext, stop: str) -> Steps[None]:
    """Deal with the end of a line or of the reply, a fence, or a piece that became long."""
    cursor, position = context.cursor, context.position
    if stop == _FENCE or not (yield from cursor.peek()):
        position.broken_depth = 0
    elif stop and position.broken_depth:
        char = yield from cursor.skip_space()
        space = cursor.skipped
        continues = char in _CONTINUES or (yield from context.markers.peek(cursor))
        if not char or not continues:
            cursor.unread(space)
            position.broken_depth = 0


def _peek_behind_space(cursor: Cursor) -> Steps[str]:
    """Return the next character that is no white space, or " "; nothing is taken."""
    for length in range(1, _MAX_SPACE_CHARS):
        if not (yield from cursor.has(length)):
            break
        char = cursor.text[cursor.at + length - 1]
        if not char.isspace():
            return char
    return " "
