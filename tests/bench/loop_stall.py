"""How long a turn holds the event loop, with ordinary results and with 4 MiB ones of each tier.

Run: `python -m tests.bench.loop_stall [--runs 5]`. The model, the MCP server and the webhook are
processes of their own. 20 ms is the limit: an audio frame. `late` is how much later than asked a
1 ms sleep woke, at worst of all runs, and `idle` is the machine's own part of it; `CPU` is the
longest single step's CPU time, which a busy machine does not change, and then what ran in it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from livekit.agents import AgentSession, TurnHandlingOptions, function_tool

from caal_node import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.models.llm import LLM
from n8n.calls import call as n8n_call
from tests.bench import giant_webhook, obedient_model
from tests.bench.giants import records, records_json
from tests.bench.loop_clock import Held, watched
from tests.bench.obedient_model import told
from tests.bench.table import print_table
from tests.stand_ins.mcp_events import events, sdk_server

SIZE: Final = 4 * 2**20
LIMIT_MS: Final = 20.0
TURN_S: Final = 60.0

RECORDS: Final = records(SIZE)
RECORDS_JSON: Final = records_json(SIZE)
WORDS: Final = "Some words, and more. " * (SIZE // 22)


class Exporter(CaalAgent):
    @function_tool
    async def small(self) -> dict[str, Any]:
        """Look up one thing."""
        return {"id": 1, "name": "Thing number 1"}

    @function_tool
    async def giant_records(self) -> list[dict[str, Any]]:
        """Export everything, as records."""
        return RECORDS

    @function_tool
    async def giant_json(self) -> str:
        """Export everything, as JSON text."""
        return RECORDS_JSON

    @function_tool
    async def giant_words(self) -> str:
        """Export everything, in words."""
        return WORDS


CASES: Final = {
    "a turn without a tool": "Good morning.",
    "a turn with a small result": told("small"),
    "method, 4 MiB of records": told("giant_records"),
    "method, 4 MiB of JSON text": told("giant_json"),
    "method, 4 MiB of words": told("giant_words"),
    "n8n, 4 MiB of records": told("export"),
    "n8n, just under its cap": told("export", bytes=n8n_call.MAX_REPLY_BYTES - 4_096),
    "MCP stdio, 4 MiB of text": told("sdk__giant", chars=SIZE),
    "MCP stdio, 100,000 records": told("sdk__dense", rows=100_000),
    "MCP stdio, 90,000 blocks": told("sdk__blocks", count=90_000),
}


@asynccontextmanager
async def session_of_all_tiers() -> AsyncGenerator[AgentSession[Any]]:
    async with (
        events() as seen,
        obedient_model.served() as model_url,
        giant_webhook.served(SIZE) as n8n_url,
    ):
        server = sdk_server(seen)
        entry = {"command": server.command, "args": [*server.args], "env": {**server.env}}
        entry["allow"] = ["env"]
        model = LLM("stand-in", "ollama", model_url, native_tools=True)
        with tempfile.TemporaryDirectory() as folder:
            servers = Path(folder) / "mcp_servers.json"
            servers.write_text(json.dumps({"sdk": {**entry, "connect_timeout": TURN_S}}))
            settings = load_settings(
                {
                    "CAAL_CUES": "off",
                    "CAAL_MCP_SERVERS": str(servers),
                    "N8N_URL": n8n_url,
                    "N8N_API_KEY": giant_webhook.API_KEY,
                },
                Path(folder) / "no-such-caal.toml",
            )
            agent = Exporter(settings=settings)
            session: AgentSession[Any] = AgentSession(
                llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
            )
            await session.start(agent)
            try:
                await agent.warmed()
                if agent.failed:
                    raise RuntimeError(f"tools are missing: {dict(agent.failed)}")
                yield session
            finally:
                await session.aclose()
                await model.aclose()


async def bench(runs: int) -> None:
    rows: list[tuple[object, ...]] = []
    async with session_of_all_tiers() as session:

        async def turn(words: str) -> None:
            async with asyncio.timeout(TURN_S):
                await session.run(user_input=words)

        for words in list(CASES.values())[:2]:
            await turn(words)  # what the first turn imports and connects is not a turn's
        # As the worker does it (caal_node/cli/worker.py).
        gc.collect()
        gc.freeze()
        rows.append(row("idle", [await watched(lambda: asyncio.sleep(0.5)) for _ in range(runs)]))
        for name, words in CASES.items():
            held = [await watched(lambda words=words: turn(words)) for _ in range(runs)]
            rows.append(row(name, held))
    columns = ("turn", "late ms, worst", "late ms, median", "CPU ms, worst", "over", "longest step")
    print_table(f"the longest stall of the event loop, {runs} runs each", columns, rows)


def row(name: str, held: list[Held]) -> tuple[object, ...]:
    late = sorted(each.late_ms for each in held)
    worst = max(held, key=lambda each: each.step_ms)
    over = sum(ms > LIMIT_MS for ms in late)
    return name, late[-1], late[len(late) // 2], worst.step_ms, f"{over}/{len(held)}", worst.step


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=5)
    asyncio.run(bench(options.parse_args().runs))


if __name__ == "__main__":
    main()
