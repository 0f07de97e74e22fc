"""A WAV file in the place of a synthesised cue: decoded once, at start, never when it is played."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

import av
import numpy as np
from av.error import FFmpegError

from caal_node.core.errors import ConfigError
from caal_node.core.events import CueKind
from caal_node.room.cues import SAMPLE_RATE_HZ, CueSet, Samples, conform

LENGTH_MAX_S: Final = 1.0
"""A ping and no jingle: it stands in front of the answer, and fits the room's audio queue whole."""
FILE_MAX_BYTES: Final = 4 * 1024 * 1024
"""One second of eight channels of 64-bit samples at 48 kHz is 3 MB."""
RATES_HZ: Final = (4_000, 384_000)
"""Telephone to studio. Outside, the header is wrong, and a resampler would build giant tables."""
_MEND: Final = "save it as 16-bit PCM WAV of at most 1 second, or take the setting away"


def load_cues(files: Mapping[CueKind, Path]) -> CueSet:
    """The synthesised cues, with `files` in the place of some.

    Reads and decodes: call it before the event loop runs, or in a thread.

    Raises:
        ConfigError: a file cannot be used; names it and the mend.
    """
    return CueSet.of({kind: load_wav(path) for kind, path in files.items()})


def load_wav(path: Path) -> Samples:
    """Decode a WAV file of any sample format, rate and channel count to a cue.

    Ends are shaped, DC is taken out and the peak brought down to what a cue may have.

    Raises:
        ConfigError: missing, unreadable, too large, too long or empty; names file and mend.
    """
    try:
        if not path.is_file():
            _refuse(path, "is not a file")
        if path.stat().st_size > FILE_MAX_BYTES:
            _refuse(path, f"is larger than {FILE_MAX_BYTES // (1024 * 1024)} MB")
        sound = _decode(path)
    except (OSError, ValueError, FFmpegError) as error:
        _refuse(path, "cannot be read as WAV", error)
    if sound.size == 0:
        _refuse(path, "holds no sound")
    return conform(sound.astype(np.float64) / 32768.0)


def _decode(path: Path) -> Samples:
    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)
    pieces: list[Samples] = []
    count = 0
    with av.open(str(path), format="wav") as container:
        if not container.streams.audio:
            _refuse(path, "holds no sound")
        codec = container.streams.audio[0].codec_context
        if not codec:  # None for an encoding that nobody knows, whatever its type says
            _refuse(path, "is of an unknown encoding")
        rate = codec.sample_rate
        if not RATES_HZ[0] <= rate <= RATES_HZ[1]:
            _refuse(path, f"says it has {rate} samples a second")
        for frame in (*container.decode(audio=0), None):
            for piece in resampler.resample(frame):
                pieces.append(piece.to_ndarray().reshape(-1).astype(np.int16))
                count += pieces[-1].size
            if count > LENGTH_MAX_S * SAMPLE_RATE_HZ:
                _refuse(path, f"is longer than {LENGTH_MAX_S:g} s")
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)


def _refuse(path: Path, what: str, cause: Exception | None = None) -> NoReturn:
    raise ConfigError(f"{path}: the cue's file {what}; {_MEND}") from cause
