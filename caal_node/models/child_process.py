"""Our child processes: what they may know, and how they end.

We close a child's standard input, and it was written to notice.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import BinaryIO, Final

NEEDED: Final = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""All that a child which reads strangers' files gets of the environment, so that it has no key."""
# For what the child does last; our children need a tenth of a second.
CLOSE_DEADLINE_S = 5.0
AT_ONCE_BYTES: Final = 65_536
"""What is shorter is read in a thread: that takes milliseconds, and a process a fifth of a second.
Of more, one step of C would keep the event loop waiting, thread or not."""
_MAIN: Final = Path(__file__).with_name("child_main.py")
_PIECE_BYTES: Final = 262_144


class TooMuchSaid(Exception):
    """A child has written more than it may."""


def environment_without_keys() -> dict[str, str]:
    """Return the environment of a child that reads what a stranger has made."""
    return {name: os.environ[name] for name in NEEDED if name in os.environ}


async def end(process: Process, *, deadline_s: float = CLOSE_DEADLINE_S) -> None:
    """Close `process`'s standard input, wait until it is gone, and kill it past the deadline.

    On return, and on cancellation too, the process is gone. One that has ended is fine.
    """
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(deadline_s):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def answer_of(
    module: str,
    arguments: tuple[str, ...],
    given: BinaryIO | bytes,
    *,
    deadline_s: float,
    max_bytes: int,
) -> bytes:
    """Run `main` of one of our modules in a child that has limits and no keys; return its output.

    On return, and on an error too, the process is gone.

    Args:
        given: Its standard input: an open file, which stays the caller's, or bytes.
        max_bytes: How much it may write.

    Raises:
        TimeoutError: It is past its deadline.
        TooMuchSaid: It wrote more.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_MAIN), module, *arguments),
        stdin=PIPE if isinstance(given, bytes) else given,
        stdout=PIPE,
        stderr=DEVNULL,
        env=environment_without_keys(),
        limit=_PIECE_BYTES,
    )
    try:
        async with asyncio.timeout(deadline_s):
            if isinstance(given, bytes):
                await _feed(process, given)
            output = await _said(process, max_bytes)
            await process.wait()
            return output
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is None:
        return
    try:
        for start in range(0, len(data), _PIECE_BYTES):
            process.stdin.write(data[start : start + _PIECE_BYTES])
            await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it has ended, and what it wrote says why


async def _said(process: Process, max_bytes: int) -> bytes:
    pieces, left = list[bytes](), max_bytes
    while process.stdout is not None and (piece := await process.stdout.read(_PIECE_BYTES)):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise TooMuchSaid
    return b"".join(pieces)
