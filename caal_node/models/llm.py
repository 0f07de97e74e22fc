"""`LLM`: any local model as a LiveKit `llm.LLM`, with replies understood and calls made whole.

It works in an ordinary `Agent`, too. Spans, usage, retries, error events and cancellation are
LiveKit's own, by `llm.LLMStream`.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import Any, Final, Literal

from livekit.agents import APIConnectOptions, APITimeoutError, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, NotGivenOr
from livekit.agents.utils import aio, is_given, shortuuid

from caal_node.context.prompt_tools import PromptTools
from caal_node.core.errors import CaalError
from caal_node.core.tool_spec import examples_in
from caal_node.models.backends.base import Backend, ReplyDone, ServerCall, ServerResult, Usage
from caal_node.models.backends.factory import Api, make_backend
from caal_node.models.backends.livekit import LiveKitBackend
from caal_node.models.chat_context import as_api_error, call_delta, to_items, to_schemas
from caal_node.models.model_connection import AS_CONFIGURED, ModelConnection, ModelMemory
from caal_node.models.question import Question
from caal_node.models.retry_policy import RetryPolicy, TextStyle
from caal_node.reply_parser import BrokenCall, Event, TextDelta, ToolCallEnd, UnknownCall

logger = logging.getLogger("caal_node.models")

SERVER_RUN: Final = "caal_server_run"
"""Key in a delta's `extra` of a ServerCall or ServerResult."""
_BROKEN: Final = "The call was not made."
REPLY_TOKENS: Final = 1024
"""Tokens of one reply: four minutes of speech. It ends a model that repeats itself for ever."""


class LLM(llm.LLM[Literal["caal"]]):
    """A local model behind LiveKit's interface.

    Args:
        model: The server's name for it, such as `qwen3:8b`.
        api: The wire format: Ollama's own, OpenAI's chat completions, or bare completions;
            `livekit` is any LiveKit plugin, `model` then being `module:factory` of one.
        base_url: The server; None is Ollama's usual address.
        api_key: Sent as a bearer token where the server wants one.
        native_tools: True or False settles how tools are asked for; None finds out by asking.
        why: Who settled `native_tools`, for the log and for `retry_policy.stats`.
        memory: Told what is found out about the model, for the sessions to come.
        text_protocol: How calls are written where they are asked for by text.
        max_tokens: Tokens of one reply at most.
        options: Passed to the backend: num_ctx, think, keep_alive, temperature.
    """

    def __init__(
        self,
        model: str = "qwen3:8b",
        api: Api = "ollama",
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        native_tools: bool | None = None,
        why: str = AS_CONFIGURED,
        memory: ModelMemory | None = None,
        text_protocol: TextStyle = "auto",
        max_tokens: int = REPLY_TOKENS,
        backend: Backend | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._text_protocol: TextStyle = text_protocol
        self._connection = ModelConnection(
            backend or make_backend(model, api, base_url, api_key, **options),
            native_tools,
            text_protocol,
            why=why,
            memory=memory,
        )
        self._api: Api = api
        self._max_tokens = max_tokens
        self._retiring: set[asyncio.Task[None]] = set()
        self._last_tools: tuple[tuple[llm.Tool, ...], PromptTools] | None = None
        """The tools of the last conversation, and what prompts show of them."""

    @classmethod
    def over(cls, model: llm.LLM, *, native_tools: bool | None = True) -> LLM:
        """Any other LiveKit model, its replies understood as a local one's are.

        `model` stays its owner's to close.
        """
        return cls(backend=LiveKitBackend(model), api="livekit", native_tools=native_tools)

    @property
    def model(self) -> str:
        return self._connection.backend.model

    @property
    def provider(self) -> str:
        return self._api

    @property
    def backend(self) -> Backend:
        return self._connection.backend

    @property
    def retry_policy(self) -> RetryPolicy:
        """The ways of asking the model in use, and what was seen on them."""
        return self._connection.retry_policy

    async def switch(
        self,
        model: str,
        api: Api | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        native_tools: bool | None = None,
        backend: Backend | None = None,
        **options: Any,
    ) -> None:
        """Ask another model from the next request on; replies under way end on the old one.

        The arguments are those of the class; `api` None is the one in use.

        Raises:
            ModelError: the server does not answer or has no such model; the old one stays in use.
            ConfigError: an address or an option cannot be used; the old one stays in use.
        """
        api = api or self._api
        new = ModelConnection(
            backend or make_backend(model, api, base_url, api_key, **options),
            native_tools,
            self._text_protocol,
        )
        try:
            await new.backend.capabilities()
        except BaseException:
            await new.aclose()
            raise
        old, self._connection, self._api = self._connection, new, api
        leaving = asyncio.create_task(old.retire(), name="caal-retire-model")
        self._retiring.add(leaving)
        leaving.add_done_callback(self._retiring.discard)

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        extra_kwargs: NotGivenOr[dict[str, Any]] = NOT_GIVEN,
    ) -> llm.LLMStream:
        """Ask the model.

        `extra_kwargs` takes `stream` (bool), `reply_within_s` (seconds in which the reply must
        begin), and `question`: what to ask, as a `Question` that the caller has made, in place of
        the one that is made of `chat_ctx` and `tools`. Those then serve LiveKit's spans alone.
        """
        extra = extra_kwargs if is_given(extra_kwargs) else {}
        question: Question | None = extra.get("question")
        if question is None:
            question = self.question(
                chat_ctx,
                tools or [],
                stream=extra.get("stream", True),
                may_call=not (is_given(tool_choice) and tool_choice == "none"),
            )
        if question.max_tokens is None:
            question = replace(question, max_tokens=self._max_tokens)
        given: Any = {"chat_ctx": chat_ctx, "tools": tools or [], "conn_options": conn_options}
        return _Stream(self, self._connection, question, extra.get("reply_within_s"), **given)

    def question(
        self,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        *,
        stream: bool = True,
        may_call: bool = True,
    ) -> Question:
        """The question that a LiveKit conversation and its tools make."""
        given = tuple(tools)
        if self._last_tools is None or self._last_tools[0] != given:
            examples = {tool.id: examples_in(tool.__doc__) for tool in tools}
            self._last_tools = given, PromptTools(to_schemas(tools), examples)
        shown = self._last_tools[1]
        return Question(to_items(chat_ctx), shown, stream=stream, may_call=may_call)

    async def warm(self, question: Question) -> None:
        """Load the model and have its server read the prompt's head, which turns then share.

        Raises:
            ModelError: the server cannot be reached, or has no such model.
        """
        connection = self._connection
        with connection.in_use():
            await connection.warm(question)

    async def find_strategy(self) -> None:
        """Settle, once, whether the model's own tool calls can be used.

        Raises:
            ModelError: it could not be asked. The next turn tries again.
        """
        await self._connection.find_strategy()

    async def _prewarm_impl(self) -> None:
        await self.find_strategy()

    async def aclose(self) -> None:
        await super().aclose()
        await aio.cancel_and_wait(*self._retiring)
        await self._connection.aclose()


class _Stream(llm.LLMStream):
    """One reply, as LiveKit's chunks."""

    def __init__(
        self,
        model: LLM,
        connection: ModelConnection,
        question: Question,
        reply_within_s: float | None,
        **given: Any,
    ) -> None:
        super().__init__(model, **given)
        self._reply_within_s = reply_within_s
        self._connection = connection
        self._question = question
        self._request_id = shortuuid("caal_")
        # A second attempt after speech has gone out would say it twice.
        self._retry_on_chunk_sent = False

    async def _run(self) -> None:
        usage = Usage()
        sent: set[tuple[str, str]] = set()
        try:
            async with asyncio.timeout(self._reply_within_s) as begin:
                with self._connection.in_use():
                    if self._question.tools.schemas:
                        await self._connection.find_strategy()
                    async for event in self._connection.ask(self._question):
                        begin.reschedule(None)
                        if isinstance(event, ReplyDone):
                            usage += event.usage
                        elif isinstance(event, ServerCall | ServerResult):
                            told = llm.ChoiceDelta(extra={SERVER_RUN: event})
                            self._event_ch.send_nowait(
                                llm.ChatChunk(id=self._request_id, delta=told)
                            )
                        elif (delta := _delta(event, sent)) is not None:
                            chunk = llm.ChatChunk(id=self._request_id, delta=delta)
                            self._event_ch.send_nowait(chunk)
        except CaalError as error:
            raise as_api_error(error) from error
        except TimeoutError as error:
            raise APITimeoutError(f"no reply began within {self._reply_within_s:g} s") from error
        self._event_ch.send_nowait(llm.ChatChunk(id=self._request_id, usage=_completion(usage)))


def _delta(event: Event, sent: set[tuple[str, str]]) -> llm.ChoiceDelta | None:
    """The chunk of an event. A call that this reply has made already is not made again."""
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
    return None


def _completion(usage: Usage) -> llm.CompletionUsage:
    return llm.CompletionUsage(
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        prompt_cached_tokens=usage.cached,
        total_tokens=usage.prompt + usage.completion,
    )
