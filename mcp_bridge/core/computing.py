"""Computes what takes long in a worker thread, beside the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple, Unpack

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
_LIMITER: Final = RunVar[CapacityLimiter]("mcp_bridge_computing")


async def computed(function: Callable[[Unpack[Arguments]], T], *args: *Arguments) -> T:
    """Returns what `function` gives for `args`, from a worker thread.

    One at a time: a thread that computes keeps Python's lock for 5 ms (`sys.getswitchinterval`)
    when the event loop wants it, and next to ten of them the loop waits ten times as long. Whoever
    waits here is served in turn. So `function` only computes, on what has a cap: one that waits for
    a disk or a peer would hold up all others.
    """
    try:
        limiter = _LIMITER.get()
    except LookupError:
        limiter = CapacityLimiter(1)
        _LIMITER.set(limiter)
    return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True, limiter=limiter)
