"""One HTTP/1.1 exchange, byte by byte, for tests that must send exact headers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class RawReply:
    status: int
    headers: dict[str, str]
    """Lower-cased names."""
    body: bytes


async def ask(
    port: int, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes
) -> RawReply:
    """Send the headers as they are, in their order; the reply must have a content-length."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=MAX_BYTES)
    try:
        lines = [f"{method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in headers), "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        got = {name.lower(): value.strip() for name, _, value in pairs}
        return RawReply(
            int(head[0].split()[1]), got, await reader.readexactly(int(got["content-length"]))
        )
    finally:
        writer.close()
