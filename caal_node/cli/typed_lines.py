"""Typed lines are read beside the event loop, by a thread that nobody has to wait for.

`sys.stdin.readline` in a pool's thread would keep Ctrl-C waiting for Enter, since a pool joins its
threads; a daemon thread inside Python's own buffer aborts the interpreter at its end. So this one
reads the descriptor itself.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Final

_CHUNK_BYTES: Final = 4096
_BYTES_A_CHAR: Final = 4
"""A character has this many bytes at most in UTF-8."""


def standard_input() -> int | None:
    """Return its file descriptor; None where the program was started without one."""
    return None if sys.stdin is None else sys.stdin.fileno()


async def typed_lines(descriptor: int | None, *, max_chars: int) -> AsyncGenerator[str]:
    """Yield each line of `descriptor`, cut to `max_chars`; a line is read when it is asked for.

    A descriptor that is not there, or cannot be read any more, has no more lines.
    """
    if descriptor is None:
        return
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[str | None] = asyncio.Queue()
    wanted = threading.Semaphore(0)

    def read() -> None:
        lines = capped_lines(_chunks(descriptor), max_chars * _BYTES_A_CHAR)
        try:
            while wanted.acquire():
                line = next(lines, None)
                loop.call_soon_threadsafe(arrived.put_nowait, line)
                if line is None:
                    return
        except RuntimeError:
            return  # the loop was closed while a line was awaited

    threading.Thread(target=read, name="typed-lines", daemon=True).start()
    while True:
        wanted.release()
        if (line := await arrived.get()) is None:
            return
        yield line[:max_chars]


def _chunks(descriptor: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            yield chunk
    except OSError:
        return  # the terminal was closed (EIO), or the descriptor (EBADF)


def capped_lines(chunks: Iterable[bytes], max_bytes: int) -> Iterator[str]:
    """Yield the lines of a byte stream without their ends, and drop what is past `max_bytes`.

    At most `max_bytes` and a chunk are held, however long a line is.
    """
    line = bytearray()
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line += part[: max_bytes - len(line)]
            yield line.decode(errors="replace")
            line.clear()
        line += rest[: max_bytes - len(line)]
    if line:
        yield line.decode(errors="replace")
