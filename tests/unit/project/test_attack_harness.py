"""The attacks' probe sees what it is there to see."""

from __future__ import annotations

import asyncio
import re
import threading
import time

from tests.attack.harness import ATTACKS, HOLD_MAX_MS, Ending, Probe, attack, measured


async def idle() -> None:
    await asyncio.sleep(0)


async def test_a_step_that_computes_is_a_hold() -> None:
    probe = Probe()

    async def computes() -> None:
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass

    await probe.watch(computes)
    assert probe.hold_ms > HOLD_MAX_MS


async def test_a_thread_that_keeps_the_interpreter_is_a_hold() -> None:
    probe = Probe()

    async def matches() -> None:
        await asyncio.to_thread(re.match, r"^(a+)+$", "a" * 24 + "!")

    await probe.watch(matches)
    assert probe.hold_ms > HOLD_MAX_MS


async def test_a_loop_that_waits_for_a_lock_is_a_hold() -> None:
    probe = Probe()
    lock = threading.Lock()
    lock.acquire()

    async def waits() -> None:
        lock.acquire(timeout=0.5)

    await probe.watch(waits)
    assert probe.hold_ms > HOLD_MAX_MS


async def test_memory_that_was_in_use_only_for_a_while_counts() -> None:
    probe = Probe()

    async def takes() -> None:
        assert bytearray(b"x") * (64 * 2**20)

    await probe.watch(takes)
    assert probe.memory_mb > 48


async def test_a_promise_that_was_not_kept_is_a_fault() -> None:
    @attack("harness", "nothing is kept", deadline_s=1)
    async def unkept(probe: Probe) -> Ending:
        await probe.watch(idle)
        return Ending(kept=False, heard="nothing")

    try:
        outcome = await measured(ATTACKS["harness: nothing is kept"])
    finally:
        del ATTACKS["harness: nothing is kept"]
    assert outcome.faults() == ("not kept: nothing",)
