"""What a format of tool calls is, and what its reader gets to work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from caal_node.reply_parser.call_builder import CallBuilder
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.markers import MarkerTable


class ReadOutcome(Enum):
    """What text without a marker in front of it proved to be."""

    CALL = "It is a call, whether it can be made or not."
    SPEECH = "It is no call."
    BROKEN = "It begins as only a call does, and breaks off."


class ParseContext(Protocol):
    """The reply that is being read: where its text comes from and where its meaning goes."""

    @property
    def cursor(self) -> Cursor: ...

    @property
    def calls(self) -> CallBuilder: ...

    @property
    def markers(self) -> MarkerTable: ...

    def say(self, text: str) -> None:
        """Pass on `text` as speech."""
        ...

    def mark_gap(self) -> None:
        """Note that something was left out of the speech here, so that what stands on either side
        is kept apart."""
        ...

    def say_rejected(self, text: str) -> str:
        """Pass on as speech what was read for a call and is none, but for the markers in it.

        Returns:
            What was spoken. From a marker on, the text is read again.
        """
        ...

    def skip_broken_call(self, text: str, *, restarted: bool = False) -> Steps[bool]:
        """Leave out `text`, whose reading ended with `ReadOutcome.BROKEN`.

        If a marker broke it, what stands in front of the marker is left out, and so is what
        belongs to the call behind it; reading goes on at the marker.

        restarted: the call begins again behind `text`, so that it is left out without a marker,
            too.

        Returns:
            Whether it was left out.
        """
        ...

    def think(self, text: str) -> None:
        """Pass on `text` as thinking."""
        ...

    def begin_thinking(self, closers: tuple[str, ...]) -> None:
        """Take what follows for thinking, up to one of `closers`."""
        ...

    def begin_literal(self, closers: tuple[str, ...]) -> None:
        """Take what follows for speech in which no marker means a call, up to one of `closers`."""
        ...


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
