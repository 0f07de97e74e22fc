"""From a question to events, going on to another way of asking where one fails.

native -> protocol -> plain; a protocol whose schema the server refuses is asked once more without.
Nothing is said twice: once a piece of speech is out, the reply it belongs to is the reply. What a
model has shown is remembered, so that its next turn begins on the way that works.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Final

from caal_node.errors import ModelContextFull, ModelLacksTools, ModelReplyError
from caal_node.models.port import Backend, Done, NativeCall, Usage
from caal_node.models.question import Question
from caal_node.models.signs import Sign, read_signs, without_thinking
from caal_node.models.ways import Native, Plain, Protocol, Way
from caal_node.replies import BrokenCall, Event, TextDelta, ToolCallEnd, ToolCallStart, UnknownCall

logger = logging.getLogger("caal_node.models")

_PATIENCE: Final[Mapping[Sign, int]] = MappingProxyType(
    {"refused": 1, "empty": 2, "broken_call": 2, "unknown_tool": 2, "leaked_call": 3}
)
"""Times a sign is seen before the model is no longer asked natively. A model that answered the
probe well may slip once; one more question by text costs it a cold prompt."""
_REFUSED: Final = frozenset({400, 422, 500})
"""Statuses about what was asked: parameters that a server does not take, and (500) a reply that
did not fit llama.cpp's or Ollama's own tool grammar."""


class Ladder:
    """The ways for one model on one server, and where it stands on them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._constrain = True
        self._native = True
        self.signs: Final[Counter[Sign]] = Counter()
        """How often each sign was seen, for whoever looks after the model."""

    @property
    def model(self) -> str:
        return self._backend.model

    @property
    def native(self) -> bool:
        """Whether the model is asked with its server's own tool calls."""
        return self._native

    def leave_native(self, reason: str) -> None:
        if self._native:
            logger.info("%s: tools are asked for by text from now on: %s", self.model, reason)
        self._native = False

    def best(self, question: Question) -> Way:
        """The way that `question` is asked first."""
        if not question.tools:
            return Plain()
        return Native() if self._native else Protocol(constrain=self._constrain)

    def _next(self, way: Way, sign: Sign) -> Way | None:
        """The way after `way`, which gave `sign`; None: it was the last."""
        if isinstance(way, Native):
            return Protocol(constrain=self._constrain)
        if isinstance(way, Protocol):
            return Protocol(constrain=False) if sign == "refused" and way.constrain else Plain()
        return None

    async def ask(self, question: Question) -> AsyncGenerator[Event | Done]:
        """Events of the reply; a `Done` after each request, with its usage.

        Raises:
            ModelError: no way gave a reply.
        """
        way: Way | None = self.best(question)
        while way is not None:
            attempt = _Attempt(self._backend, way, question, patient=not isinstance(way, Plain))
            try:
                async with aclosing(attempt.run()) as events:
                    async for event in events:
                        yield event
            except (ModelLacksTools, ModelReplyError) as error:
                if isinstance(way, Plain) or attempt.spoke or not is_about_the_way(error):
                    raise
                attempt.sign = "refused"
            if attempt.leaked:
                self._note("leaked_call", way)
            if attempt.sign is None:
                return
            self._note(attempt.sign, way)
            if attempt.spoke:
                # Too late for another way; the model is told of the call that it cannot make.
                for event in attempt.held:
                    yield event
                return
            way = self._next(way, attempt.sign)

    def _note(self, sign: Sign, way: Way) -> None:
        self.signs[sign] += 1
        logger.warning("%s: %s with the %s way", self._backend.model, sign, way.name)
        if way.name == "native" and self.signs[sign] >= _PATIENCE[sign]:
            self.leave_native(sign)
        elif isinstance(way, Protocol) and way.constrain and sign == "refused":
            self._constrain = False


def is_about_the_way(error: ModelLacksTools | ModelReplyError) -> bool:
    """Whether another way of asking may do better; not for a wrong key or a prompt too long."""
    if isinstance(error, ModelContextFull):
        return False
    return isinstance(error, ModelLacksTools) or error.status in _REFUSED


class _Attempt:
    """One request. `patient`: what cannot be called is kept back, since another way follows."""

    def __init__(self, backend: Backend, way: Way, question: Question, *, patient: bool) -> None:
        self._backend = backend
        self._way = way
        self._question = question
        self._patient = patient
        self._events: list[Event] = []
        self._structured = 0
        self.sign: Sign | None = None
        self.spoke = False
        self.held: list[Event] = []
        """What cannot be called, and was kept back."""

    @property
    def leaked(self) -> bool:
        """Calls were made, and none of them came as the structured call it should have been."""
        calls = any(isinstance(event, ToolCallEnd) for event in self._events)
        return self._way.name == "native" and calls and not self._structured

    async def run(self) -> AsyncGenerator[Event | Done]:
        reader = self._way.reader(self._question)
        done: Done | None = None
        async with aclosing(self._backend.ask(self._way.request(self._question))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Done):
                    done = chunk
                    continue
                self._structured += isinstance(chunk, NativeCall)
                for event in self._read(reader.feed(chunk)):
                    yield event
        for event in self._read(reader.finish()):
            yield event
        self.sign = read_signs(self._events, done)
        if not self._question.stream and not (self.sign and self._patient):
            for event in without_thinking(self._events):
                yield self._passed(event)
        yield done or Done("stop", Usage())

    def _read(self, events: list[Event]) -> list[Event]:
        self._events.extend(events)
        if not self._question.stream:
            return []  # a complete reply is passed on only when all of it is understood
        kept_back = (UnknownCall, BrokenCall, ToolCallStart) if self._patient else ()
        self.held += [event for event in events if isinstance(event, kept_back)]
        return [self._passed(event) for event in events if not isinstance(event, kept_back)]

    def _passed(self, event: Event) -> Event:
        self.spoke |= isinstance(event, TextDelta | ToolCallEnd)
        return event
