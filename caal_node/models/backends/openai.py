"""OpenAI's two endpoints, as llama.cpp's server, vLLM, LM Studio and Ollama speak them:
`/v1/chat/completions`, and `/v1/completions` for models without a chat template.

Some servers run calls by themselves and say so nowhere: they send the call, run it, and write the
answer into the same stream. It is seen by what no model can write behind its own call: a message of
the role `tool`, or words behind the reply's `finish_reason`. Where the words follow at once, they
look like those of a model that did not wait; then `server_runs_tools` decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

from caal_node.core.errors import ModelLacksTools
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    ReasoningChunk,
    TextChunk,
    Think,
    Usage,
)
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.openai_server import OpenAIServer, ServerEvent
from caal_node.models.backends.tool_calls import (
    CALLS_READ,
    NULL_IS_EMPTY_LIST,
    OR_NONE,
    CallDelta,
    CallJoiner,
    JoinedText,
    Message,
    ServerRuns,
    TokenOdds,
    ToolResult,
    arguments_object,
    arguments_text,
    first_of,
    to_messages,
)

_EFFORTS: Final[Mapping[Think, str]] = {False: "none", True: "medium"}
"""`reasoning_effort` where thinking is off or on; a level is sent as it is."""


class _Part(BaseModel):
    """`delta` of a stream, or `message` of a whole reply."""

    role: str | None = None
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


def thinking_fields(think: Think | None) -> dict[str, Any]:
    """Return the fields of a request that turn thinking on or off."""
    if think is None:
        return {}
    return {
        "chat_template_kwargs": {"enable_thinking": bool(think)},
        "reasoning_effort": _EFFORTS.get(think, think),
    }


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
        think: Think | None = False,
        temperature: float = 0.0,
        extra: Mapping[str, Any] | None = None,
        deadlines: TransportDeadlines | None = None,
        server_runs_tools: bool = False,
    ) -> None:
        """`extra` goes into every request as it is (llama.cpp's `id_slot`, say).

        `think` goes out in both of its forms: for chat templates that have the switch (llama.cpp,
        vLLM), and as `reasoning_effort` (Ollama, OpenAI). What a server refuses of it is left out
        from then on. None sends nothing.

        `server_runs_tools` says that calls with words behind them were run by the server, so that
        the words are the answer. It is heard in a stream only, so one is always asked for then.

        Raises:
            ConfigError: the address or the key cannot be used.
        """
        always = {"temperature": temperature, **thinking_fields(think), **(extra or {})}
        self._server_runs_tools = server_runs_tools
        super().__init__(model, base_url, api_key, deadlines, always)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`. Calls come last, and only from a reply that came to its end or to its
        limit, or whole in front of what is said behind them."""
        if self._server_runs_tools:
            request = replace(request, stream=True)
        calls = CallJoiner()
        finish: str | None = None
        usage, runs = Usage(), ServerRuns()
        body = self._chat_body(request)
        async with aclosing(self._events("/chat/completions", body, request, ChatEvent)) as events:
            async for event in events:
                for choice in event.choices[:1]:
                    part = choice.delta or choice.message or _Part()
                    is_result = part.role == "tool"
                    if calls.begun and (is_result or (part.content or "").strip()):
                        ran = is_result or finish is not None or self._server_runs_tools
                        before = calls.calls() if calls.whole else ()
                        for chunk in runs.ran(before) if ran else before:
                            yield chunk
                        if is_result or not calls.whole:
                            part.content = None
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
        done = self._done(finish, usage, request)
        for call in calls.calls(cut=done.reason == "length"):
            yield call
        yield done

    def _chat_body(self, request: BackendRequest) -> dict[str, Any]:
        prompt: dict[str, Any] = {
            "messages": to_messages(request.items, _write_call, _write_result)
        }
        if request.tools:
            prompt["tools"] = request.tools
            if request.must_call:
                prompt["tool_choice"] = "required"
            if request.parallel is not None:
                prompt["parallel_tool_calls"] = request.parallel
        if request.schema is not None:
            prompt |= self.dialect.schema_field(request.schema, "response_format")
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


# `/v1/completions`: text in, text out, for servers and models without a chat template.
#
# The layout is plain roles at the beginning of lines. Tools cannot be offered here; whoever asks
# writes them into the text, and reads the calls out of it.

STOP: Final = ("\nUser:", "\nTool ", "\nSystem:")
"""Where the model would go on with somebody else's words. OpenAI allows four."""

_BREAK: Final = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")
_BEFORE_ROLE: Final = re.compile(r"(?<!\s)\s++(?=User|Assistant|System|Tool\b)")


class _TextChoice(BaseModel):
    text: JoinedText = None
    finish_reason: str | None = None


class TextEvent(ServerEvent):
    choices: Annotated[list[_TextChoice], NULL_IS_EMPTY_LIST, first_of(1)] = Field(
        default_factory=list[_TextChoice]
    )

    @property
    def says_something(self) -> bool:
        return any(choice.text for choice in self.choices)


class CompletionsBackend(OpenAIServer):
    """One model on one server, as `OpenAIBackend`, by its older endpoint."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float = 0.0,
        extra: Mapping[str, Any] | None = None,
        deadlines: TransportDeadlines | None = None,
    ) -> None:
        """See `OpenAIBackend`.

        Raises:
            ConfigError: the address or the key cannot be used.
        """
        always = {"temperature": temperature, "stop": STOP, **(extra or {})}
        super().__init__(model, base_url, api_key, deadlines, always)

    async def capabilities(self) -> Capabilities:
        """See `Backend`. There are never tools, and a schema only if the server is llama.cpp's."""
        return replace(await super().capabilities(), tools=False, thinking=False)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`.

        Raises:
            ModelLacksTools: the request has tools.
        """
        if request.tools:
            raise ModelLacksTools("text completion takes no tools; write them into the prompt")
        prompt: dict[str, Any] = {"prompt": to_prompt(request.items)}
        if request.schema is not None:
            prompt |= self.dialect.schema_field(request.schema, "json_schema")
        body = self._body(request, prompt)
        finish: str | None = None
        usage = Usage()
        begun = False
        async with aclosing(self._events("/completions", body, request, TextEvent)) as events:
            async for event in events:
                for choice in event.choices[:1]:
                    # The prompt ends in "Assistant:", without the space that models put first.
                    text = choice.text or ""
                    text = text if begun else text.lstrip()
                    if text:
                        begun = True
                        yield TextChunk(text)
                    finish = choice.finish_reason or finish
                usage = event.token_usage() or usage
        yield self._done(finish, usage, request)


def to_prompt(items: Sequence[Item]) -> str:
    """Write `items` as text: a role and a colon before each, and the assistant's turn to come."""
    return "\n".join([*map(_line, items), "Assistant:"])


def _line(item: Item) -> str:
    match item:
        case SystemItem():
            return f"System: {item.text}"
        case UserItem():
            return f"User: {_within_turn(item.text)}"
        case AssistantItem():
            return f"Assistant: {_within_turn(item.text)}"
        case ResultItem():
            return f"Tool {item.name}: {_within_turn(item.output)}"
        case CallItem():
            call = {"type": "tool_call", "name": item.name, "arguments": arguments_object(item)}
            return f"Assistant: {json.dumps(call, ensure_ascii=False)}"


def _within_turn(text: str) -> str:
    """Return `text` with no line that begins as a turn does. A role's lines are its only mark."""
    return _BEFORE_ROLE.sub(lambda blank: _BREAK.sub(r"\g<0> ", blank[0]), text)
