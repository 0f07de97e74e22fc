"""The agent's end of the control API: it checks who asks, does what is asked, and answers.

The control process asks by room-service RPC, the only way through LiveKit that brings an answer
back to the asker alone (a participant attribute would show the list of tools to the whole room).
"""

# pyright: reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms and models open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final, Protocol, TypeVar, cast, get_args

from livekit import api, rtc
from livekit.agents import llm

from caal_node.config.settings import Settings
from caal_node.control.messages import (
    AGENT_REQUEST,
    CallAnswer,
    CallFailure,
    CallTool,
    FailureKind,
    FindAnswer,
    FindTools,
    ListAnswer,
    ListTools,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    SayReport,
    SayRequest,
    SwitchReport,
    SwitchRequest,
    ToolsAnswer,
    ToolsRequest,
    ToolSummary,
    write_answer,
)
from caal_node.control.rpc import (
    BUSY,
    LEEWAY,
    METHOD,
    REFUSED,
    CannotAnswer,
    NotGenuine,
    RequestDeduplicator,
    RequestFailed,
    SendChunk,
    run_beside_loop,
    verify_request,
)
from caal_node.core.addresses import CLOUD, ModelReference
from caal_node.core.counted import counted
from caal_node.core.errors import (
    ConfigError,
    ConfirmationNeeded,
    ModelError,
    ModelMissing,
    ModelReplyError,
    ModelTimeout,
    ModelUnreachable,
    NotAllowed,
    ToolFailure,
    UnknownTool,
)
from caal_node.core.events import Announced, AnswerTo, Priority
from caal_node.core.tool_spec import Caller
from caal_node.models.backends.cloud import load_plugin
from caal_node.models.llm import LLM
from caal_node.models.model_settings import api_of
from caal_node.tools.direct_calls import DirectCalls
from caal_node.tools.middleware.policy_check import PolicyChecks
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.table import ToolEntry

# Who asks, and what is asked.

logger = logging.getLogger(__name__)

RELOAD_S: Final = 45.0
"""A reload asks every MCP server and n8n; one that is down costs its connect deadline."""
SAY_S: Final = 300.0
"""An announcement waits for silence (120 s at most), and takes 60 s, as its answer does; and it may
wait for others."""
MAX_WAITING: Final = 4
"""This many reloads and changes of the model may wait for the one that runs; and so many
announcements of each priority for theirs."""
MAX_NAMED: Final = 32
"""This many refused callers are named in the log, each of them once."""

R = TypeVar("R", ReloadReport, ModelReport)


class ControlListener:
    """Answers control requests in one connected room.

    Reloads and changes of the model run one at a time. A request that comes again runs once.
    """

    def __init__(
        self,
        room: rtc.Room,
        *,
        on_reload: Callable[[ReloadRequest], Awaitable[ReloadReport]],
        on_model: Callable[[ModelRequest], Awaitable[ModelReport]] | None = None,
        on_say: Callable[[str, Priority, AnswerTo], Awaitable[Announced]] | None = None,
        on_switch: Callable[[SwitchRequest], SwitchReport] | None = None,
        on_tools: Callable[[ToolsRequest], Awaitable[ToolsAnswer]] | None = None,
        api_key: str | None = None,
        api_secret: str | None = None,
        reload_s: float = RELOAD_S,
    ) -> None:
        """Listen as soon as `room` is connected.

        `on_reload` and `on_model` may take `reload_s` seconds, and are cancelled then and by
        `aclose`; `on_tools` has deadlines of its own. `on_say` may take SAY_S. The caller reads
        what a CaalError of theirs says, but of a ModelError only its kind: its text may quote a
        server. Without a key and a secret, LIVEKIT_API_KEY and LIVEKIT_API_SECRET are taken from
        the environment; where those are not set either, every request is refused.
        """
        self._room = room
        self._on_reload = on_reload
        self._on_model = on_model
        self._on_say = on_say
        self._on_switch = on_switch
        self._on_tools = on_tools
        self._verifier = api.TokenVerifier(api_key, api_secret, leeway=LEEWAY)
        self._began = time.time()
        self._reload_s = reload_s
        self._one_at_a_time = asyncio.Lock()
        self._unfinished = 0
        self._unsaid: Counter[Priority] = Counter()
        self._requests = RequestDeduplicator(self._handle)
        self._refused: set[str] = set()
        self._closed = False
        self._listening = False
        room.on("connection_state_changed", self._listen)
        self._listen()

    async def aclose(self) -> None:
        """Stop listening, cancel what runs, and wait until it has ended."""
        if self._closed:
            return
        self._closed = True
        self._room.off("connection_state_changed", self._listen)
        if self._listening:
            self._room.local_participant.unregister_rpc_method(METHOD)
        await self._requests.aclose()

    def _listen(self, _state: object = None) -> None:
        if not self._listening and self._room.isconnected():
            self._listening = True
            self._room.local_participant.register_rpc_method(METHOD, self._answer_rpc)

    async def _answer_rpc(self, call: rtc.RpcInvocationData) -> str:
        try:
            request = verify_request(
                call.payload, room=self._room.name, verifier=self._verifier, since=self._began
            )
        except NotGenuine as why:
            self._log_refusal(call.caller_identity, str(why))
            raise rtc.RpcError(REFUSED, "not a genuine control request") from None
        if self._closed:
            answer = RequestFailed(reason="error")
        elif isinstance(request, SendChunk):
            answer = await self._requests.receive(request)
        else:
            answer = await self._requests.fetch(request)
        return answer.model_dump_json()

    async def _handle(self, text: str) -> str:
        request = await run_beside_loop(lambda: AGENT_REQUEST.validate_json(text), chars=len(text))
        match request:
            case ReloadRequest():
                report = await self._in_turn(lambda: self._on_reload(request))
                return report.model_dump_json()
            case ModelRequest():
                return (await self._change_model(request)).model_dump_json()
            case SayRequest():
                return (await self._say(request)).model_dump_json()
            case SwitchRequest():
                if self._on_switch is None:
                    raise ConfigError("this agent has nothing that can be switched")
                return self._on_switch(request).model_dump_json()
            case _:
                if self._on_tools is None:
                    raise ConfigError("this agent's tools cannot be asked for")
                answer = await self._on_tools(request)
                # Beside the loop: a catalogue takes more than an audio frame.
                return await asyncio.to_thread(write_answer, answer)

    async def _change_model(self, request: ModelRequest) -> ModelReport:
        if (on_model := self._on_model) is None:
            raise ConfigError("this agent's model cannot be changed")
        try:
            return await self._in_turn(lambda: on_model(request))
        except ModelError as error:
            logger.warning("the model was not changed: %s", error)
            raise CannotAnswer("error", _model_fault(error, request)) from None

    async def _say(self, request: SayRequest) -> SayReport:
        if self._on_say is None:
            raise ConfigError("this agent says nothing by itself")
        if self._unsaid[request.priority] > MAX_WAITING:
            raise CannotAnswer("busy", BUSY)
        self._unsaid[request.priority] += 1
        try:
            async with asyncio.timeout(SAY_S):
                done = await self._on_say(request.text, request.priority, request.answer)
                return SayReport(status=done.status, reason=done.reason, words=done.answer)
        except TimeoutError:
            raise CannotAnswer("timeout") from None
        finally:
            self._unsaid[request.priority] -= 1

    async def _in_turn(self, change: Callable[[], Awaitable[R]]) -> R:
        """Reload, or change the model, after those reloads and changes that came before it."""
        if self._unfinished > MAX_WAITING:
            raise CannotAnswer("busy", BUSY)
        self._unfinished += 1
        try:
            async with self._one_at_a_time:
                return await self._in_time(change())
        finally:
            self._unfinished -= 1

    async def _in_time(self, change: Awaitable[R]) -> R:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._reload_s):
                report = await change
        except TimeoutError:
            logger.warning("control stopped after %.0f s", time.monotonic() - began)
            raise CannotAnswer("timeout") from None
        logger.info("done in %.1f s: %s", time.monotonic() - began, _summary(report))
        return report

    def _log_refusal(self, caller: str, why: str) -> None:
        if caller in self._refused or len(self._refused) >= MAX_NAMED:
            return
        self._refused.add(caller)
        logger.warning("refused a control request of %r: %s", caller[:64], why)


def _model_fault(error: ModelError, request: ModelRequest) -> str:
    """Say in our own words why the model was not changed, and nothing of what a server said."""
    match error:
        case ModelMissing():
            return f"the server has no model {request.model!r}; get it there, or name another"
        case ModelUnreachable() | ModelTimeout():
            return "the model's server does not answer; start it, or name another"
        case ModelReplyError(status=int(status)):
            return f"the model's server answered with HTTP {status}; see the agent's log"
        case _:
            return "the model cannot be used; see the agent's log"


def _summary(report: ReloadReport | ModelReport) -> str:
    if isinstance(report, ModelReport):
        return f"{report.model} by {report.api}"
    changed = {name: len(getattr(report, name)) for name in ("added", "removed", "changed")}
    counts = ", ".join(f"{count} {name}" for name, count in changed.items())
    return f"{counted(report.tool_count, 'tool')}, {counts}, {len(report.failed)} failed"


# Another model for a conversation: what a caller of the control API may choose, and what is its
# owner's alone.

_UNLISTED: Final = (
    "base_url: no setting of the agent names this address; its owner lists those that may be "
    "named as CAAL_MODEL_SERVERS, or model_servers in caal.toml."
)
_NAMES_CODE: Final = (
    "This agent's model is a plugin's, whose name is code to be run, or a file of this machine; "
    "send an api: ollama, openai, completions, anthropic or google."
)


async def change_model(settings: Settings, request: ModelRequest, model: llm.LLM) -> ModelReport:
    """Have `model` ask another one from the next reply on, as `request` wants.

    Raises:
        NotAllowed: the request names what the settings do not list; the old model stays.
        ModelError, ConfigError: the model cannot be used, and the old one stays.
    """
    if not isinstance(model, LLM):
        raise ConfigError("only a caal_node.LLM can be changed; this agent has another kind")
    chosen = chosen_model(settings, request, in_use=model.provider)
    key = chosen.api_key.get_secret_value() if chosen.api_key else None
    if chosen.api in CLOUD:
        await load_plugin(chosen.api)
    await model.switch(chosen.model, chosen.api, chosen.model_address, key)
    return ModelReport(model=model.model, api=model.provider)


def chosen_model(settings: Settings, request: ModelRequest, *, in_use: str) -> Settings:
    """Return the settings of the model that is asked for. `in_use` is the wire format by now.

    The address is one of the owner's, as the owner wrote it; theirs is the key, which goes to its
    own server alone.

    Raises:
        NotAllowed: the request names an address that is not listed, or code.
        ConfigError: the wire format is none.
    """
    no_name = in_use in ("livekit", "embedded")
    api = api_of(request.api or (None if no_name else in_use))
    if api is None:
        raise NotAllowed(_NAMES_CODE)
    address = None
    if request.base_url is not None:
        try:
            address = settings.listed_server(request.base_url)
        except ValueError as error:
            raise NotAllowed(f"base_url: {error}.") from None
        if address is None:
            raise NotAllowed(_UNLISTED)
    return settings.with_model(ModelReference(request.model, api, address))


_FAILURE_KINDS: Final[frozenset[str]] = frozenset(get_args(FailureKind))


# The agent's tools: they are listed, found and called for a caller.


class Prompts(Protocol):
    """What is needed of the builder of prompts."""

    @property
    def left_out(self) -> frozenset[str]: ...


class AgentTools:
    """The handler that a `ControlListener` takes as `on_tools`."""

    def __init__(
        self,
        remote: RemoteToolset,
        calls: DirectCalls,
        policies: PolicyChecks,
        prompts: Prompts,
    ) -> None:
        """`prompts` knows for which tools the model's context has no room."""
        self._prompts: Final = prompts
        self._policies: Final = policies
        self._remote: Final = remote
        self._calls: Final = calls

    async def __call__(self, request: ToolsRequest) -> ToolsAnswer:
        """Answer one request of the Tools API."""
        match request:
            case ListTools():
                whole = await self._remote.whole_table()
                failed = dict(self._remote.failed)
                return ListAnswer(tools=await self._summaries(whole), failed=failed)
            case FindTools(patterns=patterns, limit=limit):
                found = await self._remote.find(patterns)
                return FindAnswer(found=len(found), tools=await self._summaries(found[:limit]))
            case CallTool():
                return await self._call(request)

    async def _call(self, call: CallTool) -> CallAnswer | CallFailure:
        try:
            result = await self._calls.run(call.name, call.arguments, call.confirmation)
        except ToolFailure as failure:
            return _call_failure(failure)
        return CallAnswer(
            name=result.entry.exposed,
            tier=result.entry.spec.tier,
            server=result.entry.spec.source,
            call_id=result.call_id,
            duration_ms=result.duration_ms,
            result=result.value,
            truncated=result.truncated,
            spoken=result.spoken,
        )

    async def _summaries(self, entries: Iterable[ToolEntry]) -> list[ToolSummary]:
        left_out, caller = self._prompts.left_out, self._calls.caller
        # 500 tools take 20 ms.
        return await asyncio.to_thread(
            lambda: [self._summary(entry, left_out, caller) for entry in entries]
        )

    def _summary(self, entry: ToolEntry, left_out: Collection[str], caller: Caller) -> ToolSummary:
        spec = entry.spec
        judged = self._policies.judge(entry, caller)
        return ToolSummary(
            name=entry.exposed,
            tier=spec.tier,
            server=spec.source,
            tool=spec.own_name or spec.name,
            description=spec.details or spec.description,
            input_schema=dict(spec.parameters),
            read_only=spec.read_only,
            # What LiveKit's toolsets have found since the table was made is never on demand.
            offered=(
                entry.exposed not in self._remote.table
                or self._remote.stands_in_head(entry.exposed)
            )
            and entry.exposed not in left_out
            and not self._policies.hide(entry),
            effect=judged.effect,
            verdict=judged.action,
        )


def _call_failure(failure: ToolFailure) -> CallFailure:
    kind = failure.kind if failure.kind in _FAILURE_KINDS else "error"
    return CallFailure(
        kind=cast("FailureKind", kind),
        message=str(failure),
        valid_names=list(failure.valid) if isinstance(failure, UnknownTool) else [],
        question=failure.question if isinstance(failure, ConfirmationNeeded) else "",
        confirmation=failure.arguments_hash if isinstance(failure, ConfirmationNeeded) else "",
    )
