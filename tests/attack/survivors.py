"""Processes of a server that would outlive it: its supervisor is taken away, its host as well."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from caal_node.core.events import ToolCallStarted
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.conversation import Conversation
from tests.stand_ins.kill_matrix import SERVER, left, marked, supervises
from tests.stand_ins.mcp_conversation import cues, mcp_conversation, until
from tests.stand_ins.stand_in_model import Call, StandInModel

KIND: Final = "double-fork"
"""The child that is hardest to find: in a session of its own, and its parent is gone."""
GONE_S: Final = 10.0
FAILED: Final = "That did not work."
THERE: Final = "I am still here."


@asynccontextmanager
async def family(tool: str) -> AsyncIterator[tuple[Conversation, str]]:
    """A conversation whose model calls `tool` of a server with a child; and the family's mark."""
    mark = f"family-{uuid.uuid4().hex}"
    entry = {"command": sys.executable, "args": ["-I", "-S", str(SERVER), f"{mark}-{KIND}", KIND]}
    script: list[list[Any]] = [[Call(f"family__{tool}")], [FAILED], [THERE]]
    try:
        async with (
            StandInModel(*script) as model,
            mcp_conversation(model, {"family": entry}) as talk,
        ):
            yield talk, mark
    finally:
        for pid in marked(mark)[KIND]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def until_gone(mark: str, before: list[int]) -> bool:
    """Whether all of `before` end; the server itself may be started anew meanwhile."""
    until = time.monotonic() + GONE_S
    while set(before) & set(await asyncio.to_thread(lambda: marked(mark)[KIND])):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.05)
    return True


@attack("survivors", "a server kills its supervisor and leaves a child", deadline_s=5)
async def server_kills_its_parent(probe: Probe) -> Ending:
    async with family("kill_parent") as (talk, mark):
        return await _ending(talk, mark, probe, in_mid_call=False)


@attack("survivors", "somebody kills a server's supervisor in mid-call", deadline_s=5)
async def supervisor_is_killed(probe: Probe) -> Ending:
    async with family("wait") as (talk, mark):
        return await _ending(talk, mark, probe, in_mid_call=True)


async def _ending(talk: Conversation, mark: str, probe: Probe, *, in_mid_call: bool) -> Ending:
    before = marked(mark)[KIND]

    async def turn() -> str:
        asked = asyncio.create_task(talk.ask("Please call it."))
        if in_mid_call:
            await until(talk, ToolCallStarted)
            for pid in filter(supervises, before):
                os.kill(pid, signal.SIGKILL)
        return await asked

    heard = await probe.watch(turn)
    gone = await until_gone(mark, before)
    after = await talk.ask("Are you still there?")
    kept = len(before) == 3 and gone and cues(talk) == ["tool", "error"]
    return Ending(kept and heard == FAILED and after == THERE, f"{heard} {cues(talk)} {gone=}")


@attack("survivors", "supervisors and host are killed at once", deadline_s=60)
async def both_are_killed(probe: Probe) -> Ending:
    found = await probe.watch(lambda: asyncio.to_thread(left, "bridge", "both SIGKILL"))
    count = sum(found[kind] for kind in ("plain", "setsid", "double-fork"))
    return Ending(count == 0, f"{count} left once another host has started")
