"""The agent's end of the control API: it checks who asks, does what is asked, and answers.

The control process asks by room-service RPC, the only way through LiveKit that brings an answer
back to the asker alone (a participant attribute would show the list of tools to the whole room).
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its rooms open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from livekit import api, rtc

from caal_node.control.messages import (
    AGENT_REQUEST,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    ToolsAnswer,
    ToolsRequest,
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
from caal_node.core.counted import counted
from caal_node.core.errors import (
    ConfigError,
    ModelError,
    ModelMissing,
    ModelReplyError,
    ModelTimeout,
    ModelUnreachable,
)

logger = logging.getLogger(__name__)

RELOAD_S: Final = 45.0
"""A reload asks every MCP server and n8n; one that is down costs its connect deadline."""
MAX_WAITING: Final = 4
"""This many reloads and changes of the model may wait for the one that runs."""
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
        on_tools: Callable[[ToolsRequest], Awaitable[ToolsAnswer]] | None = None,
        api_key: str | None = None,
        api_secret: str | None = None,
        reload_s: float = RELOAD_S,
    ) -> None:
        """Listen as soon as `room` is connected.

        `on_reload` and `on_model` may take `reload_s` seconds, and are cancelled then and by
        `aclose`; `on_tools` has deadlines of its own. The caller reads what a CaalError of theirs
        says, but of a ModelError only its kind: its text may quote a server. Without a key and a
        secret, LIVEKIT_API_KEY and LIVEKIT_API_SECRET are taken from the environment; where those
        are not set either, every request is refused.
        """
        self._room = room
        self._on_reload = on_reload
        self._on_model = on_model
        self._on_tools = on_tools
        self._verifier = api.TokenVerifier(api_key, api_secret, leeway=LEEWAY)
        self._began = time.time()
        self._reload_s = reload_s
        self._one_at_a_time = asyncio.Lock()
        self._unfinished = 0
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
