"""What Ollama sends, and what it means: the lines of a reply, and what it says of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from caal_node.models.backends.base import (
    Chunk,
    NativeCall,
    ReasoningChunk,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.backends.tool_calls import WORKING, CallDelta, ServerRuns, ToolResult
from caal_node.models.backends.wire_types import (
    NULL_IS_EMPTY_OBJECT,
    OR_NONE,
    Count,
    TokenOdds,
)

Think: TypeAlias = bool | Literal["low", "medium", "high", "max"]

_UNSWITCHABLE: Final = ("gptoss", "gpt-oss")
"""Families of models that think whatever they are told. The least they do is "low"."""


class OllamaMessage(BaseModel):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[CallDelta] | None = None
    tool_results: list[ToolResult] | None = None


class OllamaReply(BaseModel):
    """One line of a streamed reply, or an unstreamed one whole."""

    error: Any = None
    message: Annotated[OllamaMessage, NULL_IS_EMPTY_OBJECT] = Field(default_factory=OllamaMessage)
    tool_results: list[ToolResult] | None = None
    task_status: str | None = None
    """Is sent by servers that run tools themselves, see `tool_calls`."""
    logprobs: Annotated[list[TokenOdds] | None, OR_NONE] = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: Count = None
    eval_count: Count = None

    @property
    def is_last(self) -> bool:
        """Whether no line follows."""
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
        """The context that the model was made for. Its key begins with the architecture."""
        key = f"{self.model_info.get('general.architecture')}.context_length"
        value = self.model_info.get(key)
        return value if isinstance(value, int) else None


def settled_think(asked: Think, shown: OllamaModelInfo) -> Think:
    """Return what to send for `asked`. What the model refuses or ignores is never sent."""
    if shown.details.family in _UNSWITCHABLE:
        return asked or "low"
    if shown.capabilities is not None and "thinking" not in shown.capabilities:
        return False
    return asked


def chunks_of(reply: OllamaReply, runs: ServerRuns) -> Iterator[Chunk]:
    """Yield what one line of a reply means."""
    if reply.message.thinking:
        yield ReasoningChunk(reply.message.thinking)
    if reply.message.content:
        tokens = tuple(token.generated() for token in reply.logprobs or ())
        yield TextChunk(reply.message.content, tokens)
    for call in reply.message.tool_calls or ():
        call_id, name, arguments = call.id or "", call.function.name or "", call.function.arguments
        if reply.task_status is not None:
            yield from runs.started(call_id, name, arguments)
            continue
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments or {}, ensure_ascii=False)
        yield NativeCall(call_id, name, arguments or "{}")
    yield from runs.ended([*(reply.message.tool_results or ()), *(reply.tool_results or ())])
    if reply.is_last:
        usage = Usage(prompt=reply.prompt_eval_count or 0, completion=reply.eval_count or 0)
        yield ReplyDone("length" if reply.done_reason == "length" else "stop", usage)
