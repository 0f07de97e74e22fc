"""What the bridge adds to a stdio server: one server over stdio and over WebSocket, turn by turn.

Run: `python -m tests.bench.websocket_bridge`. Both go through one `ServerManager`, a call
here and a call there, so that a busy machine slows both. The goal is 0.5 ms more at p10. Where
other programs take turns on the same core, a pair's difference says mostly who was interrupted:
then the difference of the two p10 is the figure. `mcp-bridge serve` runs in a process of its own,
as in life. CPU is this process' and the bridge's; the servers' is the same either way and left out.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Final

from mcp_bridge import ServerManager, parse_servers
from tests.bench.table import print_table
from tests.stand_ins.bridge_process import BridgeProcess, bridge_process
from tests.stand_ins.mcp_events import raw_server

PAIRS: Final = 1000
WARM_UP: Final = 50
GOAL_MS: Final = 0.5
BODIES: Final = (("100 B", 100), ("10 kB", 10_000))
_TICKS_S: Final = os.sysconf("SC_CLK_TCK")


def cpu_of(bridge: BridgeProcess) -> float:
    """Seconds that the bridge's process has used, without its children."""
    fields = Path(f"/proc/{bridge.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


class Way:
    """Calls over one of the two."""

    def __init__(self, name: str, manager: ServerManager) -> None:
        self.name: Final = name
        self._manager: Final = manager
        self.took_ms: list[float] = []
        self.cpu_ms = 0.0

    async def call(self, said: str) -> None:
        cpu, began = time.process_time(), time.perf_counter()
        result = await self._manager.call_tool(f"{self.name}__echo", {"said": said})
        self.took_ms.append((time.perf_counter() - began) * 1e3)
        self.cpu_ms += (time.process_time() - cpu) * 1e3
        assert result.value["said"] == said


async def measure(manager: ServerManager, bridge: BridgeProcess, size: int) -> list[list[object]]:
    near, far = Way("near", manager), Way("far", manager)
    for _ in range(WARM_UP):
        await near.call("x" * size)
        await far.call("x" * size)
    near, far = Way("near", manager), Way("far", manager)
    cpu_before = cpu_of(bridge)
    for pair in range(PAIRS):
        # Which comes first changes: the second finds warmer caches.
        for way in (near, far) if pair % 2 else (far, near):
            await way.call("x" * size)
    bridge_cpu_ms = (cpu_of(bridge) - cpu_before) * 1e3 / PAIRS
    pairs = sorted(b - a for a, b in zip(near.took_ms, far.took_ms, strict=True))
    here = [way.cpu_ms / PAIRS for way in (near, far)]
    stdio, socket = [_p10_p50(sorted(way.took_ms)) for way in (near, far)]
    rows: list[list[object]] = []
    for name, took, host_ms, bridge_ms in (
        ("stdio", stdio, here[0], 0.0),
        ("WebSocket", socket, here[1], bridge_cpu_ms),
        (
            "  more",
            [b - a for a, b in zip(stdio, socket, strict=True)],
            here[1] - here[0],
            bridge_cpu_ms,
        ),
        ("  more, pair by pair", _p10_p50(pairs), here[1] - here[0], bridge_cpu_ms),
    ):
        rows.append([name, *(f"{figure:6.3f}" for figure in (*took, host_ms, bridge_ms))])
    return rows


def _p10_p50(times: list[float]) -> list[float]:
    return [times[len(times) // 10], times[len(times) // 2]]


async def main() -> None:
    server = raw_server(name="near")
    async with bridge_process() as bridge:
        servers = [server, *parse_servers(f'{{"far": {{"url": "{bridge.url}"}}}}')]
        async with ServerManager(servers, connect_timeout_s=60, call_timeout_s=60) as manager:
            for body, size in BODIES:
                print_table(
                    f"{PAIRS} pairs of {body}, ms; the goal is {GOAL_MS} more at p10",
                    ("way", "p10", "p50", "CPU here", "CPU of the bridge"),
                    await measure(manager, bridge, size),
                )


if __name__ == "__main__":
    asyncio.run(main())
