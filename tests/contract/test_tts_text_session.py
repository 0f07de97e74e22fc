"""In a LiveKit session, the voice and the event `speech` get text that can be spoken."""

from __future__ import annotations

from typing import Any

from livekit import rtc
from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions, tts, utils
from livekit.agents.voice import io

from caal_node.agent import CaalAgent
from caal_node.core.events import Spoken
from tests.stand_ins.conversation import Conversation, conversation
from tests.stand_ins.stand_in_model import StandInModel

RATE = 16000
WRITTEN = (
    "**Oslo**: 21 °C, e.g. 3.5  more than here 🎉. Call 555-1234 on 2026-11-22.\n\n"
    "```python\nprint('code')\nreturn 5\n```\nSee https://example.org/a/b?c=1. *Bye"
)
SAID = (
    "Oslo: 21 degrees Celsius, e.g. 3.5  more than here. Call 5 5 5, 1 2 3 4 on November 22, 2026."
    "\n\nSome Python code, 2 lines.\nSee a link to example.org. Bye"
)


class Recorder(tts.TTS[Any]):
    """A voice that keeps what it is to say, and says a tenth of a second of silence."""

    def __init__(self) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=False), sample_rate=RATE, num_channels=1
        )
        self.heard: list[str] = []

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        self.heard.append(text)
        return Silence(tts=self, input_text=text, conn_options=conn_options)


class Silence(tts.ChunkedStream):
    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id=utils.shortuuid(), sample_rate=RATE, num_channels=1, mime_type="audio/pcm"
        )
        output_emitter.push(bytes(RATE // 5))


class Nobody(io.AudioOutput):
    """An output that takes audio and is done with it at once."""

    def __init__(self) -> None:
        super().__init__(
            label="nobody",
            capabilities=io.AudioOutputCapabilities(pause=False),
            sample_rate=RATE,
        )

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)

    def flush(self) -> None:
        super().flush()
        self.on_playback_finished(playback_position=0.1, interrupted=False)

    def clear_buffer(self) -> None:
        return


def squeezed(text: str) -> str:
    return " ".join(text.split())


async def spoken_aloud(talk: Conversation) -> str:
    voice = Recorder()
    talk.session._tts = voice  # as `AgentSession(tts=...)` sets it
    talk.session.output.audio = Nobody()
    await talk.ask("Hello?")
    return " ".join(voice.heard)


async def test_the_voice_hears_speakable_text() -> None:
    async with StandInModel([WRITTEN]) as server, conversation(server) as talk:
        assert squeezed(await spoken_aloud(talk)) == squeezed(SAID)
        told = " ".join(event.text for event in talk.events_of(Spoken))
        assert squeezed(told) == squeezed(SAID)
        assert talk.history[-1].text_content == WRITTEN


async def test_a_session_without_a_voice_tells_what_would_be_said() -> None:
    async with StandInModel([WRITTEN]) as server, conversation(server) as talk:
        assert squeezed(await talk.ask("Hello?")) == squeezed(SAID)


class AsWritten(CaalAgent):
    speakable = False


async def test_a_class_can_leave_the_text_to_livekits_filters() -> None:
    async with (
        StandInModel(["It is **21 °C**."]) as server,
        conversation(server, agent=AsWritten) as talk,
    ):
        assert await spoken_aloud(talk) == "It is 21 °C."


async def test_an_agent_that_leaves_takes_its_transform_with_it() -> None:
    async with StandInModel(["Hi."]) as server, conversation(server) as talk:
        options = talk.session.options
        assert len(options.tts_text_transforms or ()) == 3
    assert options.tts_text_transforms == ["filter_markdown", "filter_emoji"]
