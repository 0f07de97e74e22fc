"""Calls that come from outside the conversation, through the same pipeline as the model's.

They obey policy, validation, plan and deadlines, and people in the room are told of them as events;
their ids begin with `api_`. But nobody in the conversation has asked for them: no cue sounds,
nothing is spoken, no turn is counted, and their results are no tool data of the model's.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# LiveKit leaves the types of its sessions and tools open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from livekit.agents import Agent, RunContext, StopResponse, ToolError, llm
from livekit.agents.llm.utils import prepare_function_arguments
from livekit.agents.voice import SpeechHandle

from caal_node.core.errors import InvalidArguments, ToolBroke, ToolFailure, ToolTimeout
from caal_node.core.events import (
    API_CALL,
    CallReport,
    Outcome,
    ToolCallEnded,
    ToolCallStarted,
)
from caal_node.core.tool_spec import Caller
from caal_node.tools.argument_check import check_arguments
from caal_node.tools.call_scheduler import WAIT_S
from caal_node.tools.caller_of_call import AgentPlace
from caal_node.tools.pipeline import Pipeline, outcome_of
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.methods import OwnTools, becomes_text
from caal_node.tools.table import ToolEntry

logger = logging.getLogger("caal_node.tools")

MAX_RESULT_CHARS: Final = 1024 * 1024
"""Characters of a result as JSON. A longer one is given as text, cut."""


@dataclass(frozen=True, slots=True)
class DirectCallResult:
    """The result of one call, for whoever made it."""

    entry: ToolEntry
    call_id: str
    duration_ms: int
    value: Any
    """A JSON value, redacted."""
    truncated: bool = False
    spoken: str | None = None
    """The sentence that the tool's author would have a person hear."""


class DirectCalls:
    """Runs tools by name."""

    def __init__(
        self,
        agent: Agent,
        remote: RemoteToolset,
        pipeline: Pipeline,
        own: OwnTools,
    ) -> None:
        """`own` sends calls of a toolset of LiveKit's through the pipeline."""
        self._agent: Final = agent
        self._where: Final = AgentPlace(agent)
        self._remote: Final = remote
        self._pipeline: Final = pipeline
        self._own: Final = own

    @property
    def caller(self) -> Caller:
        """Who calls here: a program, in the name of nobody in the room."""
        return Caller("api", self._where.place[1])

    async def run(
        self, name: str, arguments: Mapping[str, Any], confirmation: str = ""
    ) -> DirectCallResult:
        """Run the tool of that name, whether or not prompts show it now.

        `confirmation` is the hash of the call that the caller says yes to, where it needs a yes.

        Raises:
            ToolFailure: in the kind that fits; UnknownTool where there is no such name.
        """
        entry = (await self._remote.whole_table()).resolve(name)
        call_id = f"{API_CALL}{uuid.uuid4().hex[:16]}"
        spec = entry.spec
        events = self._pipeline.events
        events.emit(ToolCallStarted(call_id, entry.exposed, spec.tier, spec.source, arguments))
        began = time.perf_counter()
        outcome: Outcome = "cancelled"
        if confirmation:
            self._pipeline.confirmations[call_id] = confirmation
        try:
            if spec.tier == "agent":
                value = await self._call_method(entry, call_id, arguments)
            else:
                value = await self._remote.calls.call_directly(
                    entry, call_id, arguments, self.caller
                )
            # In a thread: a result may be large, and a redaction slow on it.
            result = await asyncio.to_thread(self._redacted_result, value)
            outcome = "ok"
        except Exception as error:
            outcome = outcome_of(error)
            raise
        finally:
            self._pipeline.confirmations.pop(call_id, None)
            report = self._pipeline.outcomes.take(call_id)  # none where it never got so far
            if report is not None and outcome == "ok":
                outcome = report.outcome
            took_ms = round((time.perf_counter() - began) * 1000)
            report = report or CallReport(outcome)
            ended = ToolCallEnded(
                *(call_id, entry.exposed, spec.tier, outcome, took_ms, report.decisions),
                reason=report.reason,
                result=report.result,
            )
            events.emit(ended)
        return DirectCallResult(entry, call_id, took_ms, *result)

    async def _call_method(
        self, entry: ToolEntry, call_id: str, arguments: Mapping[str, Any]
    ) -> Any:
        """Call one of the agent's own tools as LiveKit's executor does."""
        tools = llm.ToolContext(list(self._agent.tools)).function_tools
        tool = self._own.guard(tools[entry.exposed])
        check_arguments(entry, arguments)
        call = llm.FunctionCall(
            call_id=call_id, name=entry.exposed, arguments=json.dumps(dict(arguments))
        )
        # It cannot be interrupted, as no speech belongs to it.
        context: RunContext[Any] = RunContext(
            session=self._agent.session,
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
        limit_s = self._pipeline.deadline_s(entry) + WAIT_S
        self._own.called_directly.add(call_id)
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
        except ToolFailure:
            raise
        except Exception as error:
            logger.exception("%s failed", entry.exposed)  # as LiveKit logs it in a conversation
            raise ToolBroke(f"{entry.exposed} failed with {type(error).__name__}.") from error
        finally:
            self._own.called_directly.discard(call_id)
        if not (value is None or becomes_text(value)):
            raise ToolBroke(f"{entry.exposed} gave what only a conversation can take.")
        return value

    def _redacted_result(self, value: Any) -> tuple[Any, bool, str | None]:
        """Return the value, whether it was cut, and the sentence for a person."""
        words = None
        if isinstance(value, VerbatimResult):
            value, words = value.value, self._pipeline.redact(value.words)
        text = json.dumps(value, ensure_ascii=False, default=str)
        # A lone surrogate cannot be sent anywhere; NaN is not JSON.
        redacted = self._pipeline.redact(text).encode(errors="replace").decode()
        if len(redacted) > MAX_RESULT_CHARS:
            size = f"{MAX_RESULT_CHARS} of {len(redacted)} characters"
            return f"{redacted[:MAX_RESULT_CHARS]}\n[cut here: {size}]", True, words
        try:
            return json.loads(redacted, parse_constant=lambda _: None), False, words
        except ValueError:  # redaction took a quote away
            return redacted, False, words
