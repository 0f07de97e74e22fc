"""Texts that are larger than what one RPC carries, as parts that each fit.

LiveKit refuses a payload or an answer above 15 KiB. Requests for tools may hold a whole file, and
their answers a catalogue, so both are compressed and cut: 500 tools with their schemas, 400 kB,
are a handful of parts. Every part is asked for, or sent, in an RPC of its own.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PART_CHARS: Final = 12 * 1024
"""Of one part. The rest of LiveKit's 15 KiB is room for the signature and the envelope."""
MAX_REQUEST_BYTES: Final = 1024 * 1024 + 64 * 1024
"""Of a request as text: the arguments that an MCP server may be sent, and a name."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Of an answer as text: some 20,000 tools of usual size."""


@dataclass(frozen=True, slots=True)
class PartRequest:
    """One part of the request `id`; the work begins once all are there, and once only."""

    id: str
    number: int
    """Counted from 0."""
    of: int
    data: str


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One part of the answer to the request `id`; it never begins anything."""

    id: str
    number: int


@dataclass(frozen=True, slots=True)
class Page:
    """One part of a finished answer."""

    number: int
    of: int
    data: str


def max_parts(max_bytes: int) -> int:
    """Parts of a text of `max_bytes` that does not compress at all; zlib adds a few bytes."""
    packed = (max_bytes + max_bytes // 1000 + 64) * 4 // 3 + 4
    return -(-packed // PART_CHARS)


def pack(text: str) -> tuple[str, ...]:
    """The parts of `text`, at least one. Takes 20 ms a megabyte."""
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    return tuple(packed[at : at + PART_CHARS] for at in range(0, len(packed), PART_CHARS))


def unpack(parts: Sequence[str], max_bytes: int) -> str:
    """The text of all its parts, in order.

    Raises:
        ValueError: they are no parts of a text, or it is larger than `max_bytes`.
    """
    try:
        packed = base64.b64decode("".join(parts), validate=True)
        stream = zlib.decompressobj()
        text = stream.decompress(packed, max_bytes + 1)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"these are no parts of a text ({type(error).__name__})") from None
    if len(text) > max_bytes:
        raise ValueError(f"the text is larger than {max_bytes} bytes")
    if not stream.eof or stream.unused_data:
        raise ValueError("parts are missing, or too many")
    try:
        return text.decode()
    except ValueError:
        raise ValueError("these are no parts of a text (no UTF-8)") from None
