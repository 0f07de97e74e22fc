"""How a response is cut into pieces of one JSON value each, none longer than it may be."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from typing import Final, cast

import httpx2

from caal_node.core.errors import ModelReplyError

LINE_MAX_BYTES: Final = 1_048_576
"""Bytes of one line, one event, or a whole unstreamed reply. They are 250,000 tokens of text, and
few enough that parsing them does not hold the loop for a frame."""
REPLY_MAX_BYTES: Final = 8 * LINE_MAX_BYTES
"""Bytes of a whole streamed reply. A token comes in 120 (Ollama) to 280 bytes (llama.cpp), so they
are 30,000 tokens at least, over ten minutes of speech."""


async def split_lines(
    chunks: AsyncIterable[bytes],
    *,
    line_max: int = LINE_MAX_BYTES,
    reply_max: int = REPLY_MAX_BYTES,
) -> AsyncGenerator[bytes]:
    """Yield the lines of `chunks` without their ends and without the empty ones.

    Raises:
        ModelReplyError: a line, or all of them, is too long.
    """
    rest = bytearray()
    total = 0
    async for chunk in chunks:
        total += len(chunk)
        if total > reply_max:
            raise ModelReplyError(f"the reply is longer than {reply_max:,} bytes")
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            _check(len(rest) + end - start, line_max)
            line = bytes(rest) + chunk[start:end]
            rest.clear()
            start = end + 1
            if line := line.strip():
                yield line
        _check(len(rest) + len(chunk) - start, line_max)
        rest += chunk[start:]
    if line := bytes(rest).strip():
        yield line


async def json_lines(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the lines of NDJSON, Ollama's stream. An unstreamed reply is one line of it."""
    # It is read raw: no server is asked for compression, and nothing unpacks to gigabytes.
    async with aclosing(response.aiter_raw()) as chunks, aclosing(split_lines(chunks)) as lines:
        async for line in lines:
            yield line


async def whole_body(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the whole body as one piece, for JSON that may stand on several lines.

    Raises:
        ModelReplyError: it is longer than a line may be.
    """
    body = bytearray()
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            _check(len(body) + len(chunk), LINE_MAX_BYTES)
            body += chunk
    yield bytes(body)


async def sse_data(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the data of each server-sent event. Comments, which keep connections warm, are none.

    Raises:
        ModelReplyError: an event, or all of them, is too long, or these are no events.
    """
    source = aiter(httpx2.EventSource(response, max_event_size=LINE_MAX_BYTES))
    async with aclosing(cast("AsyncGenerator[httpx2.ServerSentEvent]", source)) as events:
        async for event in events:
            if response.num_bytes_downloaded > REPLY_MAX_BYTES:
                raise ModelReplyError(f"the reply is longer than {REPLY_MAX_BYTES:,} bytes")
            yield event.data.encode()


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise ModelReplyError(f"a line of the reply is longer than {limit:,} bytes")
