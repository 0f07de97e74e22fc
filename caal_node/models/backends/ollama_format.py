"""What Ollama sends, and what it means (pure): lines of a reply, and what it says of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from caal_node.models.backends.base import (
    Chunk,
    GeneratedToken,
    NativeCall,
    ReasoningChunk,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.backends.lenient_types import NULL_IS_EMPTY_OBJECT, OR_NONE, Arguments, Count
from caal_node.models.backends.server_tools import WORKING, ServerRuns, ToolResult

Think: TypeAlias = bool | Literal["low", "medium", "high", "max"]

_UNSWITCHABLE: Final = ("gptoss", "gpt-oss")
"""Families that think whatever they are told; the least they do is "low"."""


class OllamaFunction(BaseModel):
    name: str
    arguments: Arguments = None


class OllamaToolCall(BaseModel):
    id: str | None = None
    function: OllamaFunction


class OllamaMessage(BaseModel):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[OllamaToolCall] | None = None
    tool_results: list[ToolResult] | None = None


class OllamaCandidate(BaseModel):
    token: str
    logprob: float


class OllamaTokenOdds(OllamaCandidate):
    top_logprobs: list[OllamaCandidate] | None = None


class OllamaReply(BaseModel):
    """One line of a streamed reply, or an unstreamed one whole."""

    error: Any = None
    message: Annotated[OllamaMessage, NULL_IS_EMPTY_OBJECT] = Field(default_factory=OllamaMessage)
    tool_results: list[ToolResult] | None = None
    task_status: str | None = None
    """Of servers that run tools themselves, server_runs.py."""
    logprobs: Annotated[list[OllamaTokenOdds] | None, OR_NONE] = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: Count = None
    eval_count: Count = None

    @property
    def is_last(self) -> bool:
        return self.done and self.task_status != WORKING


class OllamaModelDetails(BaseModel):
    family: str = ""


class OllamaModelInfo(BaseModel):
    """What `/api/show` says of a model. Versions before 0.6.4 name no capabilities."""

    capabilities: list[str] | None = None
    details: OllamaModelDetails = Field(default_factory=OllamaModelDetails)
    model_info: dict[str, Any] = Field(default_factory=dict)

    @property
    def context_tokens(self) -> int | None:
        """The length the model was made for, under a key that begins with its architecture."""
        key = f"{self.model_info.get('general.architecture')}.context_length"
        value = self.model_info.get(key)
        return value if isinstance(value, int) else None


def settled_think(asked: Think, shown: OllamaModelInfo) -> Think:
    """What to send for `asked`: what the model refuses or ignores is never sent."""
    if shown.details.family in _UNSWITCHABLE:
        return asked or "low"
    if shown.capabilities is not None and "thinking" not in shown.capabilities:
        return False
    return asked


def chunks_of(reply: OllamaReply, runs: ServerRuns) -> Iterator[Chunk]:
    if reply.message.thinking:
        yield ReasoningChunk(reply.message.thinking)
    if reply.message.content:
        told = reply.logprobs or ()
        tokens = (
            GeneratedToken(t.token, tuple((c.token, c.logprob) for c in t.top_logprobs or ()))
            for t in told
        )
        yield TextChunk(reply.message.content, tuple(tokens))
    for call in reply.message.tool_calls or ():
        if reply.task_status is not None:
            yield from runs.started(call.id or "", call.function.name, call.function.arguments)
            continue
        arguments = call.function.arguments or {}
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        yield NativeCall(call.id or "", call.function.name, arguments)
    yield from runs.ended([*(reply.message.tool_results or ()), *(reply.tool_results or ())])
    if reply.is_last:
        usage = Usage(prompt=reply.prompt_eval_count or 0, completion=reply.eval_count or 0)
        yield ReplyDone("length" if reply.done_reason == "length" else "stop", usage)
