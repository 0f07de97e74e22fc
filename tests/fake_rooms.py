"""A LiveKit server's rooms in memory, for the control API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from caal_node.control.reports import ControlRequest, ReloadReport
from caal_node.control.rpc import Answer, CallDone

REPORT = ReloadReport(4, added=("get_weather",), changed=("timer",), failed=("files",))


class FakeRooms:
    """`agents`: a room's agents; `answers`: what each `ask` gives, the last one for ever."""

    def __init__(
        self,
        agents: dict[str, list[str]],
        answers: Sequence[Answer | Exception | None] = (CallDone(REPORT),),
    ) -> None:
        self.rooms = agents
        self.answers = list(answers)
        self.asked: list[tuple[str, str, ControlRequest]] = []
        self.is_open = False
        self.broken: Exception | None = None

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.is_open = False

    async def live(self, name: str | None = None) -> Sequence[str]:
        if self.broken is not None:
            raise self.broken
        return [room for room in self.rooms if name in (None, room)]

    async def agents(self, room: str) -> Sequence[str]:
        return self.rooms.get(room, [])

    async def ask(self, room: str, identity: str, request: ControlRequest) -> Answer | None:
        self.asked.append((room, identity, request))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer
