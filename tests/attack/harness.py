"""What every attack is measured by.

An attack plays one peer that is hostile or broken, through the parts that a room uses, and says how
it ended. Each runs in a process of its own (`tests/attack/runner.py`), so that one that wins takes
no other with it.

    @attack("noise", "a server writes junk lines to stdout", deadline_s=4)
    async def junk_lines(probe: Probe) -> Ending:
        async with some_agent() as talk:
            heard = await probe.watch(lambda: talk.ask("What is the weather?"))
        return Ending(heard=heard, kept="Sorry" in heard)
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import psutil

from tests.bench.loop_clock import BEAT_S

HOLD_MAX_MS: Final = 20.0
"""An audio frame of LiveKit. A loop that is held for longer is heard."""
MEMORY_MAX_MB: Final = 96.0
"""What an attack may cost for a while: a few of the largest answers that are read, 8 to 16 MiB."""
LATE_S: Final = 1.0
"""How long after its deadline an answer may end, on a machine that also runs the attacker."""
STUCK_S: Final = 0.25
"""So late a beat counts though nothing computed: the loop waited for a file or a lock."""
_MIB: Final = 2**20
_RESET_PEAK: Final = "5"

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attack ended. `kept` says whether what the project promises about it was kept."""

    kept: bool
    heard: str = ""
    """What the person heard, or what the owner was told where nobody listens."""


@dataclass(slots=True)
class Probe:
    """Measures the part of an attack that is ours."""

    hold_ms: float = 0.0
    """The longest that the loop was held by this process."""
    took_s: float = 0.0
    memory_mb: float = 0.0
    """The most memory that was in use at once, over what was before."""

    async def watch(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Run `work` and measure it. Call it once it is warm, imports and connections included."""
        before = _resident_mb()
        _reset_peak()
        began = time.monotonic()
        beating = asyncio.create_task(self._beat())
        await asyncio.sleep(BEAT_S)
        try:
            result = await work()
        finally:
            self.took_s = max(self.took_s, time.monotonic() - began)
            # What the work left for the loop to do belongs to it.
            await asyncio.sleep(50 * BEAT_S)
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            self.memory_mb = max(self.memory_mb, _peak_mb() - before)
        return result

    async def _beat(self) -> None:
        """Lateness counts as far as this process computed meanwhile.

        So whatever thread of ours keeps the interpreter to itself counts, and what the machine gave
        to other programs does not, unless it is so long that the loop must have been stuck.
        """
        while True:
            began, worked = time.perf_counter(), time.process_time()
            await asyncio.sleep(BEAT_S)
            late = time.perf_counter() - began - BEAT_S
            ours = late if late > STUCK_S else min(late, time.process_time() - worked)
            self.hold_ms = max(self.hold_ms, ours * 1000)


Play: TypeAlias = Callable[[Probe], Awaitable[Ending]]


@dataclass(frozen=True, slots=True)
class Attack:
    """One peer's misdeed, and what it may cost at most."""

    area: str
    words: str
    play: Play
    deadline_s: float
    """When the watched part has to be over."""
    memory_max_mb: float
    limit_s: float
    """When the attack's process is ended, start-up included."""
    tries: int

    @property
    def name(self) -> str:
        return f"{self.area}: {self.words}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attack's row of the table."""

    name: str
    hold_ms: float
    took_s: float
    deadline_s: float
    memory_mb: float
    memory_max_mb: float
    kept: bool
    heard: str

    def faults(self, hold_max_ms: float = HOLD_MAX_MS, late_s: float = LATE_S) -> tuple[str, ...]:
        """What was not kept, in words; none where all was."""
        found: list[str] = []
        if self.hold_ms > hold_max_ms:
            found.append(f"the loop was held for {self.hold_ms:,.0f} ms")
        if self.took_s > self.deadline_s + late_s:
            found.append(f"{self.took_s:.1f} s, past its deadline of {self.deadline_s:g} s")
        if self.memory_mb > self.memory_max_mb:
            found.append(f"{self.memory_mb:,.0f} MB of memory")
        if not self.kept:
            found.append(f"not kept: {self.heard}")
        return tuple(found)


ATTACKS: Final[dict[str, Attack]] = {}


def attack(
    area: str,
    words: str,
    *,
    deadline_s: float,
    memory_max_mb: float = MEMORY_MAX_MB,
    limit_s: float = 60.0,
    tries: int = 3,
) -> Callable[[Play], Play]:
    """Enter an attack in the table. Of `tries` the shortest hold counts: machines have hiccups."""

    def entered(play: Play) -> Play:
        one = Attack(area, words, play, deadline_s, memory_max_mb, limit_s, tries)
        assert one.name not in ATTACKS, one.name
        ATTACKS[one.name] = one
        return play

    return entered


async def measured(one: Attack) -> Outcome:
    """Play `one` until its holds are within the limit, `one.tries` times at most."""
    best: Outcome | None = None
    for _ in range(one.tries):
        probe = Probe()
        ending = await one.play(probe)
        outcome = Outcome(
            one.name,
            probe.hold_ms,
            probe.took_s,
            one.deadline_s,
            probe.memory_mb,
            one.memory_max_mb,
            ending.kept,
            ending.heard,
        )
        if not outcome.kept:
            return outcome  # a promise that was broken once is broken
        if best is None or outcome.hold_ms < best.hold_ms:
            best = outcome
        if not best.faults():
            break
    assert best is not None
    return best


def _resident_mb() -> float:
    return psutil.Process().memory_info().rss / _MIB


def _reset_peak() -> None:
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")


def _peak_mb() -> float:
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
