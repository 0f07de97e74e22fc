"""`LLM`: any local model as a LiveKit `llm.LLM`, with replies understood and calls made whole.

It works in an ordinary `Agent`, too. Spans, usage, retries, error events and cancellation are
LiveKit's own, by `llm.LLMStream`. docs/livekit.md has what is the same as with LiveKit's plugins.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal, cast

from livekit.agents import APIConnectOptions, APITimeoutError, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, NotGivenOr
from livekit.agents.utils import aio, is_given, shortuuid

from caal_node.config.settings import Settings, load_settings
from caal_node.context.token_estimate import PromptTools
from caal_node.core.addresses import CLOUD, Api
from caal_node.core.errors import CaalError
from caal_node.core.tool_spec import examples_in
from caal_node.livekit_plugin import register
from caal_node.models.backends.base import Backend, ReplyDone, ServerCall, ServerResult, Usage
from caal_node.models.backends.livekit import LiveKitBackend
from caal_node.models.backends.redacting import RedactingBackend, redacting
from caal_node.models.chat_context import as_api_error, call_delta, to_items, to_schemas
from caal_node.models.model_connection import AS_CONFIGURED, ModelConnection, ModelMemory, OnRequest
from caal_node.models.model_settings import backend_of, chosen_settings, is_elsewhere
from caal_node.models.question import Question
from caal_node.models.retry_policy import RetryPolicy
from caal_node.models.strategies.base import TurnClock
from caal_node.network.rooms import enforce_with_rooms
from caal_node.redaction.placeholders import PromptRedaction
from caal_node.redaction.settings import RedactionSettings
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    TextDelta,
    ToolCallEnd,
    UnknownCall,
    UnspokenData,
)

# What `chat` may ask for beside the conversation, and what it means for a `Question`.
#
# The names are those of LiveKit's plugins: `tool_choice`, `parallel_tool_calls`, and
# `extra_kwargs`, which holds fields of OpenAI's requests.

_LIMITS: Final = ("max_tokens", "max_completion_tokens")
_HTTP_ONLY: Final = ("extra_headers", "extra_query", "timeout")
"""Arguments of OpenAI's Python client that are no part of a request's body."""


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """What every request of a model is asked with, where `chat` gives nothing else."""

    max_tokens: int
    tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN
    parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN
    fields: dict[str, Any] = field(default_factory=dict[str, Any])

    def updated(
        self,
        max_tokens: NotGivenOr[int],
        tool_choice: NotGivenOr[llm.ToolChoice],
        parallel_tool_calls: NotGivenOr[bool],
        fields: NotGivenOr[Mapping[str, Any]],
    ) -> RequestOptions:
        """Return these options with those that are given in their place."""
        return RequestOptions(
            max_tokens if is_given(max_tokens) else self.max_tokens,
            tool_choice if is_given(tool_choice) else self.tool_choice,
            parallel_tool_calls if is_given(parallel_tool_calls) else self.parallel_tool_calls,
            dict(fields if is_given(fields) else self.fields),
        )

    def with_fields(self, fields: Mapping[str, Any]) -> RequestOptions:
        """Return these options with `fields` beside their own; `extra_body` is fields as well."""
        both = {**self.fields, **fields}
        body: Mapping[str, Any] = both.pop("extra_body", {})
        return replace(self, fields={**both, **body})

    def with_field(self, name: str, value: Any) -> RequestOptions:
        return self.with_fields({name: value})

    def applied(self, question: Question) -> Question:
        """Return `question` as it is asked with these options.

        Raises:
            ValueError: the tool that has to be called is none of the question's, or there is a
                field that cannot be sent.
        """
        fields = dict(self.fields)
        if unfit := [name for name in _HTTP_ONLY if name in fields]:
            raise ValueError(f"extra_kwargs: {unfit[0]} cannot be sent; leave it out")
        limits = [limit for name in _LIMITS if (limit := fields.pop(name, None)) is not None]
        most = limits[0] if limits else question.max_tokens or self.max_tokens
        parallel = self.parallel_tool_calls if is_given(self.parallel_tool_calls) else None
        question = replace(question, fields=fields, max_tokens=most, parallel=parallel)
        return _with_choice(question, self.tool_choice)


def _with_choice(question: Question, choice: NotGivenOr[llm.ToolChoice]) -> Question:
    """Return `question` with LiveKit's `tool_choice`. Without tools it means nothing."""
    if not is_given(choice) or choice == "auto" or not (question.tools and question.may_call):
        return question
    if choice == "none":
        return replace(question, may_call=False)
    if choice == "required":
        return replace(question, must_call=True)
    name = choice["function"]["name"]
    # A named tool is the only one that is offered: every server that has `required` keeps to that.
    only = question.tools.only([name])
    if not only:
        known = ", ".join(question.tools.names)
        raise ValueError(f"tool_choice: there is no tool {name!r}; there are: {known}")
    return replace(question, tools=only, head=None, must_call=True)


def given_timeout(options: APIConnectOptions) -> float | None:
    """Return the time-out that somebody gave, in seconds; None where nobody gave any options.

    By LiveKit's default, 10 s, a local model may not even be loaded.
    """
    return None if options is DEFAULT_API_CONNECT_OPTIONS else options.timeout


# One reply of a model as LiveKit's chunks.

SERVER_RUN: Final = "caal_server_run"
"""Key in a delta's `extra` of a ServerCall or ServerResult."""
_BROKEN: Final = "The call was not made."


class ReplyStream(llm.LLMStream):
    """Asks `connection` the `question` once; LiveKit's base class asks again after an error.

    A reply must begin within `reply_within_s`. The question's own `timeout_s` is what its owner
    gave as LiveKit's time-out, and what runs into it may be tried again, as with other plugins.
    """

    # Each request has a span with an operation and tokens of its own (`caal_node.telemetry.spans`).
    _genai_operation_name: ClassVar[str | None] = None

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
                    async for event in self._connection.ask(
                        self._question, self._on_request, self._llm.provider
                    ):
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


__all__ = ["LLM", "REPLY_TOKENS", "SERVER_RUN"]

REPLY_TOKENS: Final = 1024
"""Tokens of one reply: four minutes of speech. It ends a model that repeats itself for ever."""
register()  # as LiveKit's plugins do when they are imported


class LLM(llm.LLM[Literal["caal"]]):
    """A local model behind LiveKit's interface.

    What is not given comes from the settings, those that `CaalAgent` reads: the environment and
    `caal.toml`. A wrong value is refused here as it is there.

    Args:
        model: The server's name for it, such as `qwen3:8b`.
        api: The wire format: Ollama's own, OpenAI's chat completions, or bare completions;
            `livekit` is any LiveKit plugin, `model` then being `module:factory` of one;
            `embedded` is an engine of this process's own, `model` then being a GGUF file, a weight
            of `caal_node.weights` or `owner/repository/file.gguf` of the model hub.
        base_url: The server's address. The API key of the settings is not sent to another one.
        api_key: Sent as a bearer token where the server wants one.
        native_tools: True or False settles how tools are asked for; None finds out by asking.
        max_tokens: Tokens of one reply at most.
        tool_choice, parallel_tool_calls, extra_kwargs: Those of `chat` for every request.
        settings: Take the place of those of the environment and `caal.toml`.
        why: Who settled `native_tools`, for the log and for `retry_policy.stats`.
        memory: Makes what is told what is found out about the model of some settings, for the
            sessions to come; also about a model that is changed to.
        backend: Takes the place of a server, and of all settings.
        options: Settings of that name (temperature, think, num_ctx, keep_alive, tool_calls), or
            arguments of the backend (deadlines).

    Raises:
        ConfigError: a value does not fit; the message names it and says what to write.
    """

    def __init__(
        self,
        model: str | None = None,
        api: Api | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        native_tools: NotGivenOr[bool | None] = NOT_GIVEN,
        max_tokens: int = REPLY_TOKENS,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN,
        extra_kwargs: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        why: str = AS_CONFIGURED,
        memory: Callable[[Settings], ModelMemory] | None = None,
        backend: Backend | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if backend is None:
            given = _given(model, api, base_url, api_key, **options)
            settings = chosen_settings(settings or load_settings(), "LLM", given)
            backend = backend_of(settings, "LLM", given)
        self._settings: Settings = settings or Settings()
        enforce_with_rooms(self._settings.network)
        asked = backend.wrapped if isinstance(backend, RedactingBackend) else backend
        self._is_over = settings is None and isinstance(asked, LiveKitBackend)
        self._memory_of: Final = memory
        if not is_given(native_tools):
            native_tools = self._settings.asks_natively
        self._connection = ModelConnection(
            backend,
            native_tools,
            self._settings.text_form,
            why=why,
            memory=memory and memory(self._settings),
        )
        self._request = RequestOptions(
            max_tokens, tool_choice, parallel_tool_calls, dict(extra_kwargs or {})
        )
        self._turn_clock = TurnClock()
        self._retiring: set[asyncio.Task[None]] = set()
        self._last_tools: tuple[tuple[llm.Tool, ...], PromptTools] | None = None
        """The tools of the last conversation, and what prompts show of them."""

    @classmethod
    def over(
        cls,
        model: llm.LLM,
        *,
        native_tools: bool | None = True,
        redaction: RedactionSettings | None = None,
    ) -> LLM:
        """Any other LiveKit model, its replies understood as a local one's are.

        `model` stays its owner's to close. Nobody can say where it is, so what it reads is
        redacted: what looks like a secret, and what `redaction` names.
        """
        reading = PromptRedaction(redaction or RedactionSettings())
        return cls(backend=redacting(LiveKitBackend(model), reading), native_tools=native_tools)

    @property
    def model(self) -> str:
        return self._connection.backend.model

    @property
    def provider(self) -> str:
        """The API, or the provider of the LiveKit model that this one stands over."""
        over = self._is_over and self._settings.api not in CLOUD
        return self._connection.backend.address if over else self._settings.api

    @property
    def backend(self) -> Backend:
        return self._connection.backend

    @property
    def retry_policy(self) -> RetryPolicy:
        """The ways of asking the model in use, and what was seen on them."""
        return self._connection.retry_policy

    def update_options(
        self,
        *,
        model: NotGivenOr[str] = NOT_GIVEN,
        temperature: NotGivenOr[float] = NOT_GIVEN,
        max_tokens: NotGivenOr[int] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN,
        extra_kwargs: NotGivenOr[Mapping[str, Any]] = NOT_GIVEN,
    ) -> None:
        """Change what is given from the next `chat` on; replies under way end as they began.

        `extra_kwargs` takes the place of all that were given before. Whether the server has
        `model` shows at the next request; `switch` asks first.

        Raises:
            ConfigError: a value does not fit; nothing is changed.
        """
        given = {"model": model, "temperature": temperature}
        given = {name: value for name, value in given.items() if is_given(value)}
        settings = chosen_settings(self._settings, "update_options", given)
        request = self._request.updated(max_tokens, tool_choice, parallel_tool_calls, extra_kwargs)
        if is_given(temperature):
            request = request.with_field("temperature", settings.temperature)
        if is_given(model):
            new = ModelConnection(
                backend_of(settings, "update_options", given),
                settings.asks_natively,
                settings.text_form,
                memory=self._memory_of and self._memory_of(settings),
            )
            self._leave(self._connection)
            self._connection, self._is_over = new, False
        self._settings, self._request = settings, request

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

        The arguments are those of the class; what is not given stays as it is.

        Raises:
            ModelError: the server does not answer or has no such model; the old one stays in use.
            ConfigError: an address or an option cannot be used; the old one stays in use.
        """
        given = _given(model, api, base_url, api_key, **options)
        settings = chosen_settings(self._settings, "switch", given)
        described = self._memory_of if backend is None else None
        new = ModelConnection(
            backend or backend_of(settings, "switch", given),
            native_tools,
            settings.text_form,
            memory=described and described(settings),
        )
        try:
            await new.backend.capabilities()
        except BaseException:
            await new.aclose()
            raise
        old, self._connection, self._settings = self._connection, new, settings
        self._is_over = False
        self._leave(old)

    def _leave(self, connection: ModelConnection) -> None:
        """Close `connection` once nobody reads a reply of it any more."""
        try:
            leaving = asyncio.get_running_loop().create_task(
                connection.retire(), name="caal-retire-model"
            )
        except RuntimeError:
            return  # Without an event loop nothing was ever asked, so nothing is open.
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

        `extra_kwargs` goes into the request as it is (`top_p`, `seed`, `stop`), but for `stream`
        (bool), `reply_within_s` (seconds in which the reply must begin, in place of the time-out
        of `conn_options`, or a function that gives them for the model that is asked), `on_request`
        (a function that is told how long each request took, as a `ModelRequestEnded`), and
        `question`: what to ask, as a `Question` that the caller has made, in place of the one that
        is made of `chat_ctx` and `tools`. Those then serve LiveKit's spans alone.

        The time-out of `conn_options` holds for the reply's first piece and between two, but not
        LiveKit's own default, in which a local model may not even be loaded.

        Raises:
            ValueError: `tool_choice` names no tool of these, or `extra_kwargs` has what no
                server of ours can be sent.
        """
        request = self._request.updated(
            NOT_GIVEN, tool_choice, parallel_tool_calls, NOT_GIVEN
        ).with_fields(extra_kwargs if is_given(extra_kwargs) else {})
        question: Question | None = request.fields.pop("question", None)
        stream: bool = request.fields.pop("stream", True)
        on_request: OnRequest | None = request.fields.pop("on_request", None)
        own_patience = "reply_within_s" in request.fields
        within = request.fields.pop("reply_within_s", None)
        if callable(within):
            within = cast("float | None", within(self))
        if question is None:
            question = self.question(chat_ctx, tools or [], stream=stream)
            question = replace(question, tells_unmade=True)
        timeout_s = None if own_patience else given_timeout(conn_options)
        question = replace(
            request.applied(question),
            timeout_s=timeout_s,
            lasts_s=self._turn_clock.lasts(question.conversation),
        )
        given: Any = {"chat_ctx": chat_ctx, "tools": tools or [], "conn_options": conn_options}
        return ReplyStream(self, self._connection, question, within, on_request, **given)

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
        return Question(
            to_items(chat_ctx),
            shown,
            stream=stream,
            may_call=may_call,
            limits=self._settings.tool_calls,
            judges_calls=self._settings.checks.needless_calls,
        )

    async def warm(self, question: Question) -> None:
        """Load the model and have its server read the prompt's head, which turns then share.

        Raises:
            ModelError: the server cannot be reached, or has no such model.
        """
        connection = self._connection
        with connection.in_use():
            await connection.warm(question)

    async def read_ahead(self, question: Question) -> None:
        """Have the server read `question`, where it is one of this network. No other is asked, as
        one may have to be paid for what it reads.

        Raises:
            ModelError: the server could not be asked.
        """
        if not (self._is_over or is_elsewhere(self._settings)):
            connection = self._connection
            with connection.in_use():
                await connection.read_ahead(question)

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


def _given(
    model: str | None, api: str | None, base_url: str | None, api_key: str | None, **others: Any
) -> dict[str, Any]:
    """Return the arguments that were given, by their names."""
    named = {"model": model, "api": api, "base_url": base_url, "api_key": api_key, **others}
    return {name: value for name, value in named.items() if value is not None}
