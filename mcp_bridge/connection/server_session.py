"""One server as its users see it: its tools, its calls, and what is wrong with it."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

import httpx2
from mcp import Client
from mcp_types import CallToolResult

from mcp_bridge.connection.connection import PendingRequest
from mcp_bridge.connection.connection_actor import ConnectionActor, MakeTransport
from mcp_bridge.connection.resilience import CallDeadline, Uniform
from mcp_bridge.core.elicitation import Elicitor
from mcp_bridge.core.errors import CallTimeout, ServerError, ServerStarting, ServerUnavailable
from mcp_bridge.core.limits import Limits
from mcp_bridge.core.sanitize import clean_text, one_line
from mcp_bridge.core.server_config import ServerConfig, ServerSecrets
from mcp_bridge.core.status import CallProgressed, EventSink, ServerStatus, State
from mcp_bridge.core.tools import ToolCallResult, ToolDefinition, ToolInfo
from mcp_bridge.protocol.tool_listing import ToolListing, list_tools
from mcp_bridge.protocol.tool_results import normalise
from mcp_bridge.security.schema_check import faults_of
from mcp_bridge.transports.server_transport import ServerTransport

logger = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[float, float | None, str], None]
"""A function that takes what is done, a total that may not be known, and the server's words."""
PROGRESS_GAP_S: Final = 0.25
"""The time between two events of a call; nobody looks more often."""
_WORD_S: Final = 0.5
"""So much later than the usual time for a start whoever calls is told what it waits for."""
_PROGRESS_SHOWN_CHARS: Final = 200
_PROGRESS_CHARS: Final = 4_096
"""So much of a message that tells of progress is looked at."""


class ServerSession:
    """Start it, use it, close it. Several managers may use one; it knows nothing of their names.

    Args:
        auth: Signs a remote server's requests; one for all connections, since it holds the tokens.
    """

    def __init__(
        self,
        config: ServerConfig,
        limits: Limits,
        *,
        auth: httpx2.Auth | None = None,
        make_transport: MakeTransport | None = None,
        uniform: Uniform = random.uniform,
    ) -> None:
        self.config: Final = config
        self.listing = ToolListing()
        self.recalled = False
        """Whether `listing` is what the server offered some other time, and not asked for since."""
        self.listed = False
        """Whether the server itself was asked, and answered, at least once."""
        self.watchers: Final[list[Callable[[str], None]]] = []
        """Functions that are called with the server's name when `listing` has become another, and
        when the server is down from then on or is not any more."""
        self._secrets: Final = ServerSecrets(config)
        self._limits: Final = limits
        self._confirming: Final = asyncio.Lock()
        self._actor: Final = ConnectionActor(
            config,
            limits,
            list_tools=self._list_tools,
            relist=self._relist,
            idled=self._idled,
            turned=self._tell,
            make_transport=make_transport
            or partial(ServerTransport, auth=auth, secrets=self._secrets),
            uniform=uniform,
        )

    @property
    def failure(self) -> str | None:
        """What is wrong, or what a first start takes its time for, and how to mend it, on one
        line; None while nothing is."""
        return self._actor.failure or self._actor.waiting

    def status(
        self, config: ServerConfig, held: int = 0, added: int = 0, notes: Sequence[str] = ()
    ) -> ServerStatus:
        """Gives the status for a manager that uses the session with `config`, holds back so many of
        its tools, offers so many new ones, and has `notes` on them.
        """
        waiting = self._actor.waiting
        return ServerStatus(
            name=config.name,
            state=self._state(),
            transport=config.transport,
            tools=len(self.listing.definitions) - held,
            connect_ms=self._actor.connect_ms,
            error=self._actor.failure,
            notes=(*((waiting,) if waiting else ()), *notes, *self.listing.notes, *config.remarks),
            held=held,
            added=added,
            protocol=self._actor.protocol,
            shared=config.share,
        )

    def _state(self) -> State:
        if self._actor.failure:
            return "down"
        if self.recalled:
            return "idle"
        return "ready" if self.listed else "starting"

    def start(self) -> None:
        self._actor.start()

    def recall(self, definitions: Sequence[ToolDefinition]) -> None:
        """Takes these tools for the server's, until it is asked."""
        self.listing = ToolListing(tuple(definitions))
        self.recalled = True

    async def refresh(self, *, patient: bool = True) -> None:
        """Connects if need be and lists the tools anew. What goes wrong is in `failure`.

        Recalled tools stay where the server cannot be reached: the next call tries again.

        Args:
            patient: Whether a first start may take its time. Who is not, leaves it to go on.
        """
        try:
            await self._ask_for_tools(counts=True, patient=patient)
        except (CallTimeout, ServerUnavailable, ServerError) as error:
            if self._actor.waiting:
                return  # it is neither here nor down
            self._actor.failure = error.reason
            logger.warning("%s: %s", self.config.name, error.reason)
            if not self.recalled:
                self._take(ToolListing())

    async def confirm(self) -> None:
        """Connects an idle server and takes its list of today for the remembered one.

        Raises: ServerUnavailable; ServerStarting, while the server may be downloaded.
        """
        async with self._confirming:
            if not self.recalled:
                return  # another call has done it meanwhile
            self._actor.admit()
            if self._actor.waiting is None:
                await self.refresh(patient=False)
            if self._actor.waiting is not None:
                raise ServerStarting(self.config.name, self._actor.waiting)
            if self.failure is not None:
                raise ServerUnavailable(self.config.name, self.failure)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_s: float,
        on_progress: Progress | None = None,
        elicitor: Elicitor | None = None,
    ) -> ToolCallResult:
        """Calls a tool by its name at the server.

        Raises: ServerUnavailable, CallTimeout, ServerError.
        """
        self._actor.admit()
        deadline = CallDeadline(timeout_s, self._limits.call_cap_s)

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            deadline.note_progress()
            if on_progress is not None:
                said = (message or "")[:_PROGRESS_CHARS]
                on_progress(progress, total, self._secrets.redact_result(said))

        async def work(client: Client) -> ToolCallResult:
            result = await client.call_tool(tool, dict(arguments), progress_callback=progressed)
            self._check_answer(tool, result)
            return normalise(result, self._limits.max_result_chars, self._secrets.redact_result)

        request = PendingRequest(work, tool=tool, elicitor=elicitor, hold=deadline.hold)
        return await self._actor.submit(request, deadline)

    async def aclose(self) -> None:
        """Ends the connection, the process and their task. Calls under way fail."""
        await self._actor.aclose()

    def _check_answer(self, tool: str, result: CallToolResult) -> None:
        """Raises: ServerError, where a structured answer is not what the tool said it would be."""
        schema = self.listing.output_schemas.get(tool)
        if schema is None or result.is_error:
            return
        name = f"{self.config.name}: {one_line(tool, 80)}"
        missing = "structured_content" not in result.model_fields_set
        if missing or faults_of(schema, result.structured_content, name):
            raise ServerError(self.config.name, "its answer does not fit its own output schema")

    async def _ask_for_tools(self, *, counts: bool, patient: bool = True) -> None:
        """Raises: ServerUnavailable, CallTimeout, ServerError."""
        actor = self._actor
        deadline_s = actor.start_timeout_s + actor.connect_timeout_s
        if actor.is_first_start and not patient:
            deadline_s = actor.connect_timeout_s + _WORD_S
        request = PendingRequest(self._list_tools, counts=counts)
        await self._actor.submit(request, CallDeadline(deadline_s, deadline_s))

    async def _list_tools(self, client: Client) -> None:
        listing = await list_tools(client, self._limits, self._secrets.redact_result)
        self._actor.failure = None
        self.recalled = False
        self.listed = True
        for note in listing.notes:
            logger.warning("%s: %s", self.config.name, note)
        self._take(
            replace(listing, definitions=tuple(filter(self._is_offered, listing.definitions)))
        )

    def _is_offered(self, tool: ToolDefinition) -> bool:
        return self.config.offers(tool.name)

    def _take(self, listing: ToolListing) -> None:
        before = self.listing
        # The same object for the same tool: nobody has to compare schemas of megabytes again.
        known = {tool.digest: tool for tool in before.definitions}
        found = tuple(known.get(tool.digest, tool) for tool in listing.definitions)
        same = [t.digest for t in found] == [t.digest for t in before.definitions]
        self.listing = replace(listing, definitions=before.definitions if same else found)
        if not same or listing.notes != before.notes:
            self._tell()

    def _tell(self) -> None:
        for watcher in list(self.watchers):
            watcher(self.config.name)

    async def _relist(self) -> None:
        """Asks beside the calls, when the tools may be others. The old ones stay if that fails."""
        try:
            await self._ask_for_tools(counts=False)
        except (CallTimeout, ServerUnavailable, ServerError) as error:
            logger.warning("%s: its changed tools: %s", self.config.name, error.reason)

    def _idled(self) -> None:
        self.recalled = self.listed


def progress_reporter(
    tool: ToolInfo, sink: EventSink | None, now: Callable[[], float] = time.monotonic
) -> Progress | None:
    """Gives a function that tells `sink` of one call's progress; None without a sink.

    The first report passes, and whatever reaches the total.
    """
    if sink is None:
        return None
    last_at, furthest = -math.inf, -math.inf

    def report(done: float, total: float | None, message: str) -> None:
        nonlocal last_at, furthest
        at = now()
        if not math.isfinite(done) or done <= furthest:
            return  # the protocol has it grow
        total = total if total is not None and math.isfinite(total) else None
        if at - last_at < PROGRESS_GAP_S and done != total:
            return
        last_at, furthest = at, done
        words = " ".join(clean_text(message[:1000], _PROGRESS_SHOWN_CHARS).split())
        sink(CallProgressed(tool.name, tool.server, done, total, words))

    return report
