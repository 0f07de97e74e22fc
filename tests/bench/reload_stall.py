"""How long a reload of many tools holds the event loop.

Run: `python -m tests.bench.reload_stall [--runs 5]`. Ten MCP servers with 500 tools each and an n8n
with 544 workflows are processes of their own. The agent starts in a session, then reloads when
nothing has changed, when every tenth tool has, and when all have; so does one that has the
workflows alone. The columns are those of
`tests.bench.loop_stall`; `CPU` counts the loop's own steps, and `late` also holds what threads of
the process did with the interpreter's lock, and the machine's part.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from livekit.agents import AgentSession, TurnHandlingOptions

from caal_node import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.control.messages import ReloadRequest
from caal_node.core.events import TierName
from caal_node.core.paths import STATE_VARIABLE
from caal_node.models.child_process import end
from caal_node.models.llm import LLM
from caal_node.tools.source import ToolSource
from caal_node.tools.sources.configured import mcp_tier, n8n_tier
from tests.bench.loop_clock import Held, watched
from tests.bench.loop_stall import row
from tests.bench.table import print_table

PEERS: Final = Path(__file__).with_name("reload_peers.py")
SERVERS: Final = 10
TOOLS: Final = 500
WORKFLOWS: Final = 544
READY_S: Final = 14.0
"""Ten processes begin on two cores. In all, tiers have 15 s."""
RELOAD_S: Final = 60.0
CHANGES: Final = {"nothing": "", "every tenth": "some", "every one": "all"}


@dataclass(frozen=True, slots=True)
class House:
    """An agent with all the sources, outside of a session yet."""

    agent: CaalAgent
    session: AgentSession[Any]
    change: Path
    """What the sources read; see `reload_peers.py`."""

    async def enter(self) -> None:
        await self.session.start(self.agent)  # pyright: ignore[reportUnknownMemberType]

    async def reload(self) -> None:
        async with asyncio.timeout(RELOAD_S):
            await self.agent.on_reload(ReloadRequest())


@asynccontextmanager
async def house(
    servers: int = SERVERS, tools: int = TOOLS, workflows: int = WORKFLOWS
) -> AsyncGenerator[House]:
    with tempfile.TemporaryDirectory() as folder:
        change = Path(folder) / "change"
        change.write_text("")
        child = await asyncio.create_subprocess_exec(
            sys.executable, PEERS, "n8n", str(workflows), str(change), stdin=PIPE, stdout=PIPE
        )
        try:
            assert child.stdout is not None
            url = (await child.stdout.readline()).decode().strip()
            config = Path(folder) / "mcp_servers.json"
            config.write_text(
                json.dumps({f"house{n}": _entry(n, tools, change) for n in range(servers)})
            )
            settings = load_settings(
                {
                    "CAAL_CUES": "off",
                    "CAAL_MCP_SERVERS": str(config),
                    "N8N_URL": url,
                    "N8N_API_KEY": "none",
                },
                Path(folder) / "no-such-caal.toml",
            )
            places = {STATE_VARIABLE: f"{folder}/state", "CAAL_CACHE": f"{folder}/cache"}
            with patch.dict(os.environ, places):
                model = LLM("stand-in", "ollama", "http://127.0.0.1:9", native_tools=True)
                session: AgentSession[Any] = AgentSession(
                    llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
                )
                try:
                    mcp = mcp_tier(settings, catalogue=Path(folder), ready_s=READY_S)
                    tiers: dict[TierName, ToolSource] = {"n8n": n8n_tier(settings), "mcp": mcp}
                    agent = CaalAgent(settings=settings, tiers=tiers, warm=False)
                    yield House(agent, session, change)
                finally:
                    await session.aclose()
                    await model.aclose()
        finally:
            await end(child)


def _entry(number: int, tools: int, change: Path) -> dict[str, Any]:
    args = ["-S", "-E", str(PEERS), "mcp", str(number), str(tools), str(change)]
    return {"command": sys.executable, "args": args, "connect_timeout": RELOAD_S}


async def bench(runs: int) -> None:
    held: dict[str, list[Held]] = {}

    async def watch(name: str, work: Callable[[], Awaitable[object]]) -> None:
        # As the worker does it (caal_node/cli/worker.py).
        gc.collect()
        gc.freeze()
        held.setdefault(name, []).append(await watched(work))

    for what, servers in {"5,544 tools": SERVERS, "544 workflows": 0}.items():
        for _ in range(runs):
            async with house(servers) as one:
                await watch(f"{what}: first start", one.enter)
                await watch(f"{what}: idle", lambda: asyncio.sleep(0.5))
                if (there := len(one.agent.table)) < servers * TOOLS + WORKFLOWS:
                    raise RuntimeError(f"{there} tools: {dict(one.agent.failed)}")
                for changed, change in CHANGES.items():
                    one.change.write_text(change)
                    await watch(f"{what}: reload, {changed} changed", one.reload)
    columns = ("work", "late ms, worst", "late ms, median", "CPU ms, worst", "over", "longest step")
    rows = [row(name, each) for name, each in held.items()]
    print_table(f"the longest stall of the event loop, {runs} runs each", columns, rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=5)
    asyncio.run(bench(options.parse_args().runs))


if __name__ == "__main__":
    main()
