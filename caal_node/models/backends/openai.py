"""`/v1/chat/completions`, as llama.cpp's server, vLLM, LM Studio and Ollama speak it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any

from pydantic import BaseModel, Field

from caal_node.core.items import CallItem, ResultItem
from caal_node.models.backends.base import (
    BackendRequest,
    Chunk,
    ReasoningChunk,
    TextChunk,
    Usage,
)
from caal_node.models.backends.chat_format import (
    CALLS_READ,
    NULL_IS_EMPTY_LIST,
    OR_NONE,
    JoinedText,
    Message,
    TokenOdds,
    arguments_text,
    first_of,
    to_messages,
)
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.openai_server import OpenAIServer, ServerEvent
from caal_node.models.backends.tool_calls import CallDelta, CallJoiner, ServerRuns, ToolResult


class _Part(BaseModel):
    """`delta` of a stream, or `message` of a whole reply."""

    content: JoinedText = None
    reasoning_content: str | None = None  # llama.cpp, vLLM, DeepSeek
    reasoning: str | None = None  # Ollama, later vLLM, OpenRouter
    tool_calls: Annotated[list[CallDelta] | None, first_of(CALLS_READ)] = None
    tool_results: Annotated[list[ToolResult] | None, first_of(CALLS_READ)] = None


class _Logprobs(BaseModel):
    content: list[TokenOdds] | None = None


class _Choice(BaseModel):
    logprobs: Annotated[_Logprobs | None, OR_NONE] = None
    delta: _Part | None = None
    message: _Part | None = None
    finish_reason: str | None = None


class ChatEvent(ServerEvent):
    choices: Annotated[list[_Choice], NULL_IS_EMPTY_LIST, first_of(1)] = Field(
        default_factory=list[_Choice]
    )
    tool_results: Annotated[list[ToolResult] | None, first_of(CALLS_READ)] = None
    task_status: str | None = None
    """Is sent by servers that run tools themselves. Such a call comes in one piece."""

    @property
    def says_something(self) -> bool:
        parts = [choice.delta or choice.message or _Part() for choice in self.choices]
        return bool(self.tool_results) or any(
            part.content
            or part.reasoning_content
            or part.reasoning
            or part.tool_calls
            or part.tool_results
            for part in parts
        )


class OpenAIBackend(OpenAIServer):
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
        switch = {} if think is None else {"chat_template_kwargs": {"enable_thinking": think}}
        always = {"temperature": temperature, **switch, **(extra or {})}
        super().__init__(model, base_url, api_key, deadlines, always)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`. Calls come last, whole, and only from a reply that came to its end."""
        calls = CallJoiner()
        finish: str | None = None
        usage, runs = Usage(), ServerRuns()
        body = self._chat_body(request)
        async with aclosing(self._events("/chat/completions", body, request, ChatEvent)) as events:
            async for event in events:
                for choice in event.choices[:1]:
                    part = choice.delta or choice.message or _Part()
                    for chunk in _chunks(part, choice.logprobs):
                        yield chunk
                    if event.task_status is None:
                        calls.add(part.tool_calls or ())
                    for chunk in _server_runs(runs, event, part):
                        yield chunk
                    finish = choice.finish_reason or finish
                usage = event.token_usage() or usage
                if calls.full:
                    finish = "stop"
                    break
        done = self._done(finish, usage)
        for call in calls.calls():
            yield call
        yield done

    def _chat_body(self, request: BackendRequest) -> dict[str, Any]:
        prompt: dict[str, Any] = {
            "messages": to_messages(request.items, _write_call, _write_result)
        }
        if request.tools:
            prompt["tools"] = request.tools
        if request.schema is not None:
            form = {"name": "reply", "strict": True, "schema": request.schema}
            prompt["response_format"] = {"type": "json_schema", "json_schema": form}
        if request.top_logprobs:
            prompt |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        return self._body(request, prompt)


def _chunks(part: _Part, logprobs: _Logprobs | None) -> Iterator[Chunk]:
    if reasoning := part.reasoning_content or part.reasoning:
        yield ReasoningChunk(reasoning)
    if part.content:
        tokens = (logprobs and logprobs.content) or ()
        yield TextChunk(part.content, tuple(token.generated() for token in tokens))


def _server_runs(runs: ServerRuns, event: ChatEvent, part: _Part) -> Iterator[Chunk]:
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
