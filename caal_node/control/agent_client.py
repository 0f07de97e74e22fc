"""Asking the agent of a live room for its tools, and for a call of one."""

from __future__ import annotations

import asyncio
import uuid
from typing import Final, TypeVar

from caal_node.control.chunking import (
    MAX_ANSWER_BYTES,
    Page,
    PageRequest,
    PartRequest,
    max_parts,
    pack,
    unpack,
)
from caal_node.control.messages import NotDone, ToolsAnswer, ToolsRequest, read_tools_answer
from caal_node.control.rooms import (
    READY_S,
    RETRY_S,
    AgentBusy,
    NoAnswer,
    ReloadFailed,
    RoomsPort,
)
from caal_node.control.rpc import Answer, CallDone, CallFailed, CallRunning, Request

TOOLS_S: Final = 600.0
"""Of a whole request: an agent ends every call by itself, after its own deadline."""
_NOBODY: Final = "nobody-asks-for-this"
"""An id that no request has: who knows nothing of it listens, and has begun nothing."""
_OTHER: Final = "The agent is of another version."

T = TypeVar("T", bound=ToolsAnswer)


async def ask_tools(
    rooms: RoomsPort, room: str, request: ToolsRequest, kind: type[T], deadline_s: float = TOOLS_S
) -> T | NotDone:
    """The agent's answer; `NotDone` where a tool gave none. A call is made once at most.

    Raises:
        NoAnswer: there is no agent, none that listens, or it did not finish in time.
        AgentBusy: it has too much to do.
        ReloadFailed: it could not do it, or is of another version.
    """
    try:
        async with asyncio.timeout(deadline_s):
            identity = await _who_listens(rooms, room)
            answer = await _Exchange(rooms, room, identity).ask(request)
    except TimeoutError:
        raise NoAnswer(f"The agent did not finish within {deadline_s:g} seconds.") from None
    if not isinstance(answer, (kind, NotDone)):
        raise ReloadFailed(_OTHER)
    return answer


async def _who_listens(rooms: RoomsPort, room: str) -> str:
    """The one agent that is asked. Were a second one tried later, a tool might run twice."""
    loop = asyncio.get_running_loop()
    patience = loop.time() + READY_S
    while True:
        candidates = await rooms.agents(room)
        if not candidates:
            raise NoAnswer(f"There is no agent in room {room!r}.")
        for identity in candidates:
            if await rooms.ask(room, identity, PageRequest(_NOBODY, 0)) is not None:
                return identity
        if loop.time() > patience:
            raise NoAnswer(f"No agent in room {room!r} answers to control requests.")
        await asyncio.sleep(RETRY_S)


class _Exchange:
    """One request of one agent, and its answer."""

    def __init__(self, rooms: RoomsPort, room: str, identity: str) -> None:
        self._rooms: Final = rooms
        self._room: Final = room
        self._identity: Final = identity
        self._id: Final = uuid.uuid4().hex

    async def ask(self, request: ToolsRequest) -> ToolsAnswer:
        parts = await asyncio.to_thread(lambda: pack(request.model_dump_json()))
        answer: Answer = CallRunning()
        for number, data in enumerate(parts):
            answer = await self._once(PartRequest(self._id, number, len(parts), data))
        first = await self._page(0, answer)
        if first.of > max_parts(MAX_ANSWER_BYTES):
            raise ReloadFailed(_OTHER)
        pages = [first.data]
        while len(pages) < first.of:
            pages.append((await self._page(len(pages))).data)
        try:
            return await asyncio.to_thread(
                lambda: read_tools_answer(unpack(pages, MAX_ANSWER_BYTES))
            )
        except ValueError:
            raise ReloadFailed(_OTHER) from None

    async def _page(self, number: int, answer: Answer | None = None) -> Page:
        while True:
            match answer or await self._once(PageRequest(self._id, number)):
                case Page() as page:
                    return page
                case CallRunning():
                    answer = None
                case _:
                    raise ReloadFailed(_OTHER)

    async def _once(self, request: Request) -> Answer:
        """Ask until there is an answer: the agent does a request that comes again only once."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + READY_S
        while True:
            match await self._rooms.ask(self._room, self._identity, request):
                case CallFailed("busy", detail):
                    raise AgentBusy(detail)
                case CallFailed("unknown"):
                    raise NoAnswer("The agent has started anew; what it was asked is lost.")
                case CallFailed(reason, detail):
                    why = detail or f"{reason}. See its log."
                    raise ReloadFailed(f"The agent could not do it: {why}")
                case CallDone():
                    raise ReloadFailed(_OTHER)
                case None if loop.time() > patience:
                    raise NoAnswer("The agent has left, or does not answer any more.")
                case None:
                    await asyncio.sleep(RETRY_S)
                case CallRunning() | Page() as answer:
                    return answer
