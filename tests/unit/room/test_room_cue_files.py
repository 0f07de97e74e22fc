"""WAV files in the place of cues."""

from __future__ import annotations

import struct
import tempfile
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.core.errors import ConfigError
from caal_node.room.cue_files import FILE_MAX_BYTES, load_cues, load_wav
from caal_node.room.cues import PEAK_MAX_DBFS, SAMPLE_RATE_HZ, Samples, render


def sine(hz: float, seconds: float, rate: int, level: float = 0.9) -> np.ndarray:
    return level * np.sin(2 * np.pi * hz * np.arange(int(rate * seconds)) / rate)


def pcm(path: Path, sound: np.ndarray, rate: int, *, width: int = 2, channels: int = 1) -> Path:
    """A PCM file of 8, 16 or 32 bits, the sound on every channel."""
    unsigned = 128 if width == 1 else 0
    scaled = (sound * (2 ** (8 * width - 1) - 1)).astype(np.int64) + unsigned
    data = scaled.astype({1: np.uint8, 2: np.int16, 4: np.int32}[width])
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(np.repeat(data, channels).tobytes())
    return path


def float32(path: Path, sound: np.ndarray, rate: int) -> Path:
    """Format 3, IEEE float: what audio editors save by default."""
    data = sound.astype("<f4").tobytes()
    form = struct.pack("<HHIIHH", 3, 1, rate, rate * 4, 4, 32)
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    chunks += b"data" + struct.pack("<I", len(data)) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", len(chunks)) + chunks)
    return path


def loudest_hz(cue: Samples) -> float:
    return float(np.argmax(np.abs(np.fft.rfft(cue.astype(float), SAMPLE_RATE_HZ))))


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_pcm_of_any_rate_width_and_channels_becomes_a_cue(
    tmp_path: Path, rate: int, channels: int, width: int
) -> None:
    file = pcm(tmp_path / "c.wav", sine(700, 0.2, rate), rate, width=width, channels=channels)
    cue = load_wav(file)
    assert cue.size / SAMPLE_RATE_HZ == pytest.approx(0.2, abs=0.005)
    assert loudest_hz(cue) == pytest.approx(700, abs=5)
    assert cue[0] == cue[-1] == 0
    assert np.abs(cue.astype(float)).max() <= 32768 * 10 ** (PEAK_MAX_DBFS / 20)


def test_a_float_wav_is_read(tmp_path: Path) -> None:
    cue = load_wav(float32(tmp_path / "c.wav", sine(500, 0.1, 44_100), 44_100))
    assert loudest_hz(cue) == pytest.approx(500, abs=8)


def test_a_soft_file_stays_soft(tmp_path: Path) -> None:
    cue = load_wav(pcm(tmp_path / "c.wav", sine(500, 0.1, 48_000, level=0.02), 48_000))
    assert np.abs(cue).max() == pytest.approx(0.02 * 32768, rel=0.05)


def test_files_replace_their_own_kind_only(tmp_path: Path) -> None:
    cues = load_cues({"tool": pcm(tmp_path / "c.wav", sine(500, 0.1, 48_000), 48_000)})
    assert cues["tool"].size == 4800
    assert np.array_equal(cues["error"], render("error"))


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_wav(path)
    message = str(caught.value)
    assert str(path) in message
    assert "WAV" in message  # the fix
    assert "\n" not in message
    return message


def test_an_unusable_wav_is_refused_by_name_with_the_remedy(tmp_path: Path) -> None:
    assert "cannot be read (No such file or directory)" in refused(tmp_path / "missing.wav")
    assert "cannot be read (it is a folder and no file)" in refused(tmp_path)
    text = tmp_path / "notes.wav"
    text.write_text("la la la")
    assert "cannot be read" in refused(text)
    big_endian = pcm(tmp_path / "rifx.wav", sine(500, 0.1, 48_000), 48_000)
    big_endian.write_bytes(b"RIFX" + big_endian.read_bytes()[4:])
    assert "cannot be read" in refused(big_endian)
    assert "longer" in refused(pcm(tmp_path / "l.wav", sine(500, 1.5, 48_000), 48_000))
    assert "no sound" in refused(pcm(tmp_path / "empty.wav", np.zeros(0), 48_000))
    assert "samples a second" in refused(pcm(tmp_path / "r.wav", np.ones(4), 48))


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    large = tmp_path / "large.wav"
    with large.open("wb") as file:
        file.truncate(FILE_MAX_BYTES + 1)
    assert "larger" in refused(large)


def assert_cue_or_refusal(path: Path) -> None:
    try:
        cue = load_wav(path)
    except ConfigError:
        refused(path)
    else:
        assert cue.dtype == np.int16
        assert 0 < cue.size <= SAMPLE_RATE_HZ


_HEAD = b"RIFF\x24\x08\x00\x00WAVEfmt \x10\x00\x00\x00"


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=400), st.binary(max_size=400).map(lambda tail: _HEAD + tail)))
def test_garbage_is_a_cue_or_a_config_error_and_nothing_else(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "garbage.wav"
        path.write_bytes(data)
        assert_cue_or_refusal(path)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.integers(0, 43), st.integers(0, 255), min_size=1, max_size=4))
def test_a_damaged_header_is_a_cue_or_a_config_error(damage: dict[int, int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pcm(Path(folder) / "c.wav", sine(500, 0.05, 48_000), 48_000)
        data = bytearray(path.read_bytes())
        for place, value in damage.items():
            data[place] = value
        path.write_bytes(data)
        assert_cue_or_refusal(path)
