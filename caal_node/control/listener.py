"""The agent's end of the control API: checks who asks, does it, answers.

The control process asks by room-service RPC, the only way through LiveKit that brings an answer
back to the asker alone (a participant attribute would show the list of tools to the whole room).
The server gives up on an RPC after 3 s and then repeats it, so no call waits for the reload: it
starts the reload or finds it by its id, waits a moment, and says how far it is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Protocol

from livekit import api, rtc

from caal_node.control.chunking import PageRequest, PartRequest
from caal_node.control.reports import (
    ControlRequest,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    Report,
)
from caal_node.control.request_dedup import ANSWER_S, Deliveries
from caal_node.control.rpc import (
    METHOD,
    Answer,
    CallDone,
    CallFailed,
    CallRunning,
    NotGenuine,
    Request,
    unseal,
    write_answer,
)
from caal_node.core.errors import CaalError, ConfigError

logger = logging.getLogger(__name__)

RELOAD_S: Final = 45.0
"""A reload asks every MCP server and n8n; one that is down costs its connect deadline."""
MAX_WAITING: Final = 4
MAX_REMEMBERED: Final = 16
"""Finished reloads whose answer can still be fetched."""
MAX_NAMED: Final = 32
"""Refused callers that are named in the log; each is named once."""
REFUSED: Final = 4001
"""RPC error code of a request that is not genuine (LiveKit keeps 1001 to 1999 for itself)."""


class ControlParticipant(Protocol):
    """Of rtc.LocalParticipant, what is needed here."""

    def register_rpc_method(self, method_name: str, handler: Any, /) -> object: ...

    def unregister_rpc_method(self, method: str, /) -> None: ...


class ControlRoom(Protocol):
    """Of rtc.Room, what is needed here."""

    @property
    def name(self) -> str: ...

    @property
    def local_participant(self) -> ControlParticipant: ...

    def isconnected(self) -> bool: ...

    def on(
        self, event: Literal["connection_state_changed"], callback: Callable[..., None], /
    ) -> object: ...

    def off(
        self, event: Literal["connection_state_changed"], callback: Callable[..., None], /
    ) -> None: ...


class ControlListener:
    """Answers control requests in one connected room, one reload at a time, in their order."""

    def __init__(
        self,
        room: ControlRoom,
        *,
        on_reload: Callable[[ReloadRequest], Awaitable[ReloadReport]],
        on_model: Callable[[ModelRequest], Awaitable[ModelReport]] | None = None,
        on_tools: Callable[[str], Awaitable[str]] | None = None,
        api_key: str | None = None,
        api_secret: str | None = None,
        reload_s: float = RELOAD_S,
    ) -> None:
        """Listen as soon as `room` is connected.

        `on_reload` and `on_model` may take `reload_s` seconds, and are cancelled then and by
        `aclose`; what a CaalError of theirs says is told to the caller. `on_tools` is given a
        request of `tool_messages` as text, and gives the answer's; it has deadlines of its own.
        Without a key and a secret, LIVEKIT_API_KEY and LIVEKIT_API_SECRET are taken from the
        environment; where those are not set either, every request is refused.
        """
        self._room = room
        self._on_reload = on_reload
        self._on_model = on_model
        self._verifier = api.TokenVerifier(api_key, api_secret)
        self._reload_s = reload_s
        self._turn = asyncio.Lock()
        self._tools = Deliveries(on_tools or _no_tools)
        self._reloads: dict[str, asyncio.Task[Answer]] = {}
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
        for task in self._reloads.values():
            task.cancel()
        await asyncio.gather(*self._reloads.values(), return_exceptions=True)
        await self._tools.aclose()

    def _listen(self, _state: object = None) -> None:
        if not self._listening and self._room.isconnected():
            self._listening = True
            self._room.local_participant.register_rpc_method(METHOD, self._answer)

    async def _answer(self, call: rtc.RpcInvocationData) -> str:
        try:
            request = unseal(call.payload, room=self._room.name, verifier=self._verifier)
        except NotGenuine as why:
            self._refuse(call.caller_identity, str(why))
            raise rtc.RpcError(REFUSED, "not a genuine control request") from None
        return write_answer(await self._answered(request))

    async def _answered(self, request: Request) -> Answer:
        if self._closed:
            return CallFailed("error")
        if isinstance(request, PartRequest):
            return await self._tools.take(request)
        if isinstance(request, PageRequest):
            return await self._tools.page(request)
        task = self._reloads.get(request.id) or self._start(request)
        if task is None:
            return CallFailed("busy")
        done, _ = await asyncio.wait({task}, timeout=ANSWER_S)
        if not done:
            return CallRunning()
        return CallFailed("error") if task.cancelled() else task.result()

    def _start(self, request: ControlRequest) -> asyncio.Task[Answer] | None:
        finished = [id_ for id_, task in self._reloads.items() if task.done()]
        if len(self._reloads) - len(finished) > MAX_WAITING:
            return None
        for id_ in finished[:-MAX_REMEMBERED]:
            del self._reloads[id_]
        self._reloads[request.id] = task = asyncio.create_task(self._do(request))
        return task

    async def _do(self, request: ControlRequest) -> Answer:
        # A later request waits and then looks again: what it was sent for may have appeared
        # after the one before it had looked.
        async with self._turn:
            began = time.monotonic()
            try:
                async with asyncio.timeout(self._reload_s):
                    report = await self._done(request)
            except TimeoutError:
                logger.warning("control stopped after %.0f s", time.monotonic() - began)
                return CallFailed("timeout")
            except CaalError as error:
                logger.error("control failed: %s", error)
                return CallFailed("error", str(error))
            except Exception as error:
                # Its text may quote what a server sent; its type is enough to look further.
                logger.error("control failed: %s", type(error).__name__)
                return CallFailed("error")
            logger.info("done in %.1f s: %s", time.monotonic() - began, _sums(report))
            return CallDone(report)

    async def _done(self, request: ControlRequest) -> Report:
        if isinstance(request, ReloadRequest):
            return await self._on_reload(request)
        if self._on_model is None:
            raise ConfigError("this agent's model cannot be changed")
        return await self._on_model(request)

    def _refuse(self, caller: str, why: str) -> None:
        if caller in self._refused or len(self._refused) >= MAX_NAMED:
            return
        self._refused.add(caller)
        logger.warning("refused a control request of %r: %s", caller[:64], why)


async def _no_tools(_: str) -> str:
    raise ConfigError("this agent's tools cannot be asked for")


def _sums(report: Report) -> str:
    if isinstance(report, ModelReport):
        return f"{report.model} by {report.api}"
    changed = {name: len(getattr(report, name)) for name in ("added", "removed", "changed")}
    counts = ", ".join(f"{count} {name}" for name, count in changed.items())
    return f"{report.tool_count} tools, {counts}, {len(report.failed)} failed"
