"""The recorded requests: what the list says, and audio that a room can take as it is."""

from __future__ import annotations

import json
import wave
from importlib.resources import files

import numpy as np
import pytest

FOLDER = files("caal_node.cli.demo") / "requests"
LIST = json.loads((FOLDER / "requests.json").read_text(encoding="utf-8"))
ALL = [*LIST["requests"], *LIST["after_ring"], *LIST["spare"]]


def test_the_list_names_every_recording() -> None:
    recordings = {entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".wav")}
    assert {request["file"] for request in ALL} == recordings
    assert len(LIST["requests"]) >= 4
    assert all(request["words"].strip() for request in ALL)


@pytest.mark.parametrize("request_", ALL, ids=lambda request: request["file"])
def test_a_recording_is_16_khz_mono_with_silent_ends(request_: dict[str, str]) -> None:
    with (FOLDER / request_["file"]).open("rb") as file, wave.open(file) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (16_000, 1, 2)
        samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
    silence = 16_000 * 28 // 100
    assert abs(samples[:silence]).max() < 50
    assert abs(samples[-silence:]).max() < 50
    assert 0.5 < abs(samples).max() / 32_768 < 0.9
    assert len(samples) < 4 * 16_000
