"""The demo's requests are recordings of a person's speech."""

from __future__ import annotations

import json
import wave
from dataclasses import dataclass
from importlib import resources
from typing import Final

import numpy as np
import numpy.typing as npt

RATE_HZ: Final = 16_000


@dataclass(frozen=True, slots=True)
class SpokenRequest:
    """A recording: `words` is what was spoken, `samples` are mono at RATE_HZ."""

    words: str
    samples: npt.NDArray[np.int16]

    @property
    def seconds(self) -> float:
        return self.samples.size / RATE_HZ


def load_requests() -> list[SpokenRequest]:
    """Return the requests in the order in which they are asked."""
    folder = resources.files("caal_node.cli.demo") / "requests"
    rows = json.loads((folder / "requests.json").read_text(encoding="utf-8"))["requests"]
    loaded: list[SpokenRequest] = []
    for row in rows:
        with (folder / row["file"]).open("rb") as raw, wave.open(raw) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype=np.int16)
        loaded.append(SpokenRequest(row["words"], samples))
    return loaded
