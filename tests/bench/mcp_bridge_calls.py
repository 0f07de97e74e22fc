"""What the bridge adds to the SDK, and how long giant results hold the event loop.

Run: `python -m tests.bench.mcp_bridge_calls`. SDK and bridge take turns in one run, over one
stand-in server each. Lag is how much later than asked a 1 ms sleep wakes; compare it with the
line `idle`, which is the machine's own. The stand-in's share is in `took`, not in the lag.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from mcp_bridge import ServerManager
from tests.mcp_events import events, sdk_server

TICK_S: Final = 0.001
CALLS: Final = 300
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


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1e3


async def main() -> None:
    async with events() as seen:
        config = sdk_server(seen)
        server = StdioServerParameters(
            command=config.command, args=list(config.args), env=dict(config.env)
        )
        async with ServerManager([config], call_timeout_s=60) as manager, Client(server) as client:
            await client.list_tools()
            sdk: list[float] = []
            bridge: list[float] = []
            for _ in range(CALLS):
                sdk.append(await timed(lambda: client.call_tool("echo", {"say": "x"})))
                bridge.append(await timed(lambda: manager.call_tool("sdk__echo", {"say": "x"})))
            for name, times in (("sdk", sdk), ("bridge", bridge)):
                times.sort()
                p10, p50 = times[CALLS // 10], times[CALLS // 2]
                print(f"{name:8} round trip p10 {p10:.2f} ms, p50 {p50:.2f} ms")
            print(f"{'idle':16} {await lag(lambda: asyncio.sleep(0.5))}")
            for tool, arguments in GIANTS:
                call = await lag(lambda: manager.call_tool(f"sdk__{tool}", arguments))  # noqa: B023 - awaited at once
                print(f"bridge {tool:9} {call}")
                call = await lag(lambda: client.call_tool(tool, arguments))  # noqa: B023 - awaited at once
                print(f"sdk    {tool:9} {call}")


if __name__ == "__main__":
    asyncio.run(main())
