"""Weights of a model, read as data.

The format (https://huggingface.co/docs/safetensors): eight bytes with the header's length, little
endian; the header, a JSON object of name -> type, shape and place; the numbers.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

MAX_HEADER_BYTES: Final = 1 << 20
"""A header has some 100 bytes for each tensor."""
_FLOAT32: Final = "F32"
_BYTES: Final = 4


def read_tensors(path: str | os.PathLike[str]) -> dict[str, NDArray[np.float32]]:
    """The file's float32 tensors by name; those of other types are left out.

    They are views of the file: only what is used is read, and processes share it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file, or not whole.
    """
    raw: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
    length = int.from_bytes(raw[:8].tobytes(), "little")
    if len(raw) < 8 or not 0 < length <= min(MAX_HEADER_BYTES, len(raw) - 8):
        raise ValueError("no safetensors header")
    try:
        header: object = json.loads(raw[8 : 8 + length].tobytes())
    except RecursionError as error:
        raise ValueError("no safetensors header") from error
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    numbers = raw[8 + length :]
    found: dict[str, NDArray[np.float32]] = {}
    for name, told in cast("dict[str, Any]", header).items():
        if isinstance(told, dict) and cast("dict[str, Any]", told).get("dtype") == _FLOAT32:
            found[name] = _tensor(numbers, name, cast("dict[str, Any]", told))
    return found


def _tensor(numbers: NDArray[np.uint8], name: str, told: Mapping[str, Any]) -> NDArray[np.float32]:
    try:
        start, end = (int(place) for place in told["data_offsets"])
        shape = tuple(int(length) for length in told["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name} has no place or no shape") from error
    size = math.prod(shape) * _BYTES
    if min(shape, default=0) < 0 or not 0 <= start <= end <= len(numbers) or end - start != size:
        raise ValueError(f"{name} is not whole")
    return np.frombuffer(numbers[start:end], "<f4").reshape(shape)
