"""The control process's end: it asks the agent of a live room, and waits for the answer."""

from __future__ import annotations

import asyncio
import uuid
from typing import Final

from caal_node.control.messages import AgentAnswer, AgentRequest, CallFailure, read_answer
from caal_node.control.rooms import AgentBusy, AgentFailed, AgentRefused, LiveKitRooms, NoAnswer
from caal_node.control.rpc import (
    MAX_ANSWER_BYTES,
    AnswerChunk,
    FetchChunk,
    RequestFailed,
    RpcAnswer,
    RpcRequest,
    SendChunk,
    StillRunning,
    expanded_chars,
    join,
    max_chunks,
    run_beside_loop,
    split,
)

CHANGE_S: Final = 60.0
"""A whole reload may take this long for the caller: longer than the agent's own deadline."""
TOOLS_S: Final = 600.0
"""A request for tools may take this long: an agent ends every call at the call's own deadline."""
READY_S: Final = 5.0
"""An agent that has just joined is given this long to begin listening."""
RETRY_S: Final = 0.25
_UNKNOWN_ID: Final = "nobody-asks-for-this"
"""No request has this id: an agent that does not know it listens, and has started nothing."""
_OTHER_VERSION: Final = "The agent is of another version."


async def ask_agent(
    rooms: LiveKitRooms,
    room: str,
    request: AgentRequest,
    answer_type: type[AgentAnswer],
    deadline_s: float,
) -> AgentAnswer:
    """Return the agent's answer: an `answer_type`, or a CallFailure where a tool gave no result.

    The agent acts on the request at most once.

    Raises:
        NoAnswer: there is no agent, none that listens, or it did not finish in time.
        AgentBusy: it has too much to do.
        AgentRefused: its owner does not allow it.
        AgentFailed: it could not do it, or is of another version.
    """
    try:
        async with asyncio.timeout(deadline_s):
            identity = await _listening_agent(rooms, room)
            answer = await _AgentConnection(rooms, room, identity).ask(request)
    except TimeoutError:
        raise NoAnswer(f"The agent did not finish within {deadline_s:g} seconds.") from None
    if not isinstance(answer, (answer_type, CallFailure)):
        raise AgentFailed(_OTHER_VERSION)
    return answer


async def _listening_agent(rooms: LiveKitRooms, room: str) -> str:
    """Return the one agent that is asked. Were a second one tried, a tool might run twice."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + READY_S
    while True:
        candidates = await rooms.agents(room)
        if not candidates:
            raise NoAnswer(f"There is no agent in room {room!r}.")
        for identity in candidates:
            if await rooms.ask(room, identity, FetchChunk(id=_UNKNOWN_ID, number=0)) is not None:
                return identity
        if loop.time() > give_up_at:
            raise NoAnswer(f"No agent in room {room!r} answers to control requests.")
        await asyncio.sleep(RETRY_S)


class _AgentConnection:
    """One agent that listens, for one request and its answer."""

    def __init__(self, rooms: LiveKitRooms, room: str, identity: str) -> None:
        self._rooms: Final = rooms
        self._room: Final = room
        self._identity: Final = identity
        self._id: Final = uuid.uuid4().hex

    async def ask(self, request: AgentRequest) -> AgentAnswer:
        asked = request.model_dump_json()
        chunks = await run_beside_loop(lambda: split(asked), chars=len(asked))
        answer: RpcAnswer = StillRunning()
        for number, data in enumerate(chunks):
            chunk = SendChunk(id=self._id, number=number, of=len(chunks), data=data)
            answer = await self._call(chunk)
        first = await self._fetch(0, answer)
        if first.of > max_chunks(MAX_ANSWER_BYTES):
            raise AgentFailed(_OTHER_VERSION)
        fetched = [first.data]
        while len(fetched) < first.of:
            fetched.append((await self._fetch(len(fetched))).data)
        try:
            text = await run_beside_loop(
                lambda: join(fetched, MAX_ANSWER_BYTES), chars=expanded_chars(fetched)
            )
            return await run_beside_loop(lambda: read_answer(text), chars=len(text))
        except ValueError:
            raise AgentFailed(_OTHER_VERSION) from None

    async def _fetch(self, number: int, answer: RpcAnswer | None = None) -> AnswerChunk:
        while not isinstance(answer, AnswerChunk):
            answer = await self._call(FetchChunk(id=self._id, number=number))
        return answer

    async def _call(self, request: RpcRequest) -> StillRunning | AnswerChunk:
        """Ask until there is an answer: the agent acts on a request that comes again only once."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + READY_S
        while True:
            match await self._rooms.ask(self._room, self._identity, request):
                case RequestFailed(reason="busy", detail=detail):
                    raise AgentBusy(detail)
                case RequestFailed(reason="refused", detail=detail):
                    raise AgentRefused(detail)
                case RequestFailed(reason="unknown"):
                    raise NoAnswer("The agent has started anew; what it was asked is lost.")
                case RequestFailed(reason=reason, detail=detail):
                    why = detail or f"{reason}. See its log."
                    raise AgentFailed(f"The agent could not do it: {why}")
                case None if loop.time() > give_up_at:
                    raise NoAnswer("The agent has left, or does not answer any more.")
                case None:
                    await asyncio.sleep(RETRY_S)
                case StillRunning() | AnswerChunk() as answer:
                    return answer
