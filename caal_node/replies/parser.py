"""A reply as a stream of events, and their sum."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from caal_node.replies.events import (
    BrokenCall,
    Event,
    ReasoningDelta,
    Reply,
    TextDelta,
    TextWasThinking,
    ToolCall,
    ToolCallEnd,
    UnknownCall,
)
from caal_node.replies.running import Calm, RunningText
from caal_node.replies.source import quiet_characters

_NOTHING: Mapping[str, Event] = {}
_NONE: frozenset[str] = frozenset()


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
        self._text = RunningText(tools, in_thinking=in_thinking, id_prefix=id_prefix)
        self._steps = self._text.steps()
        next(self._steps)
        self._put = self._text.source.put
        self._calm: Calm | None = None
        self._single: Mapping[str, Event] = _NOTHING
        """The calm's single characters: one look tells most of them."""
        self._out: list[str] = []
        self._went_out = self._out.append
        self._quiet = _NONE
        """Single characters that the waiting reader need not be told of."""
        self._finished = False

    def feed(self, chunk: str) -> list[Event]:
        """Take the next piece of the reply; give what it has made certain."""
        event = self._single.get(chunk)
        if event is not None:
            self._went_out(chunk)
            return [event]
        calm = self._calm
        if calm is not None and chunk and calm.stops.search(chunk) is None:
            self._went_out(chunk)
            return [calm.delta(chunk)]
        self._put(chunk)
        if chunk in self._quiet:
            return []
        wake = self._text.source.wake
        if wake is not None and wake.search(chunk) is None:
            return []
        return self._go_on()

    def finish(self) -> list[Event]:
        """The reply is over; give what is left. What is fed afterwards is not read."""
        if self._finished:
            return []
        self._finished = True
        self._text.source.closed = True
        return self._go_on()

    def _go_on(self) -> list[Event]:
        text = self._text
        if self._out:
            text.went_out("".join(self._out))
            self._out.clear()
        text.calm = None
        text.source.gather()
        with contextlib.suppress(StopIteration):
            next(self._steps)
        self._calm = text.calm
        self._single = _NOTHING if text.calm is None else text.calm.single
        wake = text.source.wake
        self._quiet = _NONE if wake is None else quiet_characters(wake)
        return text.voice.take()


def summarise(events: Iterable[Event]) -> Reply:
    """The sum of a whole reply's events."""
    pieces: list[TextDelta | ReasoningDelta] = []
    calls: list[ToolCall] = []
    problems: list[BrokenCall | UnknownCall] = []
    since = 0
    for event in events:
        if isinstance(event, TextDelta | ReasoningDelta):
            pieces.append(event)
        elif isinstance(event, TextWasThinking):
            pieces[since:] = [ReasoningDelta(piece.text) for piece in pieces[since:]]
        elif isinstance(event, ToolCallEnd):
            calls.append(ToolCall(event.name, event.arguments))
            since = len(pieces)
        elif isinstance(event, BrokenCall | UnknownCall):
            problems.append(event)
            since = len(pieces)
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    reasoning = "".join(piece.text for piece in pieces if isinstance(piece, ReasoningDelta))
    return Reply(calls, text.rstrip() if calls else text, reasoning.strip(), problems)


def parse_reply(
    text: str, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool = False
) -> Reply:
    """What a whole reply means."""
    parser = ReplyParser(tools, in_thinking=in_thinking)
    return summarise([*parser.feed(text), *parser.finish()])
