"""How a child process of ours ends: we close its standard input, and it was written to notice."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process

# For what the child does last; our children need a tenth of a second.
CLOSE_DEADLINE_S = 5.0


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
