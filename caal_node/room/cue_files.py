"""Loads WAV files in place of synthesised cues. They are decoded once, at the start."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Final, NoReturn

import av
import numpy as np
from av.error import FFmpegError

from caal_node.core.errors import ConfigError
from caal_node.core.events import CueKind
from caal_node.room.cues import SAMPLE_RATE_HZ, CueSet, Samples, conform
from mcp_bridge.core.files import read_capped

LENGTH_MAX_S: Final = 1.0
"""Seconds of the longest cue. It delays the answer, and the room's audio queue has to hold it."""
FILE_MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the largest file: one second of eight channels of 64-bit samples at 48 kHz is 3 MB."""
RATES_HZ: Final = (4_000, 384_000)
"""Sample rates from telephone to studio. With another rate the header is wrong, and the resampler
would build giant tables."""
_REMEDY: Final = "save it as 16-bit PCM WAV of at most 1 second, or take the setting away"


def load_cues(files: Mapping[CueKind, Path]) -> CueSet:
    """Make the synthesised cues, with `files` in place of some.

    This reads and decodes files: call it before the event loop runs, or in a thread.

    Raises:
        ConfigError: A file cannot be used; the message names it and the remedy.
    """
    return CueSet.of({kind: load_wav(path) for kind, path in files.items()})


def load_wav(path: Path) -> Samples:
    """Decode a WAV file of any sample format, rate and channel count to a cue.

    It is faded in and out, its DC is removed, and its peak is lowered to that of a cue.

    Raises:
        ConfigError: The file is missing, unreadable, too large, too long or empty; the message
            names it and the remedy.
    """
    try:
        data = read_capped(path, FILE_MAX_BYTES)
    except OSError as error:
        _refuse(path, f"cannot be read ({error.strerror})", error)
    except ValueError as error:
        _refuse(path, f"is larger than {FILE_MAX_BYTES // (1024 * 1024)} MB", error)
    try:
        sound = _decode(path, data)
    except (OSError, ValueError, FFmpegError) as error:
        _refuse(path, "cannot be read as WAV", error)
    if sound.size == 0:
        _refuse(path, "holds no sound")
    return conform(sound.astype(np.float64) / 32768.0)


def _decode(path: Path, data: bytes) -> Samples:
    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)
    pieces: list[Samples] = []
    count = 0
    with av.open(BytesIO(data), mode="r", format="wav") as container:
        if not container.streams.audio:
            _refuse(path, "holds no sound")
        codec = container.streams.audio[0].codec_context
        if not codec:  # it is None for an unknown encoding, although its type does not say so
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
    raise ConfigError(f"{path}: the cue's file {what}; {_REMEDY}") from cause
