"""Speech in and out without any model of speech: words for sound, and silence for words."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its speech classes open, so they are half unknown.

from __future__ import annotations

from typing import Any, Final

from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions, stt, tts, utils
from livekit.agents.types import NOT_GIVEN, NotGivenOr

SAMPLE_RATE_HZ: Final = 24_000
CHAR_S: Final = 0.06
"""Seconds of silence for a character of text: about the pace of speech."""


class ScriptedSTT(stt.STT[Any]):
    """Speech to text that hears `utterances`, one for each piece of sound it is given.

    Give it to a session with a VAD, as any STT that does not stream. Sound beyond the last
    utterance is heard as no words.
    """

    def __init__(self, *utterances: str) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=False, interim_results=False))
        self._utterances = list(utterances)

    async def _recognize_impl(
        self,
        buffer: utils.AudioBuffer,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.SpeechEvent:
        text = self._utterances.pop(0) if self._utterances else ""
        heard = stt.SpeechData(language="en", text=text)  # pyright: ignore[reportArgumentType]  # LiveKit makes its own type of the text
        return stt.SpeechEvent(stt.SpeechEventType.FINAL_TRANSCRIPT, alternatives=[heard])


class ScriptedTTS(tts.TTS[Any]):
    """Text to speech that is silence, as long as the words would take, and keeps the words."""

    def __init__(self) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=False),
            sample_rate=SAMPLE_RATE_HZ,
            num_channels=1,
        )
        self.spoken: list[str] = []
        """Every text that was to be spoken, in order."""

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        self.spoken.append(text)
        return _Silence(tts=self, input_text=text, conn_options=conn_options)


class _Silence(tts.ChunkedStream):
    """The silence of one text."""

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id=utils.shortuuid("scripted_"),
            sample_rate=SAMPLE_RATE_HZ,
            num_channels=1,
            mime_type="audio/pcm",
        )
        samples = int(SAMPLE_RATE_HZ * CHAR_S * len(self.input_text))
        output_emitter.push(bytes(2 * max(samples, 1)))
        output_emitter.flush()
