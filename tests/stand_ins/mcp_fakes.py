"""A server that is nothing but memory, for what takes half an hour or goes wrong by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from mcp.client.session import ElicitationFnT, MessageHandlerFnT
from mcp_types import (
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolListChangedNotification,
)

from mcp_bridge import Limits, ServerConfig
from mcp_bridge.connection.server_session import ServerSession
from mcp_bridge.transports.server_transport import ServerTransport

CONFIG = ServerConfig("fake", command="fake")


class FakeServer:
    """What a test says it does. `session` gives a session of it, with its own connections."""

    def __init__(self) -> None:
        self.tools = ["echo"]
        self.up = True
        self.fails_after_s = 0.0
        """How long it takes to find out that it is not up."""
        """Whether it can be reached."""
        self.deaf = False
        """Whether it leaves calls without an answer."""
        self.connected_at: list[float] = []
        self.listed = 0
        self.open = 0
        """Connections that stand now."""
        self.progress: list[float] = []
        """Seconds to wait before each sign of progress of a call."""
        self.questions: list[ElicitRequestParams] = []
        """Asked beside a call before it is answered, as servers before 2026-07-28 do."""
        self.answers: list[ElicitResult] = []
        self.transports: list[FakeTransport] = []
        self.calls_done = asyncio.Event()

    def session(self, uniform: Callable[[float, float], float], **limits: Any) -> ServerSession:
        return ServerSession(
            CONFIG, Limits(**limits), make_transport=self.transport, uniform=uniform
        )

    def transport(
        self, config: ServerConfig, max_chars: int, on_close: Callable[[], None]
    ) -> ServerTransport:
        made = FakeTransport(self, config, max_chars, on_close)
        self.transports.append(made)
        return made

    def crash(self) -> None:
        """The newest connection breaks."""
        self.transports[-1].crash()


class FakeTransport(ServerTransport):
    def __init__(
        self, server: FakeServer, config: ServerConfig, max_chars: int, on_close: Callable[[], None]
    ) -> None:
        super().__init__(config, max_chars, on_close)
        self.server = server
        self.stop = on_close
        self.on_message: MessageHandlerFnT | None = None

    @asynccontextmanager
    async def client(  # type: ignore[override]  # a client of three methods stands for the SDK's
        self, on_message: MessageHandlerFnT, elicit: ElicitationFnT
    ) -> AsyncGenerator[Any]:
        self.server.connected_at.append(asyncio.get_running_loop().time())
        if not self.server.up:
            await asyncio.sleep(self.server.fails_after_s)
            raise ConnectionRefusedError
        self.on_message = on_message
        self.server.open += 1
        # Older servers' questions come in through a task of the connection, not of the call.
        asked: asyncio.Queue[tuple[ElicitRequestParams, asyncio.Future[ElicitResult]]]
        asked = asyncio.Queue()

        async def answer() -> None:
            while True:
                params, given = await asked.get()
                given.set_result(await elicit(None, params))  # type: ignore[arg-type]

        answering = asyncio.create_task(answer())
        try:
            yield FakeClient(self.server, asked)
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            self.server.open -= 1

    def may_heal(self, error: BaseException | None, ready: bool) -> bool:
        return True

    def explain_end(self, error: BaseException | None, ready: bool) -> str:
        return "broke" if ready else "nothing answers"

    def crash(self) -> None:
        self.closed = "broke"
        self.stop()

    async def tell_of_changes(self) -> None:
        assert self.on_message is not None
        await self.on_message(ToolListChangedNotification())


class FakeClient:
    protocol_version = "2025-11-25"
    server_capabilities = SimpleNamespace(tools=None)

    def __init__(self, server: FakeServer, asked: asyncio.Queue[Any]) -> None:
        self._server = server
        self._asked = asked

    async def list_tools(self, cursor: str | None = None) -> ListToolsResult:
        self._server.listed += 1
        await asyncio.sleep(0.01)
        names = self._server.tools
        return ListToolsResult(
            tools=[Tool(name=name, input_schema={"type": "object"}) for name in names]
        )

    async def call_tool(
        self, name: str, arguments: dict[str, Any], progress_callback: Any = None
    ) -> CallToolResult:
        for number, seconds in enumerate(self._server.progress, start=1):
            await asyncio.sleep(seconds)
            await progress_callback(float(number), None, f"step {number}")
        if self._server.deaf:
            await asyncio.get_running_loop().create_future()
        for params in self._server.questions:
            given: asyncio.Future[ElicitResult] = asyncio.get_running_loop().create_future()
            self._asked.put_nowait((params, given))
            self._server.answers.append(await given)
        await asyncio.sleep(0.01)
        return CallToolResult(content=[TextContent(text=str(arguments.get("say", "")))])
