"""What a dialect gets to work with, and what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

from caal_node.reply_parser.call_builder import CallBuilder
from caal_node.reply_parser.cursor import Cursor, Steps


class ReadOutcome(Enum):
    """What text without a marker in front of it proved to be."""

    CALL = "a call, whether it can be made or not"
    SPEECH = "no call"
    TORN = "it begins as nothing but a call does, and breaks off"


class ParseContext(Protocol):
    """A reply that is being read: where the text comes from, and where its meaning goes."""

    @property
    def source(self) -> Cursor: ...

    @property
    def desk(self) -> CallBuilder: ...

    def say(self, text: str) -> None:
        """This much is speech."""
        ...

    def drop(self) -> None:
        """Something was left out of the speech here; what stands on either side stays apart."""
        ...

    def say_back(self, text: str) -> str:
        """This was read for a call and is speech, but for the markers in it.

        Returns:
            What was said. From a marker on it is read again.
        """
        ...

    def wreck(self, text: str, *, anew: bool = False) -> Steps[bool]:
        """This was read for a call and is `Read.TORN`. If a marker tore it, then what stands in
        front of the marker is left out, and so is what belongs to it behind; it is read on from
        the marker.

        anew: the call begins again behind it, so that it is left out without a marker, too.

        Returns:
            Whether it was left out.
        """
        ...

    def flow(self) -> None:
        """What comes next is speech up to a quote or a backslash; let it straight out."""
        ...

    def think(self, text: str) -> None:
        """This much is thinking."""
        ...

    def begin_thinking(self, closers: tuple[str, ...]) -> None:
        """What follows is thinking, up to one of `closers`."""
        ...

    def begin_literal(self, closers: tuple[str, ...]) -> None:
        """What follows is speech in which no marker means a call, up to one of `closers`."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """One way of writing calls. `dialects/` holds them, one file a family."""

    name: str
    openers: tuple[str, ...]
    """Markers that begin it, wherever they stand."""
    read: FormatReader
    """Reads what follows an opener."""
    closers: tuple[str, ...] = ()
    """Markers that end it."""
    ends: tuple[str, ...] = ()
    """Markers that a block ends in front of, unless they stand in a value."""
    strays: tuple[str, ...] = ()
    """Its other markers: they mean nothing outside a call and are never spoken."""
    tentative: bool = False
    """An opener without a call behind it is ordinary text (`<user>`)."""
    at_line: bool = False
    """Its openers are ordinary words: they count at the beginning of a line only."""
    untyped_json: bool = False
    """A value whose parameter is not declared is JSON if it can be read as such, else text."""
    turn: bool = False
    """Its openers begin another turn: no block of calls goes on behind one."""
    unquote: bool = False
    """A declared string may stand in quotes that are not part of it."""
    in_thinking: bool = field(default=True)
    """Whether an opener counts in the middle of thinking."""


FormatReader: TypeAlias = Callable[[ParseContext, Format, str], Steps[bool]]
"""(reading, dialect, the opener found) -> whether this was a call. Not one: what was read is
put back and read again as running text, without the opener."""
