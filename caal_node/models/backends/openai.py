"""`/v1/chat/completions`, as llama.cpp's server, vLLM, LM Studio and Ollama speak it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError

from caal_node.core.errors import ModelReplyError
from caal_node.core.items import CallItem, ResultItem
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    GeneratedToken,
    ReasoningChunk,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.backends.call_deltas import CallDelta, join_calls
from caal_node.models.backends.chat_messages import Message, arguments_text, to_messages
from caal_node.models.backends.http_transport import HttpTransport, TransportDeadlines
from caal_node.models.backends.lenient_types import NULL_IS_EMPTY_LIST, OR_NONE, JoinedText
from caal_node.models.backends.line_reader import sse_data, whole_body
from caal_node.models.backends.openai_server import (
    LlamaTimings,
    TokenCounts,
    openai_wire,
    served_capabilities,
)
from caal_node.models.backends.server_errors import server_words
from caal_node.models.backends.server_tools import ServerRuns, ToolResult


class _Part(BaseModel):
    """`delta` of a stream, `message` of a whole reply."""

    content: JoinedText = None
    reasoning_content: str | None = None  # llama.cpp, vLLM, DeepSeek
    reasoning: str | None = None  # Ollama, later vLLM, OpenRouter
    tool_calls: list[CallDelta] | None = None
    tool_results: list[ToolResult] | None = None


class _Candidate(BaseModel):
    token: str
    logprob: float


class _TokenOdds(_Candidate):
    top_logprobs: list[_Candidate] = Field(default_factory=list[_Candidate])


class _Logprobs(BaseModel):
    content: list[_TokenOdds] | None = None


class _Choice(BaseModel):
    logprobs: Annotated[_Logprobs | None, OR_NONE] = None
    delta: _Part | None = None
    message: _Part | None = None
    finish_reason: str | None = None


class _Event(BaseModel):
    error: Any = None
    choices: Annotated[list[_Choice], NULL_IS_EMPTY_LIST] = Field(default_factory=list[_Choice])
    tool_results: list[ToolResult] | None = None
    task_status: str | None = None
    """Of servers that run tools themselves, server_runs.py; such a call comes in one piece."""
    usage: Annotated[TokenCounts | None, OR_NONE] = None
    timings: Annotated[LlamaTimings | None, OR_NONE] = None


class OpenAIBackend:
    """One model on one server.

    llama.cpp keeps the prompt's prefix between requests by itself (`cache_prompt`), so nothing is
    sent for it.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        think: bool | None = False,
        temperature: float = 0.0,
        extra: Mapping[str, Any] | None = None,
        deadlines: TransportDeadlines | None = None,
    ) -> None:
        """`extra` goes into every request as it is (llama.cpp's `id_slot`, say).

        `think` reaches chat templates that have the switch (llama.cpp, vLLM); other local servers
        ignore it (Ollama's here wants `extra={"reasoning_effort": "none"}`). None sends nothing,
        for servers that refuse what they do not know.

        Raises:
            ConfigError: the address or the key cannot be used.
        """
        self._model: Final = model
        switch = {} if think is None else {"chat_template_kwargs": {"enable_thinking": think}}
        self._always: Final = {"temperature": temperature, **switch, **(extra or {})}
        self._wire: Final[HttpTransport] = openai_wire(
            base_url, model=model, api_key=api_key, deadlines=deadlines
        )

    @property
    def model(self) -> str:
        return self._model

    @property
    def address(self) -> str:
        return self._wire.address

    async def capabilities(self) -> Capabilities:
        """See `Backend`."""
        return await served_capabilities(self._wire, self._model)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`. Calls come last, whole, and only from a reply that came to its end."""
        split = sse_data if request.stream else whole_body
        calls: list[CallDelta] = []
        finish: str | None = None
        usage, runs = Usage(), ServerRuns()
        pieces = self._wire.pieces("/chat/completions", self._body(request), split, request.first_s)
        async with aclosing(pieces):
            async for data in pieces:
                if data == b"[DONE]":
                    break
                event = self._parsed(data)
                for choice in event.choices[:1]:
                    part = choice.delta or choice.message or _Part()
                    for chunk in _chunks(part, choice.logprobs):
                        yield chunk
                    if event.task_status is None:
                        calls += part.tool_calls or ()
                    for chunk in _server_runs(runs, event, part):
                        yield chunk
                    finish = choice.finish_reason or finish
                if event.usage is not None:
                    usage = event.usage.read(event.timings)
        if finish is None:
            # Ollama's answer to an error in mid-stream: no finish, no [DONE], no word.
            raise ModelReplyError(f"{self.address} ended its reply in the middle")
        for call in join_calls(calls):
            yield call
        yield ReplyDone("length" if finish == "length" else "stop", usage)

    async def aclose(self) -> None:
        await self._wire.aclose()

    def _body(self, request: BackendRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": to_messages(request.items, _write_call, _write_result),
        }
        if request.tools:
            body["tools"] = request.tools
        body["stream"] = request.stream
        if request.stream:
            body["stream_options"] = {"include_usage": True}
        if request.schema is not None:
            form = {"name": "reply", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        return {**body, **self._always}

    def _parsed(self, data: bytes) -> _Event:
        try:
            event = _Event.model_validate_json(data)
        except ValidationError as error:
            raise ModelReplyError(f"{self.address} sent what is no chat reply") from error
        if event.error is not None:
            raise ModelReplyError(f"{self.address} broke off: {server_words(data)}")
        return event


def _chunks(part: _Part, logprobs: _Logprobs | None) -> Iterator[Chunk]:
    if reasoning := part.reasoning_content or part.reasoning:
        yield ReasoningChunk(reasoning)
    if part.content:
        told = (logprobs and logprobs.content) or ()
        yield TextChunk(
            part.content,
            tuple(
                GeneratedToken(t.token, tuple((c.token, c.logprob) for c in t.top_logprobs))
                for t in told
            ),
        )


def _server_runs(runs: ServerRuns, event: _Event, part: _Part) -> Iterator[Chunk]:
    if event.task_status is not None:
        for call in part.tool_calls or ():
            yield from runs.started(
                call.id or "", call.function.name or "", call.function.arguments
            )
    yield from runs.ended([*(part.tool_results or ()), *(event.tool_results or ())])


def _write_call(call: CallItem, index: int) -> Message:
    function = {"name": call.name, "arguments": arguments_text(call)}
    return {"id": call.call_id, "type": "function", "function": function}


def _write_result(result: ResultItem) -> Message:
    return {"role": "tool", "tool_call_id": result.call_id, "content": result.output}
