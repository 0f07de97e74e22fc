"""What the bridge adds to the SDK, and how long giant results hold the event loop.

Run: `python -m tests.bench.mcp_bridge_calls`. SDK and bridge take turns in one run, over one
stand-in server each, and who begins changes from pair to pair. Goals: at p10 the bridge adds at
most 0.3 ms, in wall time and in CPU time of this process; and the loop is held for at most 20 ms by
a result of 4 MiB. On a busy machine the wall times are the neighbours' as well, the CPU times are
ours alone. Lag is how much later than asked a 1 ms sleep wakes; compare it with the
line `idle`, which is the machine's own. The stand-in's share is in `took`, not in the lag.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from mcp_bridge import ServerManager
from tests.stand_ins.mcp_events import events, sdk_server

TICK_S: Final = 0.001
CALLS: Final = 1000
WARM: Final = 20
"""Calls that are not counted: caches fill, and validators are made."""
ADDED_MS: Final = 0.3
GIANTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("giant", {"chars": 4 * 2**20}),
    ("dense", {"rows": 100_000}),
    ("blocks", {"count": 90_000}),
)


async def lag(work: Callable[[], Awaitable[object]]) -> str:
    lags: list[float] = []

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(TICK_S)
            lags.append(time.perf_counter() - began - TICK_S)

    ticking = asyncio.create_task(tick())
    began = time.perf_counter()
    await work()
    took = time.perf_counter() - began
    ticking.cancel()
    lags.sort()
    worst, most = lags[-1] * 1e3, lags[int(len(lags) * 0.99)] * 1e3
    return f"lag max {worst:7.1f} ms, p99 {most:7.1f} ms; took {took * 1e3:6.0f} ms"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one call, in ms."""

    wall: float
    cpu: float


async def cost(work: Callable[[], Awaitable[object]]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return Cost((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)


def p10(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 10]


def compared(sdk: Sequence[Cost], bridge: Sequence[Cost]) -> None:
    for unit in ("wall", "cpu"):
        ours = p10(getattr(one, unit) for one in bridge)
        theirs = p10(getattr(one, unit) for one in sdk)
        verdict = "ok" if ours - theirs <= ADDED_MS else "OVER"
        print(
            f"round trip, {unit:4} p10: sdk {theirs:.2f} ms, bridge {ours:.2f} ms, "
            f"added {ours - theirs:+.2f} ms (goal {ADDED_MS} ms) {verdict}"
        )


async def main() -> None:
    async with events() as seen:
        config = sdk_server(seen)
        server = StdioServerParameters(
            command=config.command, args=list(config.args), env=dict(config.env)
        )
        async with ServerManager([config], call_timeout_s=60) as manager, Client(server) as client:
            await client.list_tools()
            sdk: list[Cost] = []
            bridge: list[Cost] = []
            for turn in range(CALLS + WARM):
                pair = [
                    (sdk, lambda: client.call_tool("echo", {"say": "x"})),
                    (bridge, lambda: manager.call_tool("sdk__echo", {"say": "x"})),
                ]
                for costs, call in pair if turn % 2 else reversed(pair):
                    costs.append(await cost(call))
            compared(sdk[WARM:], bridge[WARM:])
            print(f"{'idle':16} {await lag(lambda: asyncio.sleep(0.5))}")
            for tool, arguments in GIANTS:
                call = await lag(lambda: manager.call_tool(f"sdk__{tool}", arguments))  # noqa: B023 - awaited at once
                print(f"bridge {tool:9} {call}")
                call = await lag(lambda: client.call_tool(tool, arguments))  # noqa: B023 - awaited at once
                print(f"sdk    {tool:9} {call}")


if __name__ == "__main__":
    asyncio.run(main())
