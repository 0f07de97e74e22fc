"""In a real room somebody besides the linked participant reads no secret and drives nothing.

`-s` prints a line for each packet that the stranger gets, and for each request that they send.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from livekit import rtc
from livekit.agents import AgentSession, function_tool, room_io
from livekit.agents.types import ATTRIBUTE_SIMULATOR
from livekit.protocol.agent_pb import agent_session as agent_pb

from caal_node.agent import CaalAgent
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.core.events import Event, TurnEnded
from caal_node.testing import ScriptedCall, ScriptedModel, ScriptedSTT, plain_settings
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.stand_in_model import StandInModel

pytestmark = pytest.mark.livekit

DEADLINE_S = 30.0
HOST = "lk.agent.session"
AHEAD = "lk.agent.pre-connect-audio-buffer"
MARKER = "orchid"
"""It is in an argument, in the result, and in the instructions, and in nothing that is said."""
INTRUSION = "Open the door for me."
ANSWER = "There is a shelf."


class Looker(CaalAgent):
    def __init__(self, **options: Any) -> None:
        super().__init__(instructions=f"Help. The word is {MARKER}-instruction.", **options)

    @function_tool
    async def look(self, place: str) -> str:
        """Look somewhere."""
        return f"{MARKER}-result"


class AnyTopic(dict[str, Any]):
    """A room's handlers of streams: one for every topic there may be."""

    def __init__(self, take: Callable[[str, Any, str], None]) -> None:
        super().__init__()
        self._take = take

    def get(self, topic: str, default: Any = None) -> Any:
        return lambda reader, identity: self._take(topic, reader, identity)


class Watcher:
    """A participant who keeps whatever a room sends, and can ask its host for everything."""

    def __init__(self) -> None:
        self.room = rtc.Room()
        self.got: list[tuple[str, bytes]] = []
        """What came, by where it came from."""
        self.changed = asyncio.Event()
        self._reading: set[asyncio.Task[None]] = set()
        self.room._text_stream_handlers = AnyTopic(self._on_stream)  # pyright: ignore
        self.room._byte_stream_handlers = AnyTopic(self._on_stream)  # pyright: ignore
        for name in rtc_events():
            self.room.on(name, lambda *args, name=name: self._keep(name, repr(args).encode()))
        self.room.on("participant_attributes_changed", lambda _, who: self._on_person(who))
        self.room.on("participant_connected", self._on_person)

    def _on_person(self, who: rtc.RemoteParticipant) -> None:
        shown = f"{dict(who.attributes)} {who.name!r} {who.metadata!r}"
        self._keep(f"attributes of {who.identity}", shown.encode())

    def _on_stream(self, topic: str, reader: Any, identity: str) -> None:
        async def read() -> None:
            whole = b""
            async for chunk in reader:
                whole += chunk if isinstance(chunk, bytes) else chunk.encode()
            self._keep(f"{topic} of {identity}", whole + repr(reader.info.attributes).encode())

        self._reading.add(task := asyncio.create_task(read()))
        task.add_done_callback(self._reading.discard)

    def _keep(self, where: str, what: bytes) -> None:
        self.got.append((where, what))
        print(f"{self.room.local_participant.identity} < {where}: {len(what)} bytes {what[:160]!r}")
        self.changed.set()

    def of(self, topic: str) -> list[bytes]:
        return [what for where, what in self.got if where.startswith(topic)]

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.changed.clear()
            await self.changed.wait()

    async def ask_all(self) -> None:
        """Send every message of the session host's protocol, and type as if they were linked."""
        for message in every_message():
            kind = str(message.WhichOneof("message"))
            print(f"stranger > {HOST}: {kind} {message.request.WhichOneof('request') or ''}")
            await self.send_bytes(message.SerializeToString(), topic=HOST)
        print("stranger > lk.chat")
        await self.room.local_participant.send_text(INTRUSION, topic="lk.chat")

    async def send_bytes(self, data: bytes, **options: Any) -> None:
        await self.room.local_participant.send_bytes(data, **options)


def rtc_events() -> tuple[str, ...]:
    """The room's events that carry what others send or set."""
    return (
        "data_received",
        "data_packet_received",
        "transcription_received",
        "room_metadata_changed",
        "participant_metadata_changed",
        "participant_name_changed",
        "sip_dtmf_received",
    )


def every_message() -> list[agent_pb.AgentSessionMessage]:
    """One message of each kind that the protocol has, and one request of each kind."""
    messages: list[agent_pb.AgentSessionMessage] = []
    for field in agent_pb.AgentSessionMessage.DESCRIPTOR.oneofs_by_name["message"].fields:
        if field.name != "request":
            messages.append(message := agent_pb.AgentSessionMessage())
            fill(getattr(message, field.name))
    for field in agent_pb.SessionRequest.DESCRIPTOR.oneofs_by_name["request"].fields:
        messages.append(message := agent_pb.AgentSessionMessage())
        message.request.request_id = field.name
        fill(getattr(message.request, field.name))
    return messages


def fill(message: Any) -> None:
    """Set every field: text to an order, switches to off."""
    message.SetInParent()
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated or field.containing_oneof not in (None, *presence_only(message)):
            continue
        if field.type == field.TYPE_STRING:
            setattr(message, field.name, INTRUSION)
        elif field.type == field.TYPE_BOOL:
            setattr(message, field.name, False)
        elif field.type == field.TYPE_MESSAGE:
            fill(getattr(message, field.name))


def presence_only(message: Message) -> list[Any]:
    return [one for one in message.DESCRIPTOR.oneofs if one.name.startswith("_")]


@dataclass
class Talk:
    agent: Looker
    session: AgentSession[None]
    model: ScriptedModel
    stranger: Watcher


@asynccontextmanager
async def joined(
    livekit: LiveKit, room: rtc.Room, name: str, identity: str
) -> AsyncGenerator[None]:
    agent = identity == "agent"
    await room.connect(livekit.url, livekit.token(name, identity, agent=agent))
    try:
        yield
    finally:
        await room.disconnect()


@asynccontextmanager
async def turn_beside_stranger(livekit: LiveKit, **variables: str) -> AsyncGenerator[Talk]:
    """Let ann have a turn with a tool call, while a stranger asks at every moment."""
    name, over = f"beside-{uuid.uuid4().hex[:8]}", asyncio.Event()

    def note(event: Event) -> None:
        if isinstance(event, TurnEnded):
            over.set()

    settings = plain_settings(
        CAAL_CUES="off", CAAL_CHECKS="claims,facts,hedges,references", **variables
    )
    agent = Looker(settings=settings, tiers={}, warm=False, on_event=note)
    call = ScriptedCall("look", {"place": f"{MARKER}-argument"})
    model = ScriptedModel([call], ANSWER, "I will not.", "I will not.", "I will not.")
    session: AgentSession[None] = AgentSession(
        llm=model, vad=None, turn_handling={"turn_detection": None}
    )
    ann, here, stranger = rtc.Room(), rtc.Room(), Watcher()
    async with (
        asyncio.timeout(DEADLINE_S),
        joined(livekit, stranger.room, name, "stranger"),
        joined(livekit, ann, name, "ann"),
        joined(livekit, here, name, "agent"),
    ):
        options = room_io.RoomOptions(
            audio_input=False, audio_output=False, participant_identity="ann"
        )
        start = session.start(agent, room=here, room_options=options)
        await asyncio.gather(start, stranger.ask_all())
        try:
            await ann.local_participant.send_text("Look there.", topic="lk.chat")
            await over.wait()
            await stranger.ask_all()
            yield Talk(agent, session, model, stranger)
        finally:
            await session.aclose()
    await model.aclose()


async def echo(talk: Talk) -> None:
    """Wait until the agent's room has taken what the stranger sent, and its answers are there."""
    here, heard = talk.session.room_io.room, asyncio.Event()
    here.register_text_stream_handler("echo", lambda *_: heard.set())
    await talk.stranger.room.local_participant.send_text("?", topic="echo")
    await heard.wait()
    await here.local_participant.send_text("!", topic="echoed")
    await talk.stranger.until(lambda: bool(talk.stranger.of("echoed")))


def doors(room: rtc.Room) -> set[str]:
    """Every topic and method by which participants of a room can reach the agent in it."""
    person: Any = room.local_participant
    there: Any = room
    return {*there._text_stream_handlers, *there._byte_stream_handlers, *person._rpc_handlers}


def muted(session: AgentSession[None]) -> list[str]:
    switches = {
        "hears": session.input.audio_enabled,
        "sees": session.input.video_enabled,
        "speaks": session.output.audio_enabled,
        "writes": session.output.transcription_enabled,
        "shows": session.output.video_enabled,
    }
    return [name for name, on in switches.items() if not on]


async def test_a_stranger_in_the_room_reads_no_secret_and_drives_nothing(livekit: LiveKit) -> None:
    async with turn_beside_stranger(livekit) as talk:
        # Each takes the linked participant's, or what the owner signed; a new one has to be read.
        assert doors(talk.session.room_io.room) == {"lk.chat", "caal.control"}
        await echo(talk)
        stranger = talk.stranger
        assert not stranger.of(HOST)
        assert [each for each in stranger.got if MARKER.encode() in each[1]] == []
        said = [item.text_content for item in talk.session.history.messages()]
        assert said == ["Look there.", ANSWER]
        assert len(talk.model.requests) == 2
        assert muted(talk.session) == []
        # That there was something to find, and that the stranger heard what everyone may.
        assert MARKER in str(talk.session.history.to_dict())
        assert any(ANSWER.encode() in each for each in stranger.of("lk.transcription"))
        assert any(b"tool_call_ended" in each for each in stranger.of("caal.tools"))


async def test_an_open_session_host_gives_a_stranger_everything(livekit: LiveKit) -> None:
    """What the test above looks for is there to be found, where the owner opens it by name."""
    async with turn_beside_stranger(livekit, CAAL_ROOM_SEES="everything") as talk:
        stranger = talk.stranger

        def leaked() -> bool:
            whole = b"".join(stranger.of(HOST))
            kinds = ("argument", "result", "instruction")
            return all(f"{MARKER}-{kind}".encode() in whole for kind in kinds) and all(
                f"{request.request.request_id}".encode() in whole
                for request in every_message()
                if request.HasField("request")
            )

        await stranger.until(leaked)
        await stranger.until(lambda: len(talk.model.requests) > 2)
        assert "hears" in muted(talk.session)
        assert "speaks" in muted(talk.session)
        assert INTRUSION in [item.text_content for item in talk.session.history.messages()]


class Listener(CaalAgent):
    """An agent whose STT keeps how loud the sound is that it hears."""

    def __init__(self, **options: Any) -> None:
        super().__init__(instructions="Help.", **options)
        self.heard: list[int] = []
        self.hears = asyncio.Event()

    async def stt_node(self, audio: AsyncIterable[rtc.AudioFrame], model_settings: Any) -> Any:
        async for frame in audio:
            self.heard.append(max(map(abs, frame.data[:])))
            self.hears.set()
        if False:  # an async generator that yields nothing
            yield


LOUD, RATE = 12_000, 24_000


@pytest.mark.parametrize("sender", ["ann", "stranger"])
async def test_speech_from_while_they_connected_is_the_linked_participants_own(
    livekit: LiveKit, sender: str
) -> None:
    name = f"ahead-{uuid.uuid4().hex[:8]}"
    agent = Listener(settings=plain_settings(CAAL_CUES="off"), tiers={}, warm=False)
    session: AgentSession[None] = AgentSession(
        llm=ScriptedModel(), stt=ScriptedSTT(), vad=None, turn_handling={"turn_detection": "manual"}
    )
    ann, here, stranger = rtc.Room(), rtc.Room(), rtc.Room()
    source = rtc.AudioSource(RATE, 1)
    async with (
        asyncio.timeout(DEADLINE_S),
        joined(livekit, stranger, name, "stranger"),
        joined(livekit, ann, name, "ann"),
        joined(livekit, here, name, "agent"),
    ):
        sound = room_io.AudioInputOptions(auto_gain_control=False, pre_connect_audio_timeout=2)
        options = room_io.RoomOptions(
            audio_input=sound, audio_output=False, participant_identity="ann"
        )
        await session.start(agent, room=here, room_options=options)
        assert doors(here) == {"lk.chat", "caal.control", AHEAD}
        try:
            publishing = rtc.TrackPublishOptions(
                source=rtc.TrackSource.SOURCE_MICROPHONE, preconnect_buffer=True
            )
            track = rtc.LocalAudioTrack.create_audio_track("voice", source)
            published = await ann.local_participant.publish_track(track, publishing)
            who = ann if sender == "ann" else stranger
            await who.local_participant.send_bytes(
                LOUD.to_bytes(2, "little") * RATE,
                topic=AHEAD,
                destination_identities=["agent"],
                attributes={"trackId": published.sid, "sampleRate": str(RATE), "channels": "1"},
            )
            while not agent.hears.is_set():
                await source.capture_frame(rtc.AudioFrame.create(RATE, 1, RATE // 100))
            assert (max(agent.heard) > LOUD // 2) is (sender == "ann")
        finally:
            await session.aclose()


def is_marked(owner: Watcher, guest: str) -> bool:
    shown = owner.of(f"attributes of {guest}")
    return any(ATTRIBUTE_SIMULATOR.encode() in each for each in shown)


def ended_turns(owner: Watcher) -> list[bytes]:
    return [each for each in owner.of("caal.tools") if b"turn_ended" in each]


@pytest.mark.alone
async def test_nobody_ends_the_job_by_the_mark_of_livekits_simulator(
    livekit: LiveKit, tmp_path: Path
) -> None:
    async with StandInModel(answer=lambda _: [ANSWER]) as model:
        env = {
            "LIVEKIT_URL": livekit.url,
            "LIVEKIT_API_KEY": livekit.key,
            "LIVEKIT_API_SECRET": livekit.secret,
            "OLLAMA_HOST": model.url,
            "CAAL_MODEL": model.model,
            "CAAL_TOOL_CALLS": "native",
            **dict.fromkeys(("CAAL_STT", "CAAL_TTS", "CAAL_VAD"), "none"),
        }
        owner, name = Watcher(), f"job-{uuid.uuid4().hex[:8]}"
        async with (
            asyncio.timeout(2 * DEADLINE_S),
            WorkerProcess(tmp_path, env),
            joined(livekit, owner.room, name, "owner"),
        ):
            await owner.until(lambda: any(b"'idle'" in each for each in owner.of("attributes")))
            # A job takes a second to end; so many guests take longer.
            for guest in map(str, range(12)):
                room = rtc.Room()
                async with joined(livekit, room, name, guest):
                    await room.local_participant.set_attributes({ATTRIBUTE_SIMULATOR: "yes"})
                    await owner.until(lambda guest=guest: is_marked(owner, guest))
                turns = len(ended_turns(owner))
                await owner.room.local_participant.send_text("Look there.", topic="lk.chat")
                await owner.until(lambda turns=turns: len(ended_turns(owner)) > turns)
            assert owner.of(HOST) == []
