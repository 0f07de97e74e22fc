"""Ollama's own API, `/api/chat` (written against 0.17.4; formats from its `api/types.go`).

The `ollama` package is not used to chat: its `chat()` drops the ids of tool calls and everything
nested in a tool's schema, which `tests/contract/test_ollama_package.py` pins.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError

from caal_node.core.addresses import ollama_url
from caal_node.core.errors import ConfigError, ModelReplyError
from caal_node.core.items import CallItem, ResultItem
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    ReasoningChunk,
    ReplyDone,
    TextChunk,
    Think,
    Usage,
)
from caal_node.models.backends.http_transport import (
    HttpTransport,
    Patience,
    TransportDeadlines,
    json_lines,
    server_words,
)
from caal_node.models.backends.openai_server import ShownModel
from caal_node.models.backends.tool_calls import (
    CALLS_READ,
    OR_NONE,
    WORKING,
    CallDelta,
    CallJoiner,
    Count,
    Message,
    ServerRuns,
    TokenOdds,
    ToolResult,
    arguments_object,
    first_of,
    to_messages,
)

ABILITIES_READ: Final = 64
"""What a model can do is told in a few words."""
_OUTSIDE_OPTIONS: Final = frozenset({"think", "keep_alive", "format", "logprobs", "top_logprobs"})
"""Fields of a request that stand beside its `options`, where all that steers sampling stands."""
_UNSWITCHABLE: Final = ("gptoss", "gpt-oss")
"""Families of models that think whatever they are told. The least they do is "low"."""

_STRUCT: Final = re.compile(r"<nil>|\bmap\[|\b0xc0[0-9a-f]{8}|\{object \[")
"""What only Go's notation has: an empty field, a map, a pointer, and a schema's type with its
required parameters, as in `{get_time The time. {object <nil> <nil> [city] {"city": ...}}}`."""


def prints_structs(prompt: str) -> bool:
    """Return whether a prompt's tools are printed as Go's structs.

    A template's `{{ .Function }}` and `{{ .Function.Parameters }}` are since 0.14, in 0.33 too
    (ollama/ollama#14601), as these types have no String method that writes JSON; `{{ . }}` was
    until 0.30. `{{ .Tools }}` and `{{ json .Function }}` are JSON.
    """
    return _STRUCT.search(prompt) is not None


class OllamaMessage(BaseModel):
    content: str | None = None
    thinking: str | None = None
    tool_calls: Annotated[list[CallDelta] | None, first_of(CALLS_READ)] = None
    tool_results: Annotated[list[ToolResult] | None, first_of(CALLS_READ)] = None


_SILENT: Final = OllamaMessage()


class OllamaDebugInfo(BaseModel):
    rendered_template: str = ""


class OllamaReply(BaseModel):
    """One line of a streamed reply, or an unstreamed one whole."""

    error: Any = None
    message: OllamaMessage | None = None
    tool_results: Annotated[list[ToolResult] | None, first_of(CALLS_READ)] = None
    task_status: str | None = None
    """Is sent by servers that run tools themselves, see `tool_calls`."""
    logprobs: Annotated[list[TokenOdds] | None, OR_NONE] = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: Count = None
    eval_count: Count = None
    debug: Annotated[OllamaDebugInfo | None, OR_NONE] = Field(None, alias="_debug_info")

    @property
    def is_last(self) -> bool:
        """Whether no line follows."""
        return self.done and self.task_status != WORKING


class OllamaModelDetails(BaseModel):
    family: str = ""


class OllamaModelInfo(ShownModel):
    """What `/api/show` says of a model. Versions before 0.6.4 name no capabilities."""

    capabilities: Annotated[list[str] | None, first_of(ABILITIES_READ)] = None
    details: OllamaModelDetails = Field(default_factory=OllamaModelDetails)
    template: str = ""
    """In Go's template language. It has no tools where prompts are not written by it."""

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


def chunks_of(
    reply: OllamaReply, calls: CallJoiner, runs: ServerRuns, request: BackendRequest
) -> Iterator[Chunk]:
    """Yield what one line of the reply to `request` means.

    Ollama's own calls are whole. Servers that speak its API also send a name first and the
    arguments in pieces, as OpenAI's do; such a call is known to be whole at the reply's end.
    """
    message = reply.message or _SILENT
    if message.thinking:
        yield ReasoningChunk(message.thinking)
    if message.content:
        tokens = tuple(token.generated() for token in reply.logprobs or ())
        yield TextChunk(message.content, tokens)
    done = None
    if reply.done and reply.is_last:
        usage = Usage(prompt=reply.prompt_eval_count or 0, completion=reply.eval_count or 0)
        done = ReplyDone.of(reply.done_reason, usage, request)
    deltas = message.tool_calls or ()
    if reply.task_status is not None:
        for call in deltas:
            name, arguments = call.function.name or "", call.function.arguments
            yield from runs.started(call.id or "", name, arguments)
    elif deltas or done is not None:
        calls.add(deltas)
        cut = done is not None and done.reason == "length"
        yield from calls.calls(ended=done is not None, cut=cut)
    if results := [*(message.tool_results or ()), *(reply.tool_results or ())]:
        yield from runs.ended(results)
    if done is not None:
        yield done


class OllamaBackend(HttpTransport):
    """One model on one Ollama server.

    think, num_ctx and keep_alive go with every request: unset, they are on, 4096 tokens, and five
    minutes. A prompt that does not fit is refused (`truncate`, `shift`), as Ollama otherwise drops
    the oldest messages without a word, the person's own among them.
    """

    def __init__(
        self,
        model: str,
        *,
        host: str = "",
        api_key: str | None = None,
        think: Think = False,
        num_ctx: int = 8192,
        keep_alive: str | int = "30m",
        temperature: float = 0.0,
        options: Mapping[str, Any] | None = None,
        deadlines: TransportDeadlines | None = None,
    ) -> None:
        """`host` is written like OLLAMA_HOST; `options` are Ollama's further model options.

        Raises:
            ConfigError: the address or the key cannot be used.
        """
        try:
            # People paste the OpenAI-compatible address of the same server.
            url = ollama_url(host).removesuffix("/v1")
        except ValueError as error:
            raise ConfigError(f"OLLAMA_HOST: {error}") from error
        self._think: Think = think
        self._num_ctx: Final = num_ctx
        self._always: Final = {"keep_alive": keep_alive, "truncate": False, "shift": False}
        self._options: Final = {
            "num_ctx": num_ctx,
            "temperature": temperature,
            **(options or {}),
        }
        self._info: OllamaModelInfo | None = None
        super().__init__(
            url,
            model=model,
            api_key=api_key,
            deadlines=deadlines or TransportDeadlines(),
            start="start it with: ollama serve (or set OLLAMA_HOST)",
            fix=f"run: ollama pull {model}",
        )

    async def capabilities(self) -> Capabilities:
        """See `Backend`. `context_tokens` is what a request gets: num_ctx, or less."""
        self._info = info = await self._show()
        has = info.capabilities
        tokens = info.context_tokens or self._num_ctx
        return Capabilities(
            tools=None if has is None else "tools" in has,
            thinking=None if has is None else "thinking" in has,
            schema=True,  # Every version since 0.5 holds a reply to `format`.
            context_tokens=min(self._num_ctx, tokens),
            parameters=info.parameters,
        )

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`."""
        if self._info is None:
            self._info = await self._show()
        think = settled_think(self._think, self._info)
        try:
            async with aclosing(self._reply(request, think)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        except ModelReplyError as error:
            # 0.17 knows levels for gpt-oss only and refuses them, before any chunk, elsewhere.
            if not (isinstance(think, str) and error.status == 400 and "think value" in str(error)):
                raise
        self._think = True
        async with aclosing(self._reply(request, think=True)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def dumps_tools(self, request: BackendRequest) -> bool:
        """See `RendersTools`. Since 0.11.5 Ollama can render a prompt alone, but it loads the model
        first. Older versions write one token."""
        if self._info is None:
            self._info = await self._show()
        if ".Tools" not in self._info.template:
            return False
        asked = replace(request, stream=False, max_tokens=1)
        body = self._body(asked, settled_think(self._think, self._info))
        body["_debug_render_only"] = True
        patience = Patience(self.deadlines, request.first_s)
        try:
            async with aclosing(self.pieces("/api/chat", body, json_lines, patience)) as lines:
                async for line in lines:
                    debug = self._parsed(line).debug
                    return debug is not None and prints_structs(debug.rendered_template)
        except ModelReplyError:
            pass  # The sample request that follows says why.
        return False

    async def _reply(self, request: BackendRequest, think: Think) -> AsyncGenerator[Chunk]:
        calls, runs = CallJoiner(), ServerRuns()
        body = self._body(request, think)
        patience = Patience(self.deadlines, request.first_s)
        pieces = self.pieces("/api/chat", body, json_lines, patience)
        async with aclosing(pieces) as lines:
            async for line in lines:
                reply = self._parsed(line)
                for chunk in chunks_of(reply, calls, runs, request):
                    patience.heard = True
                    yield chunk
                if reply.is_last:
                    patience.end()
        if not patience.is_over:
            raise ModelReplyError(f"{self.address} ended its reply in the middle")

    def _body(self, request: BackendRequest, think: Think) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": to_messages(request.items, _write_call, _write_result),
        }
        if request.tools:
            body["tools"] = request.tools
        body |= {"stream": request.stream, "think": think, **self._always}
        if request.schema is not None:
            body["format"] = request.schema
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        limit = {} if request.max_tokens is None else {"num_predict": request.max_tokens}
        own = {name: value for name, value in request.fields.items() if name in _OUTSIDE_OPTIONS}
        others = {name: value for name, value in request.fields.items() if name not in own}
        return {**body, **own, "options": {**self._options, **limit, **others}}

    def _parsed(self, line: bytes) -> OllamaReply:
        try:
            reply = OllamaReply.model_validate_json(line)
        except ValidationError as error:
            raise ModelReplyError(f"{self.address} sent a line that is no chat reply") from error
        if reply.error is not None:
            # Status 200 was sent long before.
            raise ModelReplyError(f"{self.address} broke off: {server_words(line)}")
        return reply

    async def _show(self) -> OllamaModelInfo:
        try:
            said = await self.fetch("POST", "/api/show", {"model": self.model})
            return OllamaModelInfo.model_validate_json(said)
        except ModelReplyError as error:
            if error.status != 404:
                raise
            return OllamaModelInfo()  # This is a server that speaks /api/chat only.
        except ValidationError as error:
            raise ModelReplyError(f"{self.address} does not answer like Ollama") from error


def _write_call(call: CallItem, index: int) -> Message:
    function = {"index": index, "name": call.name, "arguments": arguments_object(call)}
    return {"id": call.call_id, "function": function}


def _write_result(result: ResultItem) -> Message:
    return {
        "role": "tool",
        "content": result.output,
        "tool_name": result.name,
        "tool_call_id": result.call_id,
    }
