"""One reply of a model as LiveKit's chunks."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Final

from livekit.agents import APITimeoutError, llm
from livekit.agents.utils import shortuuid

from caal_node.core.errors import CaalError
from caal_node.models.backends.base import ReplyDone, ServerCall, ServerResult, Usage
from caal_node.models.chat_context import as_api_error, call_delta
from caal_node.models.model_connection import ModelConnection
from caal_node.models.question import Question
from caal_node.models.timed_backend import OnRequest
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    TextDelta,
    ToolCallEnd,
    UnknownCall,
    UnspokenData,
)

SERVER_RUN: Final = "caal_server_run"
"""Key in a delta's `extra` of a ServerCall or ServerResult."""
_BROKEN: Final = "The call was not made."


class ReplyStream(llm.LLMStream):
    """Asks `connection` the `question` once; LiveKit's base class asks again after an error.

    A reply must begin within `reply_within_s`. The question's own `timeout_s` is what its owner
    gave as LiveKit's time-out, and what runs into it may be tried again, as with other plugins.
    """

    def __init__(
        self,
        model: llm.LLM,
        connection: ModelConnection,
        question: Question,
        reply_within_s: float | None,
        on_request: OnRequest | None = None,
        **given: Any,
    ) -> None:
        super().__init__(model, **given)
        self._reply_within_s = reply_within_s
        self._connection = connection
        self._question = question
        self._on_request = on_request
        self._request_id = shortuuid("caal_")
        # A second attempt after speech has gone out would say it twice.
        self._retry_on_chunk_sent = False

    async def _run(self) -> None:
        usage = Usage()
        sent: set[tuple[str, str]] = set()
        timeout_s = self._question.timeout_s
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._reply_within_s) as begin:
                with self._connection.in_use():
                    if self._question.tools.schemas:
                        async with asyncio.timeout(timeout_s):
                            await self._connection.find_strategy()
                    async for event in self._connection.ask(self._question, self._on_request):
                        begin.reschedule(None)
                        if isinstance(event, ReplyDone):
                            usage += event.usage
                        elif isinstance(event, ServerCall | ServerResult):
                            told = llm.ChoiceDelta(extra={SERVER_RUN: event})
                            self._event_ch.send_nowait(
                                llm.ChatChunk(id=self._request_id, delta=told)
                            )
                        elif (delta := event_delta(event, sent)) is not None:
                            chunk = llm.ChatChunk(id=self._request_id, delta=delta)
                            self._event_ch.send_nowait(chunk)
        except CaalError as error:
            # Only the caller's time-out asks for another try; the model's own patience does not.
            given = timeout_s is not None and time.monotonic() - began >= timeout_s
            raise as_api_error(error, retry_timeout=given) from error
        except TimeoutError:
            seconds = timeout_s or self._reply_within_s
            raise APITimeoutError(f"no reply began within {seconds} s") from None
        self._event_ch.send_nowait(llm.ChatChunk(id=self._request_id, usage=_completion(usage)))


def event_delta(event: Event, sent: set[tuple[str, str]]) -> llm.ChoiceDelta | None:
    """Return the piece of a reply that an event makes, None for no piece.

    `sent` holds the calls of this reply, and takes each: none is made twice.
    """
    if isinstance(event, TextDelta):
        return llm.ChoiceDelta(role="assistant", content=event.text)
    if isinstance(event, ToolCallEnd):
        arguments = json.dumps(event.arguments, ensure_ascii=False, separators=(",", ":"))
        if (event.name, arguments) in sent:
            return None
        sent.add((event.name, arguments))
        return call_delta(event.name, arguments)
    if isinstance(event, UnknownCall):
        # LiveKit answers it with the valid names; the model may then choose again.
        return call_delta(event.name, "{}")
    if isinstance(event, BrokenCall):
        # No object, so that LiveKit runs nothing, and answers it with these words.
        arguments = json.dumps(f"{_BROKEN} {event.problem}", ensure_ascii=False)
        return call_delta(event.name or "unnamed", arguments)
    if isinstance(event, UnspokenData):
        # Something was said already, so the model is told in the next round.
        return call_delta("unnamed", json.dumps(event.problem))
    return None


def _completion(usage: Usage) -> llm.CompletionUsage:
    return llm.CompletionUsage(
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        prompt_cached_tokens=usage.cached,
        total_tokens=usage.prompt + usage.completion,
    )
