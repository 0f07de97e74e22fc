"""A LiveKit server's rooms in memory, for the control API; a test gives the agents' answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Self

from caal_node.control.messages import (
    AGENT_REQUEST,
    AgentAnswer,
    AgentRequest,
    ModelReport,
    ReloadReport,
    SayReport,
)
from caal_node.control.room_agents import LiveKitRooms
from caal_node.control.rpc import (
    MAX_REQUEST_BYTES,
    AnswerChunk,
    RequestFailed,
    RpcAnswer,
    RpcRequest,
    SendChunk,
    join,
    split,
)

REPORT = ReloadReport(tool_count=4, added=("get_weather",), changed=("timer",), failed=("files",))


class FakeRoomEvents:
    """The events of a room that then closes."""

    def __init__(self, lines: Sequence[str], broken: Exception | None) -> None:
        self._lines, self._broken = lines, broken
        self.is_left = False

    async def __aenter__(self) -> Self:
        if isinstance(self._broken, OSError):
            raise self._broken
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.is_left = True

    async def lines(self, idle_s: float) -> AsyncGenerator[str]:
        for line in self._lines:
            yield line


class FakeRooms(LiveKitRooms):
    """A LiveKit server's rooms whose agents answer as they are told.

    Args:
        agents: names the agents of each room.
        answers: holds what each RPC gives, the last one for ever; None is an agent that does not
            listen. An agent that listens answers the question who listens by itself.
    """

    def __init__(
        self,
        agents: dict[str, list[str]],
        answers: Sequence[AgentAnswer | RpcAnswer | Exception | None] = (REPORT,),
    ) -> None:
        self.rooms = agents
        self.answers = list(answers)
        self.called: list[str] = []
        """The identity of each RPC's agent."""
        self.asked: list[tuple[str, str, AgentRequest]] = []
        """Each request that has arrived: its room, its agent and what it asks."""
        self.is_open = False
        self.broken: Exception | None = None
        self.lines: list[str] = []
        """The events of every room."""

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.is_open = False

    async def live(self, name: str | None = None) -> Sequence[str]:
        if self.broken is not None:
            raise self.broken
        return [room for room in self.rooms if name in (None, room)]

    def events(self, room: str) -> Any:
        return FakeRoomEvents(self.lines, self.broken)

    async def agents(self, room: str) -> Sequence[str]:
        return self.rooms.get(room, [])

    async def ask(self, room: str, identity: str, request: RpcRequest) -> RpcAnswer | None:
        self.called.append(identity)
        if isinstance(request, SendChunk):
            assert request.of == 1
            text = join([request.data], MAX_REQUEST_BYTES)
            self.asked.append((room, identity, AGENT_REQUEST.validate_json(text)))
        elif not self.asked and self.answers[0] is not None:
            return RequestFailed(reason="unknown")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ReloadReport | ModelReport | SayReport):
            [data] = split(answer.model_dump_json())
            return AnswerChunk(number=0, of=1, data=data)
        assert answer is None or isinstance(answer, RpcAnswer)
        return answer
