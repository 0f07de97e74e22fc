"""What a model's reply means, as a closed union of frozen events, and how a call becomes some.

A reply is a sequence of these, in the order in which the model wrote them. `Reply` is their sum.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, TypeAlias, cast

from caal_node.reply_parser.arguments import BadArguments, from_json, from_value
from caal_node.reply_parser.tool_index import ToolIndex, has_gap, plausible


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


# Calls on their way from a reply to its events: named, given arguments, ended or refused.

_NUMBERED = re.compile(r"^(?:functions\.)?(.+?)(?::\d+(?:\.\d+)*)?$", re.DOTALL)
"""How some models dress a name: `functions.set_timer:0`, or `:1.0`."""
_MAX_UNKNOWN_NAME_CHARS = 64
CUT_OFF: Final = "The call was cut off."


class OpenCall:
    """A call whose name has been read. It is ended once; what comes later is ignored."""

    def __init__(self, calls: CallBuilder, name: str) -> None:
        tools = calls.tools
        self._calls = calls
        self._done = False
        self.name = name
        """What the model calls the tool."""
        self.tool = tools.find(name) if name else None
        """The tool that is called; None while it is unknown, or where any name is allowed."""
        self._own_name = self.tool.name if self.tool is not None else None
        if self.tool is None and tools.accepts_any_name and name.strip() and not has_gap(name):
            self._own_name = _NUMBERED.sub(r"\1", name)

    def end_json(self, text: str, *, ended: bool = False) -> None:
        """End the call with arguments that are JSON text. ended: see `from_json`."""
        if not self._done:
            try:
                self._make(from_json(text, self.tool, ended=ended))
            except BadArguments as problem:
                self.fail(str(problem))

    def end(self, arguments: Any) -> None:
        """End the call with arguments that are an object, or JSON of one."""
        if not self._done:
            try:
                self._make(from_value(arguments, self.tool))
            except BadArguments as problem:
                self.fail(str(problem))

    def _make(self, arguments: dict[str, Any]) -> None:
        self._done = True
        name = self._own_name
        if name is None and self.name.isdigit():
            # Numbered instead of named: the arguments may fit one tool only.
            meant = self._calls.tools.by_arguments(set(arguments))
            name = meant.name if meant is not None else None
        if name is None:
            self._calls.unknown(self.name)
        else:
            self._calls.finished(name, arguments)

    def fail(self, problem: str) -> None:
        """End the call, which cannot be made. problem: one sentence for the model."""
        if self._done:
            return
        self._done = True
        if self._own_name is None:
            self._calls.unknown(self.name)
        else:
            self._calls.broken(self._own_name, problem)

    def cut_off(self) -> None:
        """End the call, as the reply ended in the middle of it."""
        self.fail(CUT_OFF)


class CallBuilder:
    """Opens calls, numbers them, and emits their events.

    tools: the tools that may be called.
    emit: takes each event.
    id_prefix: what the ids of calls begin with.
    """

    def __init__(self, tools: ToolIndex, emit: Callable[[Event], None], id_prefix: str) -> None:
        self.tools = tools
        self._emit = emit
        self._prefix = id_prefix
        self._count = 0
        self._last: str | None = None
        """The last call that was finished, as JSON."""
        self._restarted: str | None = None
        """The call that the model may begin again."""

    def open(self, name: str) -> OpenCall:
        """Begin the call of the tool that `name` means."""
        return OpenCall(self, name.strip() if plausible(name.strip()) else name)

    def unknown(self, name: str) -> None:
        """Report a call of a tool that does not exist."""
        shown = name.strip()[:_MAX_UNKNOWN_NAME_CHARS]
        self._emit(UnknownCall(shown, self.tools.nearest(shown)))

    def broken(self, name: str, problem: str) -> None:
        """Report a call that cannot be made. name: "" where it has none."""
        tool = self.tools.find(name) if name else None
        if name and tool is None and not self.tools.accepts_any_name:
            self.unknown(name)
        else:
            self._emit(BrokenCall(self._next_id(), tool.name if tool else name, problem))

    def restarted(self) -> None:
        """Note that the model broke off behind its last call and begins again: the same call that
        comes next is no second one."""
        self._restarted = self._last

    def finished(self, name: str, arguments: dict[str, Any]) -> None:
        """Report a call that can be made."""
        call = json.dumps([name, arguments], sort_keys=True, default=str)
        restarted, self._restarted = self._restarted, None
        if call == restarted:
            self.broken(name, "The same call was begun twice; one was made.")
            return
        self._last = call
        call_id = self._next_id()
        self._emit(ToolCallStart(call_id, name))
        self._emit(ToolCallEnd(call_id, name, arguments))

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"
