"""A LiveKit server's rooms in memory, with a listening agent: it signs and sizes each message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self, cast

from livekit import rtc

from caal_node.control.listener import ControlListener
from caal_node.control.messages import (
    ModelReport,
    ModelRequest,
    ReloadReport,
    ToolsAnswer,
    ToolsRequest,
)
from caal_node.control.room_agents import LiveKitRooms
from caal_node.control.rpc import METHOD, RPC_ANSWER, RpcAnswer, RpcRequest, sign_request
from caal_node.core.events import Announced, AnswerTo, Priority, UserSaid, to_json
from tests.stand_ins.fake_rooms import FakeRoomEvents

KEY, SECRET = "key", "a secret of more than thirty-two bytes"
LIVEKIT_BYTES = 15 * 1024
"""What LiveKit carries in one RPC, and what it takes for an answer."""


class AgentRooms(LiveKitRooms):
    """One room and one agent that answers with `on_tools`: a server's rooms, and an `rtc.Room`."""

    def __init__(
        self,
        on_tools: Callable[[ToolsRequest], Awaitable[ToolsAnswer]] | None = None,
        name: str = "kitchen",
        *,
        on_reload: Callable[..., Awaitable[ReloadReport]] | None = None,
        on_model: Callable[[ModelRequest], Awaitable[ModelReport]] | None = None,
        on_say: Callable[[str, Priority, AnswerTo], Awaitable[Announced]] | None = None,
    ) -> None:
        self.name = name
        self.asked: list[RpcRequest] = []
        self.lose: int = 0
        """How many of the next answers get lost on their way back."""
        self._method: Any = None
        self.listener = ControlListener(
            cast("rtc.Room", self),
            on_reload=on_reload or self._reload,
            on_model=on_model,
            on_say=on_say,
            on_tools=on_tools,
            api_key=KEY,
            api_secret=SECRET,
        )

    async def _reload(self, *_: object) -> ReloadReport:
        return ReloadReport(tool_count=0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.listener.aclose()

    def events(self, room: str) -> Any:
        return FakeRoomEvents([to_json(UserSaid("hello"))], None)

    async def live(self, name: str | None = None) -> Sequence[str]:
        return [self.name] if name in (None, self.name) else []

    async def agents(self, room: str) -> Sequence[str]:
        return ["agent"]

    async def ask(self, room: str, identity: str, request: RpcRequest) -> RpcAnswer | None:
        self.asked.append(request)
        payload = sign_request(request, room=room, api_key=KEY, api_secret=SECRET)
        assert len(payload.encode()) <= LIVEKIT_BYTES
        try:
            answer = await self._method(rtc.RpcInvocationData("1", "server", payload, 2.5))
        except rtc.RpcError:
            return None  # refused
        assert len(answer.encode()) <= LIVEKIT_BYTES
        if self.lose:
            self.lose -= 1
            return None
        return RPC_ANSWER.validate_json(answer)

    # What ControlListener needs of a room and of the participant in it.

    @property
    def local_participant(self) -> AgentRooms:
        return self

    def register_rpc_method(self, name: str, handler: Any, /) -> None:
        assert name == METHOD
        self._method = handler

    def unregister_rpc_method(self, name: str, /) -> None:
        self._method = None

    def isconnected(self) -> bool:
        return True

    def on(self, _event: str, callback: Callable[..., None], /) -> None:
        pass

    def off(self, _event: str, callback: Callable[..., None], /) -> None:
        pass
