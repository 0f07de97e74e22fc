"""Reading a reply, in pieces or whole: running text, and the markers that are found in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.events import Event, Reply, summarise
from caal_node.reply_parser.formats import FORMAT_BY_OPENER, MARKERS
from caal_node.reply_parser.markers import (
    LINE_THINKING,
    THINKING_BLOCKS,
    THINKING_CLOSERS,
    spoken_rest,
    thinking_closers,
)
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.tool_index import ToolIndex
from caal_node.reply_parser.unmarked.beginnings import (
    read_line_beginning,
    read_missing_header,
    read_missing_recipient,
)
from caal_node.reply_parser.unmarked.bracket_calls import read_at_backticks, read_at_bracket
from caal_node.reply_parser.unmarked.broken_call import skip_rest_of_broken_call

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
