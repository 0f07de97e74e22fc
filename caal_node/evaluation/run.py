"""Trying a model: every case in both ways, one after the other, as a server with one slot answers.

A case is asked by the means of a real turn: the same connection, retries, strategies and readers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from caal_node.context.token_estimate import PromptTools
from caal_node.core.errors import (
    ModelContextFull,
    ModelError,
    ModelMissing,
    ModelReplyError,
    ModelSilent,
    ModelTimeout,
)
from caal_node.core.items import Item, SystemItem
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.evaluation.store import Mark, Outcome
from caal_node.evaluation.suites import SUITES, WAYS, Asking, Case, Suite, fault
from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    Capabilities,
    Chunk,
    NativeCall,
    ReplyDone,
    ServerCall,
    TextChunk,
    Usage,
)
from caal_node.models.model_connection import ModelConnection
from caal_node.models.question import Question
from caal_node.models.retry_policy import ModelStats
from caal_node.reply_parser import Event, TextDelta, summarise
from caal_node.tools.argument_check import fits

# The tools that a model is tried with: those of a home, as a voice assistant has them.
#
# All cases share them, in this order, so that a server reads the prefix of the prompt once for each
# way of asking. Between them they take every type of argument that a schema can ask for. Each has
# the two example utterances that a tool's author is asked for; none of them is a case's own.


def _tool(name: str, description: str, required: list[str], **properties: Any) -> ToolSchema:
    parameters = {"type": "object", "properties": properties, "required": required}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


_TEXT: Final = {"type": "string"}

TOOLS: Final[tuple[ToolSchema, ...]] = (
    _tool(
        "get_forecast",
        "Weather forecast of a city.",
        ["city"],
        city=_TEXT,
        days={"type": "integer", "description": "days ahead"},
    ),
    _tool(
        "set_timer",
        "Start a kitchen timer.",
        ["minutes"],
        minutes={"type": "number"},
        label=_TEXT,
    ),
    _tool(
        "switch_light",
        "Switch the light of a room on or off.",
        ["room", "on"],
        room=_TEXT,
        on={"type": "boolean"},
    ),
    _tool(
        "set_heating",
        "Set the heating's mode and temperature.",
        ["mode", "celsius"],
        mode={"type": "string", "enum": ["comfort", "eco", "off"]},
        celsius={"type": "number"},
    ),
    _tool(
        "add_to_list",
        "Put things on one of the person's lists.",
        ["list", "things"],
        list={"type": "string", "enum": ["shopping", "tasks"]},
        things={"type": "array", "items": {"type": "string"}},
    ),
    _tool(
        "book_table",
        "Book a table at a restaurant.",
        ["place", "people"],
        place={
            "type": "object",
            "properties": {"name": {"type": "string"}, "city": {"type": "string"}},
            "required": ["name", "city"],
        },
        people={"type": "integer"},
    ),
)

EXAMPLES: Final[Mapping[str, tuple[Example, ...]]] = {
    "get_forecast": (
        Example("will it be sunny in Porto", {"city": "Porto"}),
        Example(
            "how does the weather look in Graz for the next five days", {"city": "Graz", "days": 5}
        ),
    ),
    "set_timer": (
        Example("remind me in twelve minutes", {"minutes": 12}),
        Example("start a rice timer of eighteen minutes", {"minutes": 18, "label": "rice"}),
    ),
    "switch_light": (
        Example("make it bright in the hall", {"room": "hall", "on": True}),
        Example("it is too bright in the cellar", {"room": "cellar", "on": False}),
    ),
    "set_heating": (
        Example("make it cosy, twenty three degrees", {"mode": "comfort", "celsius": 23}),
        Example("save energy with the heating at sixteen", {"mode": "eco", "celsius": 16}),
    ),
    "add_to_list": (
        Example("we are out of flour and salt", {"list": "shopping", "things": ["flour", "salt"]}),
        Example("I still have to call the bank", {"list": "tasks", "things": ["call the bank"]}),
    ),
    "book_table": (
        Example(
            "get us a table for six at the Anchor in Bristol",
            {"place": {"name": "Anchor", "city": "Bristol"}, "people": 6},
        ),
        Example(
            "dinner for three at Chez Marie in Lyon",
            {"place": {"name": "Chez Marie", "city": "Lyon"}, "people": 3},
        ),
    ),
}


logger = logging.getLogger("caal_node.evaluation")

REPLY_TOKENS: Final = 512
"""Tokens of one reply: a call takes 30, a spoken sentence 40, and a model that repeats itself has
to end."""
THINKING_TOKENS: Final = 2048
"""Tokens of one reply where the model is told to think first."""
CASE_S: Final = 300.0
"""Seconds for one case. A cold model on two cores needs two minutes for its first reply; a reply of
full length at two tokens a second needs more than this, and is no use to anybody who waits."""
FAILURES_IN_A_ROW: Final = 3
"""Failed cases in a row after which the server is taken for broken; one may be a cut stream."""
_HOPELESS_STATUS: Final = frozenset({401, 403, 404})
"""HTTP statuses of a wrong key or a wrong address, which answer every case alike."""
_TOOLS: Final = PromptTools(TOOLS, EXAMPLES)

OnStep: TypeAlias = Callable[[int, int, str], None]
"""Is told before each case how many are done, how many there are, and what comes."""


@dataclass(frozen=True, slots=True)
class ValidationSubject:
    """The model on trial. `thinking` is the same model, told to think."""

    backend: Backend
    thinking: Backend
    system: str
    """The system prompt that its sessions will have."""
    native_offered: bool
    """Whether the server takes tools for it at all."""


async def run(subject: ValidationSubject, *, full: bool, on_step: OnStep) -> tuple[Outcome, ...]:
    """Try every case. The order keeps the prompt's prefix in the server's cache.

    Raises:
        ModelError: the server cannot be asked, refuses the key, or fails time after time.
    """
    steps = list(_steps(subject, full=full))
    outcomes: list[Outcome] = []
    failures = 0
    prepared: dict[Asking, ModelStats] = {}
    for done, (asking, suite, case) in enumerate(steps):
        if asking not in prepared:
            on_step(done, len(steps), f"{asking}: reading the prompt's prefix")
            prepared[asking] = await _prepare(subject, asking)
        on_step(done, len(steps), f"{asking}: {suite.name.replace('_', ' ')}")
        began = time.perf_counter()
        recording = _RecordingBackend(subject.thinking if case.think else subject.backend)
        question = _question(subject, case.said, stream=case.stream, max_tokens=_most(case))
        try:
            mark, why = await _tried(recording, asking, suite, case, question, prepared[asking])
            failures = 0
        except ModelSilent:  # It is the model's fault, not its server's.
            mark, why = "wrong", "no reply"
        except ModelError as error:
            failures += 1
            if _is_hopeless(error) or failures >= FAILURES_IN_A_ROW:
                raise
            logger.warning("%s, %s: %s", suite.name, asking, error)
            mark, why = "failed", str(error)
        seconds = time.perf_counter() - began
        outcomes.append(
            Outcome(
                *(suite.name, asking, case.name, mark, why, seconds),
                prompt_tokens=recording.usage.prompt,
                completion_tokens=recording.usage.completion,
                behind_call=recording.behind_call,
            )
        )
    on_step(len(steps), len(steps), "done")
    return tuple(outcomes)


def _steps(subject: ValidationSubject, *, full: bool) -> Iterator[tuple[Asking, Suite, Case]]:
    for asking in WAYS:
        if asking == "native" and not subject.native_offered:
            continue
        for suite in SUITES:
            if suite.name == "text_protocol" and asking != "text":
                continue
            for case in suite.chosen(full=full):
                yield asking, suite, case


async def _prepare(subject: ValidationSubject, asking: Asking) -> ModelStats:
    """Warm the model as a session does. What keeps it from being done, the first case meets."""
    connection = ModelConnection(subject.backend, asking == "native")
    try:
        await connection.warm(_question(subject, ()))
    except ModelError as error:
        logger.warning("%s: the model could not be warmed up: %s", asking, error)
    return connection.retry_policy.stats


async def _tried(
    recording: _RecordingBackend,
    asking: Asking,
    suite: Suite,
    case: Case,
    question: Question,
    prepared: ModelStats,
) -> tuple[Mark, str]:
    """Ask one case as a session would that has begun in this way, and judge the reply.

    Raises:
        ModelError: no strategy gave a reply, or not in time.
    """
    connection = ModelConnection(recording, asking == "native")
    stats = connection.retry_policy.stats
    stats.call_threshold = prepared.call_threshold
    stats.capabilities = prepared.capabilities
    events: list[Event] = []
    try:
        async with asyncio.timeout(CASE_S), aclosing(connection.ask(question)) as parts:
            events = [part async for part in parts if isinstance(part, Event)]
    except TimeoutError as error:
        raise ModelTimeout(f"{recording.address} gave no whole reply in {CASE_S:g} s") from error
    reply = summarise(events)
    pieces = sum(isinstance(event, TextDelta) for event in events)
    if why := fault(case.right, reply, pieces):
        return "wrong", why
    # By text, a second request may be part of the strategy; natively it is a repair.
    repeated = asking == "native" and recording.requests > 1
    if repeated or stats.steps["plain"]:
        return "corrected", "right only when it was asked once more, or in another way"
    if stats.signals["leaked_call"]:
        return "corrected", "the call came as text"
    if suite.name == "text_protocol" and not recording.fits_schema():
        return "corrected", "not in the form that was asked for"
    return "right", ""


def _most(case: Case) -> int:
    return THINKING_TOKENS if case.think else REPLY_TOKENS


def _question(subject: ValidationSubject, said: tuple[Item, ...], **more: Any) -> Question:
    return Question((SystemItem(subject.system), *said), _TOOLS, **more)


def _is_hopeless(error: ModelError) -> bool:
    if isinstance(error, ModelMissing | ModelContextFull):
        return True
    return isinstance(error, ModelReplyError) and error.status in _HOPELESS_STATUS


class _RecordingBackend:
    """A backend that counts the requests that go through it and their tokens, keeps the first
    reply's text, and notices words behind a structured call."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.requests = 0
        self.usage = Usage()
        self.behind_call = False
        """Whether words came behind a call: its server ran it, or its model did not wait."""
        self._schema: Mapping[str, Any] | None = None
        self._text = ""

    def fits_schema(self) -> bool:
        """Return whether the first reply has the form that its request asked for."""
        if self._schema is None:
            return True
        try:
            reply = json.loads(self._text)
        except (ValueError, RecursionError):
            return False
        return fits(self._schema, reply)

    @property
    def model(self) -> str:
        return self._backend.model

    @property
    def address(self) -> str:
        return self._backend.address

    async def capabilities(self) -> Capabilities:
        return await self._backend.capabilities()

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        self.requests += 1
        is_first = self.requests == 1
        if is_first:
            self._schema = request.schema
        async with aclosing(self._backend.ask(request)) as chunks:
            called = False
            async for chunk in chunks:
                called = called or isinstance(chunk, NativeCall | ServerCall)
                if called and isinstance(chunk, TextChunk) and chunk.text.strip():
                    self.behind_call = True
                if isinstance(chunk, ReplyDone):
                    self.usage += chunk.usage
                if is_first and isinstance(chunk, TextChunk):
                    self._text += chunk.text
                yield chunk

    async def aclose(self) -> None:
        """Do nothing: the backend is its owner's to close."""
