"""`caal-node tools`: what the agent could call now."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from caal_node.cli.chosen_agent import chosen_agent
from caal_node.config.settings import Settings
from caal_node.evaluation.strategy_choice import choose
from mcp_bridge import ServerStatus


async def list_tools(settings: Settings, agent_name: str | None, *, as_json: bool) -> None:
    """Connect every source once, print the table, and disconnect."""
    agent = chosen_agent(settings, agent_name)
    try:
        await agent.reload_tools()
        choice = await choose(settings)
        if as_json:
            rows = [
                {
                    "name": entry.exposed,
                    "tier": entry.spec.tier,
                    "source": entry.spec.source,
                    "description": entry.spec.description,
                    "parameters": entry.schema["function"]["parameters"],
                }
                for entry in agent.table
            ]
            asking = {"model": settings.model, "asking": choice.asking, "why": choice.why}
            servers = [dataclasses.asdict(server) for server in agent.servers]
            found = {
                "tools": rows,
                "servers": servers,
                "failed": dict(agent.failed),
                "way_of_asking": asking,
            }
            print(json.dumps(found, ensure_ascii=False))
            return
        shown = Table("tool", "tier", "source", "what it does")
        for entry in agent.table:
            first_line = entry.spec.description.partition("\n")[0]
            shown.add_row(entry.exposed, entry.spec.tier, entry.spec.source, first_line)
        console = Console()
        console.print(shown)
        if agent.servers:
            console.print(_servers(agent.servers))
        told = {server.name for server in agent.servers}
        for source, reason in agent.failed.items():
            if source not in told:
                console.print(f"no tools from {source}: {reason}", style="yellow", markup=False)
        said = f"{settings.model} is asked for them: {choice.words} ({choice.why})"
        console.print(said, style="dim", markup=False, highlight=False)
    finally:
        await agent.close_tools()


def _servers(servers: Sequence[ServerStatus]) -> Table:
    shown = Table("MCP server", "state", "transport", "tools", "connected in", "to know")
    for server in servers:
        took = f"{server.connect_ms} ms" if server.connect_ms is not None else ""
        said = "; ".join(filter(None, (server.error, *server.notes)))
        count = str(server.tools)
        cells = (server.name, server.state, server.transport, count, took, said)
        shown.add_row(*map(escape, cells))
    return shown
