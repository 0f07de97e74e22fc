"""What a model's reply means, as a closed union of frozen events.

A reply is a sequence of these, in the order in which the model wrote them. `Reply` is their sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias, cast


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of speech."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of thinking. Never spoken."""

    text: str


@dataclass(frozen=True, slots=True)
class TextWasThinking:
    """All text since the last call, or since the beginning, was thinking.

    A closer came whose opener was never written. Text that was spoken already cannot be taken
    back; text that was not must not be spoken. `Reply` has it as reasoning.
    """


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A call is complete. The `ToolCallEnd` of the same id comes next."""

    id: str
    """Unique in this reply."""
    name: str
    """The tool's own name, whatever spelling the model used."""


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """A call that can be made. It comes right behind the `ToolCallStart` of the same id."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BrokenCall:
    """A call that cannot be made. No `ToolCallStart` comes before it."""

    id: str
    name: str
    problem: str
    """One sentence for the model: what was wrong with the call."""


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call of a tool that does not exist. No `ToolCallStart` comes before it."""

    name: str
    nearest: tuple[str, ...]
    """Names that do exist, best first."""
    id: str = ""
    """The id that a server gave the call; "" where the call stood in the text."""


@dataclass(frozen=True, slots=True)
class UnspokenData:
    """The reply held data where speech belongs, an object or a list, and no call. It was left out.

    It comes at the reply's end.
    """

    problem: str = (
        "The person hears what you write, and nobody can listen to data or tags."
        " Say it in plain words, or call one of your tools."
    )
    """What was wrong, for the model."""


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | TextWasThinking
    | ToolCallStart
    | ToolCallEnd
    | BrokenCall
    | UnknownCall
    | UnspokenData
)
"""Each `ToolCallEnd` comes right behind a `ToolCallStart` with its id."""


def joined(events: Iterable[Event]) -> list[Event]:
    """Return `events` with each run of text, and each of thinking, in one piece."""
    found: list[Event] = []
    for kind, run in groupby(events, type):
        if kind is TextDelta or kind is ReasoningDelta:
            deltas = cast("Iterable[TextDelta | ReasoningDelta]", run)
            found.append(kind("".join(delta.text for delta in deltas)))
        else:
            found.extend(run)
    return found


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that can be made."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply."""

    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    text: str = ""
    """What may be spoken."""
    reasoning: str = ""
    problems: list[BrokenCall | UnknownCall | UnspokenData] = field(
        default_factory=list[BrokenCall | UnknownCall | UnspokenData]
    )
    """What of it can be neither run nor said, of which the model should be told."""


def summarise(events: Iterable[Event]) -> Reply:
    """Return the sum of a whole reply's events."""
    pieces: list[TextDelta | ReasoningDelta] = []
    calls: list[ToolCall] = []
    problems: list[BrokenCall | UnknownCall | UnspokenData] = []
    open_from = 0  # Where the text begins that a closer would turn into thinking.
    for event in events:
        if isinstance(event, TextDelta | ReasoningDelta):
            pieces.append(event)
        elif isinstance(event, TextWasThinking):
            pieces[open_from:] = [ReasoningDelta(piece.text) for piece in pieces[open_from:]]
            open_from = len(pieces)
        elif isinstance(event, ToolCallEnd):
            calls.append(ToolCall(event.name, event.arguments))
            open_from = len(pieces)
        elif isinstance(event, BrokenCall | UnknownCall | UnspokenData):
            problems.append(event)
            open_from = len(pieces)
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    reasoning = "".join(piece.text for piece in pieces if isinstance(piece, ReasoningDelta))
    return Reply(calls, text.rstrip() if calls else text, reasoning.strip(), problems)
