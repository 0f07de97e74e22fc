"""Texts that are larger than what one RPC carries are cut into chunks that each fit.

LiveKit refuses a payload or an answer above 15 KiB. A call's arguments may hold a whole file, and
an answer a whole catalogue, so every text is compressed and cut: 500 tools with their schemas,
400 kB, are a handful of chunks. Each chunk travels in an RPC of its own.
"""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

CHUNK_CHARS: Final = 12 * 1024
"""The size of one chunk. The rest of LiveKit's 15 KiB is for the signature and the envelope."""
MAX_REQUEST_BYTES: Final = 1024 * 1024 + 64 * 1024
"""A request as text holds a name and the arguments that an MCP server may be sent at most."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""An answer as text may hold some 20,000 tools of usual size."""
INLINE_CHARS: Final = 64 * 1024
"""Compressing or parsing this takes 2 ms; more is done in a thread."""
EXPANSION: Final = 16
"""A text may be this many times larger than its chunks; catalogues compress best."""

T = TypeVar("T")


def max_chunks(max_bytes: int) -> int:
    """Count the chunks of a text of `max_bytes` that does not compress; zlib adds a few bytes."""
    compressed = (max_bytes + max_bytes // 1000 + 64) * 4 // 3 + 4
    return -(-compressed // CHUNK_CHARS)


def split(text: str) -> tuple[str, ...]:
    """Return the chunks of `text`, at least one. It takes 20 ms a megabyte."""
    encoded = base64.b64encode(zlib.compress(text.encode())).decode()
    return tuple(encoded[at : at + CHUNK_CHARS] for at in range(0, len(encoded), CHUNK_CHARS))


def join(chunks: Sequence[str], max_bytes: int) -> str:
    """Return the text of all its chunks, which are given in their order.

    Raises:
        ValueError: they are not the chunks of a text, or it is larger than `max_bytes`.
    """
    try:
        compressed = base64.b64decode("".join(chunks), validate=True)
        stream = zlib.decompressobj()
        # The cap is on what comes out: a few bytes can decompress to gigabytes.
        text = stream.decompress(compressed, max_bytes + 1)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"these are not the chunks of a text ({type(error).__name__})") from None
    if len(text) > max_bytes:
        raise ValueError(f"the text is larger than {max_bytes} bytes")
    if not stream.eof or stream.unused_data:
        raise ValueError("chunks are missing, or too many")
    try:
        return text.decode()
    except ValueError:
        raise ValueError("these are not the chunks of a text (no UTF-8)") from None


async def run_beside_loop(work: Callable[[], T], *, chars: int) -> T:
    """Run `work` on a text of `chars` characters; in a thread where it would stall the loop."""
    return work() if chars <= INLINE_CHARS else await asyncio.to_thread(work)


def expanded_chars(chunks: Sequence[str]) -> int:
    """Estimate how many characters the text of these chunks has."""
    return EXPANSION * sum(map(len, chunks))
