"""The rooms of a LiveKit server and the agents in them, as the control process asks and hears them.

Each error says what can go wrong there, for the caller.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import uuid
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import ClassVar, Final, Self
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from google.protobuf.message import DecodeError
from livekit import api, rtc

from caal_node.config.settings import Settings
from caal_node.control.messages import AgentAnswer, AgentRequest, CallFailure, read_answer
from caal_node.control.rpc import (
    MAX_ANSWER_BYTES,
    METHOD,
    REFUSED,
    RPC_ANSWER,
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
    sign_request,
    split,
)
from caal_node.core.errors import CaalError, ConfigError
from caal_node.network.guard import refusal_in
from caal_node.room.front_end import TOPIC

# The rooms of a LiveKit server, and what can go wrong there.

MAX_NAMED: Final = 10
"""This many rooms are named to a caller who has to choose."""
MAX_LOOKED_AT: Final = 20
"""This many rooms are asked for their agents when none is named."""

REQUEST_S: Final = 5.0
ANSWER_MAX_BYTES: Final = 65_536
"""Bytes of an RPC's answer. LiveKit carries 15 KiB of payload, which JSON may double."""
RPC_MS: Final = 2500
"""It is below the 3 s after which the server repeats a call that has no answer."""
MAX_ERROR_CHARS: Final = 2000
MAX_RESPONSE_BYTES: Final = 1 << 20
"""A list of some thousand rooms."""
_RPC_CODE: Final = re.compile(r"RpcError (\d+)")
_HTTP_SCHEMES: Final = {"ws": "http", "wss": "https"}
_WRONG_KEYS: Final = "LiveKit refused the keys; check LIVEKIT_API_KEY and LIVEKIT_API_SECRET."


class ControlError(CaalError):
    """A request cannot be done; `str()` is for the caller, `status` is HTTP's."""

    kind = "control"
    status: ClassVar[int] = 500


class AgentRefused(ControlError):
    """The agent's owner does not allow it."""

    status = 403


class RoomUnknown(ControlError):
    status = 404


class SeveralRooms(ControlError):
    status = 409


class AgentFailed(ControlError):
    """The agent answered, and said that it could not."""

    status = 502


class LiveKitRefused(ControlError):
    """LiveKit or the agent did not take this process's keys, or the server is too old."""

    status = 502


class LiveKitUnreachable(ControlError):
    status = 503


class AgentBusy(ControlError):
    status = 503


class NoAnswer(ControlError):
    status = 504


async def choose_room(rooms: LiveKitRooms, name: str | None) -> str:
    """Return the room that is meant: the named one, or the only live one that has an agent.

    Raises:
        RoomUnknown: no live room has that name, or none is live.
        SeveralRooms: none is named, and there is a choice.
    """
    chosen = await choose_rooms(rooms, name)
    if len(chosen) > 1:
        named = ", ".join(chosen[:MAX_NAMED])
        raise SeveralRooms(f"Several rooms are live; name one as room_name: {named}.")
    return chosen[0]


async def choose_rooms(rooms: LiveKitRooms, name: str | None) -> Sequence[str]:
    """Return the rooms that are meant: the named one, or every live one that has an agent.

    Raises:
        RoomUnknown: no live room has that name, or none with an agent is live.
        SeveralRooms: none is named, and more are live than are looked at.
    """
    live = await rooms.live(name)
    if not live:
        named = ", ".join((await rooms.live())[:MAX_NAMED]) if name else ""
        there = f" Live are: {named}." if named else ""
        raise RoomUnknown(f"There is no live room {name!r}.{there}" if name else "No room is live.")
    if len(live) == 1:
        return live
    looked_at = live[:MAX_LOOKED_AT]
    agents = await asyncio.gather(*(rooms.agents(room) for room in looked_at))
    with_agent = [room for room, there in zip(looked_at, agents, strict=True) if there]
    if len(looked_at) < len(live):
        named = ", ".join((with_agent or live)[:MAX_NAMED])
        raise SeveralRooms(f"Several rooms are live; name one as room_name: {named}.")
    if not with_agent:
        raise RoomUnknown("There is no agent in any live room.")
    return with_agent


class LiveKitRooms:
    """The rooms of one LiveKit server, to be opened with `async with`.

    Every method may raise LiveKitUnreachable or LiveKitRefused.

    livekit-api 1.2 knows no PerformRpc (servers do since 1.9.2), so that one call is made here,
    in the documented Twirp form: JSON over HTTP.
    """

    def __init__(self, url: str, api_key: str, api_secret: str) -> None:
        parts = urlsplit(url)
        self._ws_url = url
        self._url = urlunsplit(parts._replace(scheme=_HTTP_SCHEMES.get(parts.scheme, parts.scheme)))
        self._key = api_key
        self._secret = api_secret

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the server that the settings name.

        Raises:
            ConfigError: LIVEKIT_URL, LIVEKIT_API_KEY or LIVEKIT_API_SECRET is not set.
        """
        secret = settings.livekit_api_secret
        if not settings.livekit_url or not settings.livekit_api_key or secret is None:
            raise ConfigError(
                "LIVEKIT_URL, LIVEKIT_API_KEY, LIVEKIT_API_SECRET: set all three, "
                "as the LiveKit server has them."
            )
        return cls(settings.livekit_url, settings.livekit_api_key, secret.get_secret_value())

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=REQUEST_S),
            response_class=_CappedResponse,
            # What comes compressed all the same is no answer of LiveKit's, and is not unpacked.
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,
        )
        self._api = api.LiveKitAPI(self._url, self._key, self._secret, session=self._http)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._api.aclose()
        await self._http.close()

    async def open(self, name: str, empty_s: int) -> None:
        """Open a room, to which the server then sends an agent. It closes after `empty_s` seconds
        in which no participant has joined."""
        with _control_errors():
            await self._api.room.create_room(
                api.CreateRoomRequest(name=name, empty_timeout=empty_s)
            )

    def events(self, room: str) -> RoomEvents:
        """Return what reads the events of a room; it joins the room where it is entered."""
        return RoomEvents(self._ws_url, self._key, self._secret, room)

    async def live(self, name: str | None = None) -> Sequence[str]:
        """Return the names of the open rooms, empty ones too; with `name`, that one or none."""
        with _control_errors():
            names = [name] if name else None
            found = await self._api.room.list_rooms(api.ListRoomsRequest(names=names))
        # Its count of participants lags by seconds, so empty rooms cannot be told apart here.
        return [room.name for room in found.rooms]

    async def agents(self, room: str) -> Sequence[str]:
        """Return the identities of the agents in a room."""
        with _control_errors():
            request = api.ListParticipantsRequest(room=room)
            found = await self._api.room.list_participants(request)
        kind = api.ParticipantInfo.Kind.AGENT
        return [person.identity for person in found.participants if person.kind == kind]

    async def ask(self, room: str, identity: str, request: RpcRequest) -> RpcAnswer | None:
        """Send the request, and return its answer; None where nobody of that identity listens."""
        grants = api.VideoGrants(room_admin=True, room=room)
        token = api.AccessToken(self._key, self._secret).with_grants(grants).to_jwt()
        payload = sign_request(request, room=room, api_key=self._key, api_secret=self._secret)
        with _control_errors():
            async with self._http.post(
                f"{self._url}/twirp/livekit.RoomService/PerformRpc",
                headers={"Authorization": f"Bearer {token}"},
                json={
                    "room": room,
                    "destination_identity": identity,
                    "method": METHOD,
                    "payload": payload,
                    "response_timeout_ms": RPC_MS,
                },
            ) as response:
                body = await response.read()
            if len(body) > ANSWER_MAX_BYTES:
                raise ValueError("the answer is too large")
            if response.status == 200:
                return RPC_ANSWER.validate_json(str(json.loads(body)["payload"]))
        _raise_for(response.status, body)
        return None


class _CappedResponse(aiohttp.ClientResponse):
    """An answer that is read up to a cap."""

    async def read(self) -> bytes:
        if self._body is None:
            body = bytearray()
            async for piece in self.content.iter_any():
                body += piece
                if len(body) > MAX_RESPONSE_BYTES:
                    self.close()
                    raise aiohttp.ClientPayloadError("the answer is too large")
            self._body = bytes(body)
        return self._body


def _raise_for(status: int, body: bytes) -> None:
    """Raise what an error of PerformRpc means; return where it only means that nobody listens."""
    if status in (401, 403):
        raise LiveKitRefused(_WRONG_KEYS)
    text = body[:MAX_ERROR_CHARS].decode(errors="replace")
    if '"bad_route"' in text or '"unimplemented"' in text:
        raise LiveKitRefused("This LiveKit server has no PerformRpc; update it to 1.9.2 or later.")
    if (found := _RPC_CODE.search(text)) and int(found[1]) == REFUSED:
        raise LiveKitRefused(
            "The agent does not take this process's signature; give both the same "
            "LIVEKIT_API_KEY and LIVEKIT_API_SECRET."
        )
    # Gone, not listening, cut off or too slow: the caller decides whether to ask again.


@contextmanager
def _control_errors() -> Generator[None]:
    """Turn what the two clients raise into the control API's errors."""
    try:
        yield
    except api.ServerError as error:
        if error.status in (401, 403):
            raise LiveKitRefused(_WRONG_KEYS) from error
        raise LiveKitUnreachable(f"LiveKit answered with an error ({error.code}).") from error
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        if (why := refusal_in(error)) is not None:
            raise LiveKitUnreachable(
                f"LiveKit is outside: {why}; add it there, or fix LIVEKIT_URL."
            ) from error
        raise LiveKitUnreachable(
            "LiveKit cannot be reached; check LIVEKIT_URL and that the server runs."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DecodeError) as error:
        raise LiveKitUnreachable("What answers at LIVEKIT_URL is no LiveKit server.") from error


# Asks the agent of a live room, and waits for the answer.

CHANGE_S: Final = 60.0
"""A whole reload may take this long for the caller: longer than the agent's own deadline."""
SAY_S: Final = 320.0
"""An announcement may take this long for the caller: longer than the agent's own deadline."""
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


# The events of a live room, read as its front ends do, without being seen there.

MESSAGE_MAX_BYTES: Final = 65_536
"""Bytes of one event. A longer one is left out."""
QUEUE_MESSAGES: Final = 256
"""Events that wait for a slow reader. The oldest are dropped."""
READING_MAX: Final = 64
"""Messages that arrive at the same time; more are left out."""
MESSAGE_S: Final = 10.0
"""Seconds for one event to arrive; it normally takes some milliseconds."""
TOKEN_S: Final = 60.0
"""Seconds in which the room has to be entered."""
CONNECT_S: Final = 5.0
"""Seconds for entering it."""


class RoomEvents:
    """The events of one room: `async with RoomEvents(...) as events:`, then `events.lines()`."""

    def __init__(self, url: str, api_key: str, api_secret: str, room: str) -> None:
        self._url: Final = url
        grants = api.VideoGrants(
            room_join=True,
            room=room,
            hidden=True,
            can_publish=False,
            can_publish_data=False,
            can_update_own_metadata=False,
        )
        self._token: Final = (
            api.AccessToken(api_key, api_secret)
            .with_identity(f"caal-events-{secrets.token_hex(4)}")
            .with_ttl(timedelta(seconds=TOKEN_S))
            .with_grants(grants)
            .to_jwt()
        )
        self._room: Final = rtc.Room()
        self._lines: Final[asyncio.Queue[str | None]] = asyncio.Queue(QUEUE_MESSAGES)
        self._reading: Final[set[asyncio.Task[None]]] = set()

    async def __aenter__(self) -> Self:
        """Join the room.

        Raises:
            TimeoutError: the server did not let us in in time.
            OSError: it cannot be reached, or refuses.
        """
        self._room.register_text_stream_handler(TOPIC, self._on_message)
        self._room.on("disconnected", self._on_disconnected)  # pyright: ignore[reportUnknownMemberType] - LiveKit leaves its callbacks open
        options = rtc.RoomOptions(auto_subscribe=False)
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._room.connect(self._url, self._token, options)
        except BaseException as error:
            await self._room.disconnect()
            if isinstance(error, rtc.ConnectError):
                raise ConnectionError("LiveKit lets nobody listen there") from error
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await self._room.disconnect()

    async def lines(self, idle_s: float) -> AsyncGenerator[str]:
        """Yield each event as a line of JSON, and "" whenever there was none for `idle_s`; end with
        the room."""
        while True:
            try:
                async with asyncio.timeout(idle_s):
                    line = await self._lines.get()
            except TimeoutError:
                line = ""
            if line is None:
                return
            yield line

    def _put(self, line: str | None) -> None:
        while self._lines.full():
            self._lines.get_nowait()
        self._lines.put_nowait(line)

    def _on_disconnected(self, _: object) -> None:
        self._put(None)

    def _on_message(self, reader: rtc.TextStreamReader, identity: str) -> None:
        sender = self._room.remote_participants.get(identity)
        agent = rtc.ParticipantKind.PARTICIPANT_KIND_AGENT
        if sender is None or sender.kind != agent or len(self._reading) >= READING_MAX:
            return  # anybody in the room may send on this topic
        task = asyncio.create_task(self._read(reader), name="caal-room-event")
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, reader: rtc.TextStreamReader) -> None:
        text, size = list[str](), 0
        try:
            async with asyncio.timeout(MESSAGE_S):
                async for piece in reader:
                    text.append(piece)
                    size += len(piece.encode())
                    if size > MESSAGE_MAX_BYTES:
                        return
        except TimeoutError:
            return
        self._put("".join(text))
