"""Local speech keeps its threads, cancelling, cuts and errors, tested on stand-in libraries."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from livekit import rtc
from livekit.agents import APIConnectOptions, APITimeoutError
from numpy.typing import NDArray

from caal_node.core.errors import ConfigError
from caal_node.speech import local_models
from caal_node.speech.local_models import MAX_TEXT_CHARS, PiperTTS, WhisperSTT

RATE = 22_050
ONCE = APIConnectOptions(max_retry=0)


@dataclass
class StandInVoice:
    """A voice of 100 ms a sentence. It waits for a permit before each, so a test sets the pace."""

    permits: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(1000))
    texts: list[str] = field(default_factory=list)
    sentences: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def synthesize(self, text: str, settings: object) -> Iterator[Any]:
        self.thread = threading.current_thread()
        self.texts.append(text)
        try:
            for sentence in text.split("."):
                if not sentence.strip():
                    continue
                assert self.permits.acquire(timeout=10)
                self.sentences += 1
                yield SimpleNamespace(audio_int16_bytes=b"\x01\x00" * (RATE // 10))
        finally:
            self.ended.set()


@pytest.fixture
def voice(monkeypatch: pytest.MonkeyPatch) -> StandInVoice:
    made = StandInVoice()

    def load(**_: object) -> StandInVoice:
        return made

    piper = SimpleNamespace(
        PiperVoice=load,
        PiperConfig=SimpleNamespace(from_dict=lambda _: None),
        SynthesisConfig=SimpleNamespace,
    )
    runtime = SimpleNamespace(
        SessionOptions=lambda: SimpleNamespace(add_session_config_entry=lambda *_: None),
        InferenceSession=lambda *_, **__: None,
    )
    monkeypatch.setitem(sys.modules, "piper", piper)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    return made


@pytest.fixture
def voice_file(tmp_path: Path) -> Path:
    path = tmp_path / "voice.onnx"
    path.write_bytes(b"")
    path.with_name("voice.onnx.json").write_text(json.dumps({"audio": {"sample_rate": RATE}}))
    return path


async def test_audio_comes_while_the_next_sentence_is_still_being_made(
    voice: StandInVoice, voice_file: Path
) -> None:
    speaker = PiperTTS(voice_file)
    voice.permits = threading.Semaphore(1)
    async with asyncio.timeout(10), speaker.synthesize("One. Two.", conn_options=ONCE) as stream:
        first = await anext(stream)
        assert first.frame.sample_rate == RATE
        assert not voice.ended.is_set()
        voice.permits.release()
        rest = [audio.frame.duration async for audio in stream]
    assert first.frame.duration + sum(rest) == pytest.approx(0.2, abs=1e-3)
    assert voice.thread is not threading.main_thread()
    await speaker.aclose()


async def test_closing_stops_the_voice_after_the_sentence_it_is_in(
    voice: StandInVoice, voice_file: Path
) -> None:
    speaker = PiperTTS(voice_file)
    voice.permits = threading.Semaphore(1)
    stream = speaker.synthesize("One. Two. Three. Four.", conn_options=ONCE)
    async with asyncio.timeout(10):
        await anext(stream)
        await stream.aclose()
    voice.permits.release(3)
    assert await asyncio.to_thread(voice.ended.wait, 10)
    assert voice.sentences == 2
    await speaker.aclose()


async def test_a_text_with_nothing_to_say_is_a_short_pause_and_no_failure(
    voice: StandInVoice, voice_file: Path
) -> None:
    speaker = PiperTTS(voice_file)
    async with asyncio.timeout(10), speaker.synthesize("...", conn_options=ONCE) as stream:
        frames = [audio.frame async for audio in stream]
    assert 0 < sum(frame.duration for frame in frames) < 0.05
    assert not any(np.frombuffer(frame.data, np.int16).any() for frame in frames)
    await speaker.aclose()


async def test_an_endless_text_is_cut(voice: StandInVoice, voice_file: Path) -> None:
    speaker = PiperTTS(voice_file)
    text = "a" * (MAX_TEXT_CHARS + 1)
    async with asyncio.timeout(10), speaker.synthesize(text, conn_options=ONCE) as stream:
        assert [audio async for audio in stream]
    assert [len(spoken) for spoken in voice.texts] == [MAX_TEXT_CHARS]
    await speaker.aclose()


async def test_prewarming_does_not_wait_for_the_voice(
    voice: StandInVoice, voice_file: Path
) -> None:
    voice.permits = threading.Semaphore(0)
    speaker = PiperTTS(voice_file)
    speaker.prewarm()
    assert voice.sentences == 0
    voice.permits.release()
    await speaker.aclose()
    assert voice.ended.is_set()


def test_a_voice_without_its_description_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a\.onnx\.json: not a piper voice's description"):
        PiperTTS(tmp_path / "a.onnx")


def test_a_description_without_its_voice_is_named(voice_file: Path) -> None:
    voice_file.unlink()
    with pytest.raises(ConfigError, match=r"voice\.onnx: no such file"):
        PiperTTS(voice_file)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"audio": {"sample_rate": "fast"}}'])
def test_a_broken_description_is_one_line(voice_file: Path, content: str) -> None:
    voice_file.with_name("voice.onnx.json").write_text(content)
    with pytest.raises(ConfigError) as caught:
        PiperTTS(voice_file)
    assert "\n" not in str(caught.value)


def test_a_missing_extra_names_the_command_that_brings_it(
    voice_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "piper", None)
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    fix = r"pip install 'caal-node\[local-speech\]'"
    with pytest.raises(ConfigError, match=f"piper-tts is not installed; {fix}"):
        PiperTTS(voice_file)
    with pytest.raises(ConfigError, match=f"faster-whisper is not installed; {fix}"):
        WhisperSTT(tmp_path)


@dataclass
class StandInWhisper:
    segments: list[tuple[str, float]]
    heard: list[NDArray[np.float32]] = field(default_factory=list)
    with_names: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    told: list[object] = field(default_factory=list[object])
    gate: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def transcribe(self, samples: NDArray[np.float32], **options: object) -> tuple[Any, None]:
        assert self.gate.wait(10)
        self.thread = threading.current_thread()
        self.heard.append(samples)
        self.told.append(options["hotwords"])
        return (
            (
                SimpleNamespace(text=text, avg_logprob=log)
                for text, log in (self.with_names if options["hotwords"] else self.segments)
            ),
            None,
        )

    def encode(self, features: NDArray[np.float32]) -> None: ...


@pytest.fixture
def whisper(monkeypatch: pytest.MonkeyPatch) -> StandInWhisper:
    made = StandInWhisper([(" Hello", -0.1), (" there. ", -0.7)])
    made.gate.set()

    def load(*_: object, **__: object) -> StandInWhisper:
        return made

    monkeypatch.setitem(sys.modules, "faster_whisper", SimpleNamespace(WhisperModel=load))
    return made


def frame(samples: NDArray[np.int16], rate: int, channels: int = 1) -> rtc.AudioFrame:
    return rtc.AudioFrame(samples.tobytes(), rate, channels, samples.size // channels)


async def test_the_segments_become_one_text_with_the_lowest_confidence(
    whisper: StandInWhisper, tmp_path: Path
) -> None:
    ears = WhisperSTT(tmp_path)
    event = await ears.recognize(frame(np.zeros(16_000, np.int16), 16_000))
    assert event.alternatives[0].text == "Hello there."
    assert event.alternatives[0].confidence == pytest.approx(np.exp(-0.7))
    assert event.alternatives[0].end_time == 1.0
    assert whisper.thread is not threading.main_thread()
    await ears.aclose()


@pytest.mark.parametrize(
    ("with_names", "text"),
    [("Hello, Lümmel.", "Hello, Lümmel."), ("Yellow hair.", "Hello there.")],
)
async def test_told_names_change_what_is_heard_only_where_one_of_them_is_heard(
    whisper: StandInWhisper, tmp_path: Path, with_names: str, text: str
) -> None:
    ears = WhisperSTT(tmp_path)
    assert ears.capabilities.keyterms
    whisper.with_names = [(with_names, -0.2)]
    ears._update_session_keyterms(["Lümmel", "boot room"])  # pyright: ignore[reportPrivateUsage]
    event = await ears.recognize(frame(np.zeros(16_000, np.int16), 16_000))
    assert event.alternatives[0].text == text
    assert whisper.told == [None, "Lümmel, boot room"]
    await ears.aclose()


async def test_what_has_no_words_has_none_with_names(
    whisper: StandInWhisper, tmp_path: Path
) -> None:
    whisper.segments, whisper.with_names = [], [("Lümmel", -0.2)]
    ears = WhisperSTT(tmp_path)
    ears._update_session_keyterms(["Lümmel"])  # pyright: ignore[reportPrivateUsage]
    event = await ears.recognize(frame(np.zeros(16_000, np.int16), 16_000))
    assert event.alternatives[0].text == ""
    await ears.aclose()


async def test_nothing_heard_is_an_empty_text(whisper: StandInWhisper, tmp_path: Path) -> None:
    whisper.segments = []
    ears = WhisperSTT(tmp_path)
    event = await ears.recognize(frame(np.zeros(16_000, np.int16), 16_000))
    assert event.alternatives[0].text == ""
    assert event.alternatives[0].confidence == 0.0
    await ears.aclose()


async def test_other_rates_and_channels_become_one_channel_at_16_khz(
    whisper: StandInWhisper, tmp_path: Path
) -> None:
    ears = WhisperSTT(tmp_path)
    left_only = np.zeros((48_000, 2), np.int16)
    left_only[:, 0] = 16_384
    await ears.recognize([frame(left_only.ravel(), 48_000, 2)])
    (samples,) = whisper.heard
    assert len(samples) == pytest.approx(16_000, rel=0.01)
    assert float(np.median(samples)) == pytest.approx(0.25, abs=0.01)
    await ears.aclose()


async def test_an_endless_utterance_keeps_its_newest_minute(
    whisper: StandInWhisper, tmp_path: Path
) -> None:
    ears = WhisperSTT(tmp_path)
    samples = np.zeros(61 * 16_000, np.int16)
    samples[-1] = 16_384
    await ears.recognize(frame(samples, 16_000))
    assert len(whisper.heard[0]) == 60 * 16_000
    assert whisper.heard[0][-1] == 0.5
    await ears.aclose()


async def test_recognition_that_hangs_is_a_timeout_that_is_not_tried_again(
    whisper: StandInWhisper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whisper.gate.clear()
    monkeypatch.setattr(local_models, "DEADLINE_S", 0.01)
    ears = WhisperSTT(tmp_path)
    try:
        with pytest.raises(APITimeoutError, match="too slow"):
            await ears.recognize(frame(np.zeros(16_000, np.int16), 16_000))
        assert whisper.heard == []
    finally:
        whisper.gate.set()
        await ears.aclose()
