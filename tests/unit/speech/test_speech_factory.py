"""CAAL_STT, CAAL_TTS and CAAL_VAD make what they name, and say what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from livekit.agents import tts, vad

from caal_node import speech
from caal_node.config.object_reference import call_factory
from caal_node.core.errors import ConfigError

MODULE = """
from livekit.agents import tts

class Voice(tts.TTS):
    def __init__(self):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False),
                         sample_rate=24000, num_channels=1)
    def synthesize(self, text, *, conn_options=None):
        raise NotImplementedError

def broken():
    raise RuntimeError("no key")

number = 7
def string():
    return "voice"
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a module of the user's into the current folder."""
    (tmp_path / "own_voice.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("own_voice", None)


@pytest.mark.usefixtures("own")
def test_a_factory_of_ones_own_gives_the_voice() -> None:
    voice = speech.make_tts("own_voice:Voice")
    assert isinstance(voice, tts.TTS)
    assert voice.sample_rate == 24_000


def test_none_is_none() -> None:
    assert speech.make_stt("none") is None
    assert speech.make_tts("none") is None
    assert speech.make_vad("none") is None


def test_local_vad_is_silero() -> None:
    assert isinstance(speech.make_vad("local"), vad.VAD)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("whisper", "write local, none, or module:factory"),
        ("own_voice:", "write local, none, or module:factory"),
        ("no_such_module_here:make", "cannot import 'no_such_module_here'"),
        ("own_voice:other", "'own_voice' has no 'other'"),
        ("own_voice:number", "is not a function"),
        ("own_voice:broken", r"failed \(RuntimeError: no key\)"),
        ("own_voice:string", "gave a str, not a LiveKit TTS"),
    ],
)
def test_a_wrong_name_is_one_line_that_names_the_setting(spec: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        speech.make_tts(spec)
    assert str(caught.value).startswith("CAAL_TTS")
    assert "\n" not in str(caught.value)


def test_local_without_weights_says_how_to_fetch_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match=r"tiny\.en .* caal-node download-files"):
        speech.make_stt("local")
    with pytest.raises(ConfigError, match=r"joe, medium .* caal-node download-files"):
        speech.make_tts("local")


def test_the_kind_is_checked() -> None:
    with pytest.raises(ConfigError, match="CAAL_X: 'builtins:dict' gave a dict, not a LiveKit str"):
        call_factory("builtins:dict", str, "CAAL_X")
