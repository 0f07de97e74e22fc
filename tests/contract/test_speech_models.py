"""The real Whisper, piper and Silero work on the recorded requests and on each other."""

from __future__ import annotations

import asyncio
import json
import re
import wave
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path

import pytest
from livekit import rtc
from livekit.agents import stt, tts

from caal_node import speech
from caal_node.core.errors import ConfigError
from caal_node.speech.local_models import PiperTTS
from caal_node.speech.wake_word import WakeWord
from caal_node.weights import PIPER_JOE, WHISPER_TINY_EN
from tests.stand_ins.cached_weights import cached

pytestmark = pytest.mark.speech

FOLDER = files("caal_node.cli.demo") / "requests"
LIST = json.loads((FOLDER / "requests.json").read_text(encoding="utf-8"))
# A cold model on a busy machine.
DEADLINE_S = 60
FRAME_S = 0.02


@pytest.fixture
async def ears() -> AsyncIterator[stt.STT]:
    pytest.importorskip("faster_whisper", reason="pip install 'caal-node[local-speech]'")
    cached(WHISPER_TINY_EN)
    made = speech.make_stt("local")
    assert made is not None
    yield made
    await made.aclose()


@pytest.fixture
async def voice() -> AsyncIterator[PiperTTS]:
    pytest.importorskip("piper", reason="pip install 'caal-node[local-speech]'")
    cached(PIPER_JOE)
    made = speech.make_tts("local")
    assert isinstance(made, PiperTTS)
    yield made
    await made.aclose()


def recording(name: str) -> rtc.AudioFrame:
    with (FOLDER / name).open("rb") as file, wave.open(file) as sound:
        count = sound.getnframes()
        return rtc.AudioFrame(sound.readframes(count), 16_000, 1, count)


def words(text: str) -> list[str]:
    """Return the words in lower case, with 5 for five."""
    numbers = {"three": "3", "five": "5", "thirty": "30"}
    found = re.findall(r"[\w']+", text.lower())
    return [numbers.get(word, word) for word in found]


@pytest.mark.parametrize(
    "request_",
    [*LIST["requests"], *LIST["after_ring"], *LIST["spare"]],
    ids=lambda request: request["file"],
)
async def test_every_word_of_a_recorded_request_is_heard(
    ears: stt.STT, request_: dict[str, str]
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        event = await ears.recognize(recording(request_["file"]))
    assert words(event.alternatives[0].text) == words(request_["words"])


async def test_silence_is_no_words(ears: stt.STT) -> None:
    async with asyncio.timeout(DEADLINE_S):
        event = await ears.recognize(rtc.AudioFrame(bytes(32_000), 16_000, 1, 16_000))
    assert event.alternatives[0].text == ""


async def test_the_frameworks_adapter_hears_a_request_behind_silero(ears: stt.STT) -> None:
    vad = speech.make_vad("local")
    assert vad is not None
    heard: list[str] = []
    async with asyncio.timeout(DEADLINE_S), stt.StreamAdapter(stt=ears, vad=vad).stream() as stream:
        push_with_pause(stream, recording("tokyo.wav"))
        stream.end_input()
        async for event in stream:
            if event.type == stt.SpeechEventType.FINAL_TRANSCRIPT:
                heard.append(event.alternatives[0].text)
    assert [words(text) for text in heard] == [words("What time is it in Tokyo?")]


def push_with_pause(stream: stt.RecognizeStream, sound: rtc.AudioFrame) -> None:
    """Push frames as a room gives them, and a second of silence that ends the utterance."""
    data = sound.data.tobytes() + bytes(32_000)
    step = int(16_000 * FRAME_S)
    for start in range(0, len(data) - 2 * step + 1, 2 * step):
        stream.push_frame(rtc.AudioFrame(data[start : start + 2 * step], 16_000, 1, step))


async def test_what_the_voice_says_is_heard(ears: stt.STT, voice: PiperTTS) -> None:
    # Without the chance in its voice, which now and then makes "time to" of "timer is".
    voice.settings.noise_scale = voice.settings.noise_w_scale = 0.0
    said = "The timer is set for five minutes."
    async with asyncio.timeout(DEADLINE_S):
        async with voice.synthesize(said) as stream:
            frames = [audio.frame async for audio in stream]
        event = await ears.recognize(frames)
    assert words(event.alternatives[0].text) == words(said)


async def test_the_frameworks_adapter_speaks_a_text_that_arrives_in_pieces(voice: tts.TTS) -> None:
    async with asyncio.timeout(DEADLINE_S), tts.StreamAdapter(tts=voice).stream() as stream:
        for piece in ("It is nine in the ", "morning in Tokyo today. ", "It will be quite warm."):
            stream.push_text(piece)
        stream.end_input()
        frames = [audio.frame async for audio in stream]
    assert {frame.sample_rate for frame in frames} == {voice.sample_rate}
    assert 2.0 < sum(frame.duration for frame in frames) < 8.0


async def heard_in(voice: PiperTTS, word: WakeWord, text: str, rate_hz: int) -> bool:
    """Say a text at a rate, and return whether the word was heard, in frames of 20 ms."""
    resampler: rtc.AudioResampler | None = None
    data = bytearray()
    async with asyncio.timeout(DEADLINE_S), voice.synthesize(text) as sound:
        async for event in sound:
            resampler = resampler or rtc.AudioResampler(event.frame.sample_rate, rate_hz)
            for frame in resampler.push(event.frame):
                data += bytes(frame.data)
    data += bytes(rate_hz)
    size = 2 * int(FRAME_S * rate_hz)
    pieces = [bytes(data[at : at + size]) for at in range(0, len(data), size)]
    frames = [rtc.AudioFrame(piece, rate_hz, 1, len(piece) // 2) for piece in pieces]
    heard = [word.hears(frame) for frame in frames]
    return any(heard)


@pytest.mark.parametrize("rate_hz", [16_000, 24_000, 48_000])
async def test_a_wake_word_is_heard_at_every_rate_and_requests_are_none(
    voice: PiperTTS, rate_hz: int
) -> None:
    pytest.importorskip("pymicro_wakeword", reason="pip install 'caal-node[wake-word]'")
    text = "Hey Jarvis, turn on the light."
    assert await heard_in(voice, await loaded("hey_jarvis"), text, rate_hz)
    word = await loaded("hey_jarvis")
    for request in LIST["requests"]:
        assert not await heard_in(voice, word, request["words"], rate_hz)


async def loaded(name: str) -> WakeWord:
    word = WakeWord(name)
    await asyncio.to_thread(word.load)
    return word


def test_a_wake_word_that_is_none_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    pytest.importorskip("pymicro_wakeword", reason="pip install 'caal-node[wake-word]'")
    with pytest.raises(ConfigError, match="no wake word computer; write wake: and one of alexa"):
        WakeWord("computer").load()
    file = tmp_path / "word.json"
    for content, kind in [
        ("{}", "KeyError"),
        ("[]", "TypeError"),
        ('{"model": "x"}', "FileNotFoundError"),
    ]:
        file.write_text(content)
        with pytest.raises(ConfigError, match=rf"word.json is no model .*\({kind}\)"):
            WakeWord(str(file)).load()
