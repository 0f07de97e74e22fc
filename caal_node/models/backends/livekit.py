"""Any LiveKit `llm.LLM` as a backend: Claude, OpenAI, Google and whatever else has a plugin.

An agent may also have such a model directly. Behind `caal_node.LLM` its replies go through this
project's own understanding as well: leaked calls, names that are nearly right, other strategies.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its models open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from livekit.agents import (
    NOT_GIVEN,
    APIConnectionError,
    APIConnectOptions,
    APIError,
    APIStatusError,
    APITimeoutError,
    function_tool,
    llm,
)
from livekit.agents.types import NotGivenOr

from caal_node.core.errors import (
    ModelError,
    ModelMissing,
    ModelOutside,
    ModelReplyError,
    ModelTimeout,
    ModelUnreachable,
)
from caal_node.core.items import CallItem, Item, ResultItem
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    NativeCall,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.backends.http_transport import failure
from caal_node.models.backends.tool_calls import canonical
from caal_node.models.chat_context import to_chat_ctx
from caal_node.network.guard import refusal_in

FIRST_CHUNK_S: Final = 60.0
"""Seconds for a service's first chunk, and between two. Cloud models need under ten."""
IDS_KEPT: Final = 64
"""Calls of one tool whose ids are remembered: more than a window of turns holds."""
_ONCE: Final = APIConnectOptions(max_retry=0, timeout=FIRST_CHUNK_S)
"""`caal_node.LLM` asks again by itself where that helps."""


class LiveKitBackend:
    """Asks `model`, which stays its owner's to close unless it is `owned`."""

    def __init__(self, model: llm.LLM, *, owned: bool = False) -> None:
        self._llm: Final = model
        self._owned: Final = owned
        self._tools: dict[str, tuple[ToolSchema, llm.Tool]] = {}
        self._given_ids: dict[str, list[tuple[str, str]]] = {}
        """Tool name -> the arguments and the id of each call that the plugin has given."""

    @property
    def model(self) -> str:
        return self._llm.model

    @property
    def address(self) -> str:
        return self._llm.provider

    async def capabilities(self) -> Capabilities:
        """Return that calls are structured. LiveKit's models do not say what they can do."""
        return Capabilities(tools=True, schema=False)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`. `schema` and `max_tokens` are the plugin's own settings, if it has any.

        Every other field goes to the plugin as LiveKit's `extra_kwargs`.
        """
        usage, spoke = Usage(), False
        try:
            async with self._llm.chat(
                chat_ctx=to_chat_ctx(self._with_given_ids(request.items)),
                tools=[self._tool(schema) for schema in request.tools],
                tool_choice=_tool_choice(request),
                parallel_tool_calls=NOT_GIVEN if request.parallel is None else request.parallel,
                extra_kwargs=dict(request.fields) or NOT_GIVEN,
                conn_options=_ONCE,
            ) as stream:
                chunks = aiter(stream)
                while (chunk := await self._next(chunks)) is not None:
                    if chunk.usage is not None:
                        usage = _usage(chunk.usage)
                    for piece in _pieces(chunk.delta):
                        spoke = True
                        if isinstance(piece, NativeCall):
                            self._note(piece)
                        yield piece
        except APIError as error:
            raise self._model_error(error) from error
        if not spoke and not usage.completion:
            raise ModelReplyError(f"{self.address} gave no reply")
        yield ReplyDone("stop", usage)

    async def aclose(self) -> None:
        if self._owned:
            await self._llm.aclose()

    async def _next(self, chunks: Any) -> llm.ChatChunk | None:
        try:
            async with asyncio.timeout(FIRST_CHUNK_S):
                return await anext(chunks, None)
        except TimeoutError:
            raise ModelTimeout(f"{self.address} was silent for {FIRST_CHUNK_S:g} s") from None

    def _note(self, call: NativeCall) -> None:
        given = self._given_ids.setdefault(call.name, [])
        given.append((canonical(call.arguments), call.id))
        del given[:-IDS_KEPT]

    def _with_given_ids(self, items: Sequence[Item]) -> list[Item]:
        """Return `items` with the calls under the ids that the plugin gave them.

        Here a call gets an id of its own once it has been understood. Gemini's plugin keeps, by its
        own id, the signature that Gemini wants back with the call.
        """
        free = {name: list(given) for name, given in self._given_ids.items()}
        theirs: dict[str, str] = {}
        for item in items:
            if isinstance(item, CallItem) and (given := free.get(item.name)):
                # Arguments may have been mended since.
                same = [each for each in given if each[0] == canonical(item.arguments)]
                chosen = (same or given)[0]
                given.remove(chosen)
                theirs[item.call_id] = chosen[1]
        return [
            replace(item, call_id=theirs.get(item.call_id, item.call_id))
            if isinstance(item, CallItem | ResultItem)
            else item
            for item in items
        ]

    def _tool(self, schema: ToolSchema) -> llm.Tool:
        """Return a tool that is only described: calls go back to whoever asked, and run there."""
        name = schema["function"]["name"]
        known = self._tools.get(name)
        if known is None or known[0] != schema:
            self._tools[name] = known = (schema, _described(schema["function"]))
        return known[1]

    def _model_error(self, error: APIError) -> ModelError:
        if (why := refusal_in(error)) is not None:
            return ModelOutside(f"{why}, of {self.address}; add its host there")
        if isinstance(error, APITimeoutError):
            return ModelTimeout(f"{self.address} did not answer in time")
        if isinstance(error, APIStatusError):
            if error.status_code == 404:
                return ModelMissing(f"{self.address} has no model {self.model}; fix CAAL_MODEL")
            said = error.body if isinstance(error.body, str) else json.dumps(error.body)
            body = (said if error.body else error.message).encode()
            fix = "check the name that the plugin was given"
            return failure(error.status_code, body, model=self.model, url=self.address, fix=fix)
        if isinstance(error, APIConnectionError):
            return ModelUnreachable(f"{self.address} cannot be reached")
        return ModelReplyError(f"{self.address}: {type(error).__name__}")


def _tool_choice(request: BackendRequest) -> NotGivenOr[llm.ToolChoice]:
    if not request.tools:
        return NOT_GIVEN
    return "required" if request.must_call else "auto"


def _described(function: Mapping[str, Any]) -> llm.Tool:
    async def never(raw_arguments: dict[str, object]) -> None:
        raise AssertionError("a described tool is not run")

    return function_tool(never, raw_schema=dict(function))


def _pieces(delta: llm.ChoiceDelta | None) -> list[Chunk]:
    if delta is None:
        return []
    text: list[Chunk] = [TextChunk(delta.content)] if delta.content else []
    calls = [
        NativeCall(call.call_id, call.name, call.arguments or "{}") for call in delta.tool_calls
    ]
    return [*text, *calls]


def _usage(usage: llm.CompletionUsage) -> Usage:
    return Usage(usage.prompt_tokens, usage.completion_tokens, usage.prompt_cached_tokens)
