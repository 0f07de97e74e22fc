"""Calls that come from outside the conversation, through the same pipeline as the model's.

They obey policy, validation, plan and deadlines, and people in the room are told of them as events;
their ids begin with `api_`. But nobody in the conversation asked for them: no cue sounds, nothing
is spoken, no turn is counted, and what they gave is no tool data of the model's.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# LiveKit leaves the types of its sessions and tools open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from livekit.agents import AgentSession, RunContext, StopResponse, ToolError, llm
from livekit.agents.llm.utils import prepare_function_arguments
from livekit.agents.voice import SpeechHandle

from caal_node.core.errors import InvalidArguments, ToolBroke, ToolFailure, ToolTimeout
from caal_node.core.events import API_CALL, Event, Outcome, ToolCallEnded, ToolCallStarted
from caal_node.tools.argument_check import check_arguments
from caal_node.tools.call_scheduler import WAIT_S
from caal_node.tools.outcomes import Verbatim, outcome_of
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.sources.methods import is_plain
from caal_node.tools.table import ToolEntry

MAX_RESULT_CHARS: Final = 1024 * 1024
"""Of a result as JSON. What is more is given as a text, cut."""


@dataclass(frozen=True, slots=True)
class DirectCallResult:
    """What a call gave."""

    entry: ToolEntry
    call_id: str
    duration_ms: int
    value: Any
    """A JSON value, redacted."""
    truncated: bool = False
    spoken: str | None = None
    """The words that its author would have a person hear."""


class DirectCallHost(Protocol):
    """Of the agent, what is needed here."""

    @property
    def tools(self) -> Sequence[llm.Tool | llm.Toolset]: ...

    @property
    def session(self) -> AgentSession[Any]: ...


class DirectCalls:
    """Runs tools by name."""

    def __init__(
        self,
        host: DirectCallHost,
        remote: RemoteToolset,
        pipeline: Pipeline,
        tell: Callable[[Event], None],
    ) -> None:
        """`tell` is given the events of each call."""
        self._host: Final = host
        self._remote: Final = remote
        self._pipeline: Final = pipeline
        self._tell: Final = tell
        self._running: Final[set[str]] = set()

    def plain(self, call_id: str) -> Callable[[Any], bool]:
        """Which values of one of the agent's own tools become a line for the model: of a call
        that is made here, none."""
        return _nothing if call_id in self._running else is_plain

    async def run(self, name: str, arguments: Mapping[str, Any]) -> DirectCallResult:
        """
        Raises:
            ToolFailure: in the kind that fits; UnknownTool where there is no such name.
        """
        whole = await self._remote.whole()
        entry = whole.table.resolve(name)
        call_id = f"{API_CALL}{uuid.uuid4().hex[:16]}"
        spec = entry.spec
        self._tell(ToolCallStarted(call_id, entry.exposed, spec.tier, spec.source, arguments))
        began = time.perf_counter()
        outcome: Outcome = "error"
        try:
            if spec.tier == "agent":
                value = await self._own(entry, call_id, arguments)
            else:
                value = await self._remote.run(entry, call_id, arguments)
            # Beside the loop: a result may be large, and a rule of redaction may be slow on it.
            result = await asyncio.to_thread(self._shown, value)
            outcome = "ok"
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except Exception as error:
            outcome = outcome_of(error)
            raise
        finally:
            self._pipeline.outcomes.of(call_id)  # known here; nobody else asks for it
            took = round((time.perf_counter() - began) * 1000)
            self._tell(ToolCallEnded(call_id, entry.exposed, spec.tier, outcome, took))
        return DirectCallResult(entry, call_id, took, *result)

    async def _own(self, entry: ToolEntry, call_id: str, arguments: Mapping[str, Any]) -> Any:
        """One of the agent's own tools, called as LiveKit's executor calls it."""
        tool = llm.ToolContext(list(self._host.tools)).function_tools[entry.exposed]
        check_arguments(entry, arguments)
        call = llm.FunctionCall(
            call_id=call_id, name=entry.exposed, arguments=json.dumps(dict(arguments))
        )
        # Not interruptible, as no speech belongs to it.
        context: RunContext[Any] = RunContext(
            session=self._host.session,
            speech_handle=SpeechHandle.create(allow_interruptions=False),
            function_call=call,
        )
        try:
            args, kwargs = prepare_function_arguments(
                fnc=tool, json_arguments=dict(arguments), call_ctx=context
            )
        except ToolError:
            # LiveKit's words quote the arguments, and its logs would have them.
            raise InvalidArguments(f"{entry.exposed} does not take these arguments.") from None
        limit_s = self._pipeline.limit_s(entry) + WAIT_S
        self._running.add(call_id)
        try:
            # The pipeline gives tools that take a RunContext no deadline; nobody listens here.
            async with asyncio.timeout(limit_s):
                value = await tool(*args, **kwargs)
        except TimeoutError as error:
            raise ToolTimeout(f"{entry.exposed} gave no answer in {limit_s:g} seconds.") from error
        except StopResponse:
            return None
        except ToolError as error:
            if isinstance(error.__cause__, ToolFailure):
                raise error.__cause__ from None
            raise ToolBroke(error.message) from error
        finally:
            self._running.discard(call_id)
        if not (value is None or is_plain(value)):
            raise ToolBroke(f"{entry.exposed} gave what only a conversation can take.")
        return value

    def _shown(self, value: Any) -> tuple[Any, bool, str | None]:
        """Value, whether it was cut, and the words for a person."""
        words = None
        if isinstance(value, Verbatim):
            value, words = value.value, self._pipeline.redacted(value.words)
        text = json.dumps(value, ensure_ascii=False, default=str)
        # A lone surrogate cannot be sent anywhere; NaN is no JSON.
        shown = self._pipeline.redacted(text).encode(errors="replace").decode()
        if len(shown) > MAX_RESULT_CHARS:
            size = f"{MAX_RESULT_CHARS} of {len(shown)} characters"
            return f"{shown[:MAX_RESULT_CHARS]}\n[cut here: {size}]", True, words
        try:
            return json.loads(shown, parse_constant=lambda _: None), False, words
        except ValueError:  # redaction took a quote away
            return shown, False, words


def _nothing(_: Any) -> bool:
    return False
