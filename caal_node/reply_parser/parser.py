"""A reply as a stream of events, and their sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from caal_node.reply_parser.events import Event, Reply
from caal_node.reply_parser.resting import Resting
from caal_node.reply_parser.scanner import ReplyScanner
from caal_node.reply_parser.states import EVERYTHING, START, State
from caal_node.reply_parser.summary import joined, summarise


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
        self._text = ReplyScanner(tools, in_thinking=in_thinking, id_prefix=id_prefix)
        self._steps = self._text.steps()
        next(self._steps)
        self._state: State = START
        self._kept: list[str] = []
        """What the steps kept that were taken while the readers slept."""
        self._finished = False

    def feed(self, chunk: str) -> list[Event]:
        """Take the next piece of the reply; give what it has made certain."""
        try:
            event, self._state, kept = self._state.steps[chunk]
        except KeyError:
            pass
        else:
            self._kept.append(kept)
            return [] if event is None else [event]
        return self._feed(chunk)

    def finish(self) -> list[Event]:
        """The reply is over; give what is left. What is fed afterwards is not read."""
        if self._finished:
            return []
        self._finished = True
        self._text.source.closed = True
        events = self._wake("")
        self._state = EVERYTHING
        return events

    def _feed(self, chunk: str) -> list[Event]:
        """A chunk that is in no table."""
        if self._finished or not chunk:
            return []
        step = self._state.step(chunk)
        if step is not None:
            event, self._state, kept = step
            self._kept.append(kept)
            return [] if event is None else [event]
        if len(chunk) == 1 or self._state.bite(chunk, 0) == len(chunk):
            return self._wake(chunk)
        return joined(self._piecewise(chunk))

    def _piecewise(self, chunk: str) -> list[Event]:
        events: list[Event] = []
        at, size = 0, len(chunk)
        while at < size:
            state = self._state
            step = None if state.bites else state.steps.get(chunk[at])
            end = at + 1
            if step is None:
                end = state.bite(chunk, at)
                step = state.step(chunk[at:end])
            if step is None:
                events += self._wake(chunk[at:end])
            else:
                event, self._state, kept = step
                self._kept.append(kept)
                if event is not None:
                    events.append(event)
            at = end
        return events

    def _wake(self, piece: str) -> list[Event]:
        """Let the readers see `piece`, and remember what they made of it."""
        text, before = self._text, self._state
        unseen = text.still.catch_up(before, "".join(self._kept))
        self._kept.clear()
        text.source.arrive(unseen, piece, before)
        text.still.begin()
        next(self._steps, None)
        events = text.voice.take()
        after = self._state = text.still.state()
        if isinstance(before, Resting) and isinstance(after, Resting) and text.still.certain():
            before.learn(piece, events, after, text.still.passed())
        return events


def parse_reply(
    text: str, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool = False
) -> Reply:
    """What a whole reply means."""
    parser = ReplyParser(tools, in_thinking=in_thinking)
    return summarise([*parser.feed(text), *parser.finish()])
