"""What a format of tool calls is, and how it gets to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.parse_context import BARE_HEADER, ParseContext


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


FormatReader: TypeAlias = Callable[[ParseContext, CallFormat, str], Steps[bool]]
"""Takes the context, the format and the opener that was found, and returns whether this was a
call. If it was none, what was read is put back and read again as running text."""


def read_format(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Let `call_format` read what follows `opener`. False: it stays running text."""
    cursor, position, before = context.cursor, context.position, context.events.call_events
    thinking, context.thinking = context.thinking, None
    cursor.record()
    if (yield from call_format.read(context, call_format, opener)):
        cursor.recorded()
        position.after_call()
        if context.events.call_events == before and context.thinking is None:
            position.broken_depth = 0  # A header: what follows is a message of its own.
        return True
    text = cursor.recorded()
    if context.thinking is None:
        context.thinking = thinking
    if call_format.tentative:
        context.events.gap = context.gap_before_marker
        context.pass_on(opener)
        if opener == BARE_HEADER:
            context.events.guard_call_beginning()
    else:
        text = text.removeprefix(opener)  # Some readers read it again as a tag.
    cursor.unread(text)
    return False
