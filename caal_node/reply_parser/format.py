"""What a format of tool calls is, and what its reader gets to work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from caal_node.reply_parser.call_builder import CallBuilder
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.event_buffer import EventBuffer
from caal_node.reply_parser.markers import SEPARATOR, THINKING_CLOSERS, MarkerTable
from caal_node.reply_parser.text_position import TextPosition
from caal_node.reply_parser.tool_index import ToolIndex

_BARE_HEADER: Final = ">>>"
"""Functionary's header: the one marker without a bracket, so that JSON may seem to hold it."""
_MAX_DEPTH: Final = 32


class ReadOutcome(Enum):
    """What text without a marker in front of it proved to be."""

    CALL = "It is a call, whether it can be made or not."
    SPEECH = "It is no call."
    BROKEN = "It begins as only a call does, and breaks off."


@dataclass(frozen=True, slots=True)
class CallFormat:
    """One way of writing calls. The folder `formats/` holds them, one file for each family."""

    name: str
    openers: tuple[str, ...]
    """Markers that begin it, wherever they stand."""
    read: FormatReader
    """Reads what follows an opener."""
    closers: tuple[str, ...] = ()
    """Markers that end it."""
    ends: tuple[str, ...] = ()
    """Markers in front of which a block of calls ends, unless they stand in a value."""
    strays: tuple[str, ...] = ()
    """Its other markers: they mean nothing outside a call and are never spoken."""
    tentative: bool = False
    """Whether an opener without a call behind it is ordinary text (`<user>`)."""
    at_line: bool = False
    """Whether its openers are ordinary words, which count at the beginning of a line only."""
    untyped_json: bool = False
    """Whether the value of an undeclared parameter is read as JSON where that is possible."""
    turn: bool = False
    """Whether its openers begin another turn, so that no block of calls goes on behind one."""
    unquote: bool = False
    """Whether a declared string may stand in quotes that are not part of it."""
    in_thinking: bool = True
    """Whether an opener counts in the middle of thinking."""


class ParseContext:
    """A reply that is being read.

    in_thinking: the reply begins inside of a think block.
    id_prefix: what the ids of calls begin with.
    """

    def __init__(
        self, tools: ToolIndex, markers: MarkerTable, *, in_thinking: bool, id_prefix: str
    ) -> None:
        self.cursor = Cursor()
        self.markers = markers
        self.events = EventBuffer(markers)
        self.calls = CallBuilder(tools, self.events.emit, id_prefix)
        self.position = TextPosition()
        self.thinking: tuple[str, ...] | None = THINKING_CLOSERS if in_thinking else None
        """What may close the thinking that is open; None outside of thinking."""
        self.literal: tuple[str, ...] = ()
        """What may close the speech in which markers mean nothing; empty outside of it."""
        self.gap_before_marker = False
        """What `events.gap` was before the marker that was found last."""

    def begin_thinking(self, closers: tuple[str, ...]) -> None:
        """Take what follows for thinking, up to one of `closers`."""
        self.thinking = closers
        self.events.skip_space = True

    def begin_literal(self, closers: tuple[str, ...]) -> None:
        """Take what follows for speech in which no marker means a call, up to one of `closers`."""
        self.literal = closers

    def pass_on(self, text: str) -> None:
        """Pass on text without markers, as thinking or as speech."""
        if self.thinking is not None:
            self.events.think(text)
        else:
            self.say(text)

    def say(self, text: str) -> None:
        """Pass on running text without markers as speech."""
        self.position.passed(self.events.with_separator(text))
        self.events.say(text)

    def say_rejected(self, text: str) -> None:
        """Pass on as speech what was read for a call and is none, but for the markers in it. From
        a marker on, it is read again."""
        found = self.markers.strip.search(text)
        header = text.find(_BARE_HEADER, 1)
        if header > 0 and (found is None or header < found.start()):
            if self.cursor.try_unread(text[header:]):  # It may begin a call, as behind any speech.
                text = text[:header]
        elif found is not None and self.cursor.try_unread(text[found.start() :]):
            text = text[: found.start()]
        elif found is None:
            cut = self.markers.partial_start(text)
            if cut < len(text) and (cut > 0 or text[0] != "["):
                # The reading stopped inside a marker; the scanner shall see it whole.
                self.cursor.unread(text[cut:])
                text = text[:cut]
        clean = self.markers.strip.sub(f" {SEPARATOR} ", text)
        self.events.gap = self.events.gap or clean != text
        self.say(clean)
        self.events.gap = self.events.gap or clean != text

    def skip_broken_call(self, text: str, *, restarted: bool = False) -> Steps[bool]:
        """Leave out `text`, whose reading ended with `ReadOutcome.BROKEN`.

        If a marker broke it, what stands in front of the marker is left out, and so is what
        belongs to the call behind it; reading goes on at the marker.

        restarted: the call begins again behind `text`, so that it is left out without a marker,
            too.

        Returns:
            Whether it was left out.
        """
        cursor, found = self.cursor, self.markers.strip.search(text)
        if found is not None:
            broken, cut = True, found.start()
            if not cursor.try_unread(text[cut:]):
                cut = len(text)
        else:  # The reading may have stopped inside a marker, or in front of one.
            cut = self.markers.partial_start(text)
            cursor.unread(text[cut:])
            broken = bool((yield from self.markers.peek(cursor)))
            if not broken:
                cursor.advance_by(len(text) - cut)
        if broken or restarted:
            self.calls.broken("", "The call breaks off in the middle; write it whole.")
        if broken:
            depth = sum(map(text[:cut].count, "[{(")) - sum(map(text[:cut].count, "]})"))
            self.position.broken_depth = min(max(depth, 1), _MAX_DEPTH)
        return broken or restarted

    def read_format(self, call_format: CallFormat, opener: str) -> Steps[bool]:
        """Let `call_format` read what follows `opener`. False: it stays running text."""
        cursor, position, before = self.cursor, self.position, self.events.call_events
        thinking, self.thinking = self.thinking, None
        cursor.record()
        if (yield from call_format.read(self, call_format, opener)):
            cursor.recorded()
            position.after_call()
            if self.events.call_events == before and self.thinking is None:
                position.broken_depth = 0  # A header: what follows is a message of its own.
            return True
        text = cursor.recorded()
        if self.thinking is None:
            self.thinking = thinking
        if call_format.tentative:
            self.events.gap = self.gap_before_marker
            self.pass_on(opener)
            if opener == _BARE_HEADER:
                self.events.guard_call_beginning()
        else:
            text = text.removeprefix(opener)  # Some readers read it again as a tag.
        cursor.unread(text)
        return False


FormatReader: TypeAlias = Callable[[ParseContext, CallFormat, str], Steps[bool]]
"""Takes the context, the format and the opener that was found, and returns whether this was a
call. If it was none, what was read is put back and read again as running text."""
