"""`caal-node tools --explain NAME`: where everything that is known of one tool came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from caal_node.cli.chosen_agent import chosen_agent
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError, UnknownTool
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.table import ToolEntry, ToolTable

OWN_SCHEMA = "the tool's own schema"


async def explain_tool(
    settings: Settings, agent_name: str | None, name: str, *, as_json: bool
) -> None:
    """Connect every source once, and tell of the one tool.

    Raises:
        ConfigError: there is no such tool; it has the nearest names.
    """
    agent = chosen_agent(settings, agent_name)
    try:
        await agent.reload_tools()
        entry = resolved(agent.table, name)
    finally:
        await agent.close_tools()
    if as_json:
        print(json.dumps(explained(entry), ensure_ascii=False))
    else:
        _show(Console(highlight=False, soft_wrap=True), entry)


def resolved(table: ToolTable, name: str) -> ToolEntry:
    """The entry of a name that a person typed.

    Raises:
        ConfigError: there is no such tool; it has the nearest names.
    """
    try:
        return table.resolve(name)
    except UnknownTool as error:
        near = f" Did you mean {' or '.join(error.valid)}?" if error.valid else ""
        raise ConfigError(f"{error}{near} `caal-node tools` lists all.") from None


def explained(entry: ToolEntry) -> dict[str, Any]:
    spec = entry.spec
    schema = spec.parameters
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    return {
        "name": entry.exposed,
        "tier": spec.tier,
        "source": spec.source,
        "prompt": spec.description,
        "description": spec.details or spec.description,
        "parameters": [
            {
                "name": name,
                "required": name in required,
                "from": spec.origins.get(name, OWN_SCHEMA),
                "schema": told,
            }
            for name, told in properties.items()
        ],
        "examples": [[e.utterance, dict(e.arguments)] for e in spec.examples],
        "facts": list(spec.facts),
    }


def _show(console: Console, entry: ToolEntry) -> None:
    spec: ToolSpec = entry.spec
    told = explained(entry)
    console.print(f"{entry.exposed} ({spec.tier}, {spec.source})", style="bold", markup=False)
    console.print(told["description"], markup=False)
    if spec.details:
        console.print(f"the prompt has of that: {spec.description}", style="dim", markup=False)
    rows = Table("parameter", "required", "schema", "found in")
    for row in told["parameters"]:
        schema = json.dumps(row["schema"], ensure_ascii=False)
        rows.add_row(row["name"], "yes" if row["required"] else "", schema, row["from"])
    if told["parameters"]:
        console.print(rows)
    for example in spec.examples:
        arguments = json.dumps(dict(example.arguments), ensure_ascii=False)
        console.print(f"example: {example.utterance} -> {arguments}", markup=False)
    for fact in spec.facts:
        console.print(fact, style="dim", markup=False)
