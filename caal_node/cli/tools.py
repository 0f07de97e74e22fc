"""`caal-node tools`: what the agent could call now, and what is known of each tool.

Its options: `--explain` shows one tool, and `--accept` offers MCP tools again whose definitions
have changed, and takes new ones as known.
"""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import mcp_bridge
import n8n
from caal_node.agent import CaalAgent
from caal_node.cli.chosen_agent import choose_front, chosen_agent
from caal_node.cli.completion import keep_tools
from caal_node.cli.output import TerminalTranscript, console, print_table
from caal_node.config.settings import Settings
from caal_node.core import paths
from caal_node.core.errors import ConfigError, UnknownTool
from caal_node.evaluation.model_profiles import choose
from caal_node.tools.middleware.dry_run import DRY_RUN
from caal_node.tools.middleware.standard import dry_run_line
from caal_node.tools.table import ToolEntry, ToolTable

OWN_SCHEMA: Final = "the tool's own schema"
"""A parameter that no other source describes was found here."""
STARTS_S: Final = 3_600.0
"""Seconds for all starts together; a `connect_timeout` may be as long as that."""
_ALIKE: Final = 0.6
"""Likeness (0 to 1) of two spellings from which one may be meant for the other."""
LOOK_S: Final = 0.2
"""Seconds between two looks at what is still starting."""
STILL_STARTING: Final = (
    "still starting; a first start may have to download a server, which takes minutes. "
    "Ctrl-C ends the wait."
)
NO_TOOLS: Final = (
    "There are no tools: turn some on (caal-node tools add shows which), write some in an agent of "
    "your own (caal-node init), set N8N_URL, or add MCP servers (caal-node mcp import)."
)


async def list_tools(settings: Settings, agent_name: str | None, *, as_json: bool) -> None:
    """Connect every source once, print the table, and disconnect."""
    agent = chosen_agent(settings, agent_name)
    try:
        await find_tools(agent)
        await choose_front(agent)
        entries, head = await all_entries(agent), head_names(agent)
        choice = await choose(settings)
        if as_json:
            found = {
                "tools": [_row(entry, head) for entry in entries],
                "servers": [dataclasses.asdict(server) for server in agent.servers],
                "failed": dict(agent.failed),
                "way_of_asking": {
                    "model": settings.model,
                    "asking": choice.asking,
                    "why": choice.why,
                },
            }
            print(json.dumps(found, ensure_ascii=False))
            return
        out = console()
        if entries:
            print_table(out, tool_table(entries, head, agent.policies.hide))
        else:
            out.print(NO_TOOLS, style="yellow", markup=False)
        if agent.servers:
            print_table(out, _server_table(agent.servers))
        listed = {server.name for server in agent.servers}
        for source, reason in agent.failed.items():
            if source not in listed:
                out.print(f"no tools from {source}: {reason}", style="yellow", markup=False)
        asking = f"{settings.model} is asked for them: {choice.words} ({choice.why})"
        out.print(asking, style="dim", markup=False)
        if line := dry_run_line(settings):
            out.print(f"{line}: {DRY_RUN}", style="yellow", markup=False)
    finally:
        await agent.close_tools()


async def find_tools(agent: CaalAgent) -> None:
    """List every source, as a session does, and wait for servers that are still starting.

    Whoever runs npx or uvx for the first time downloads a server with it, which a session need not
    wait for. Standard error says what is waited for. Each start ends by its own deadline.
    """
    told = TerminalTranscript(console(stderr=True))
    with told.waiting("looking for tools"):
        await agent.reload_tools()
    if not (names := _servers_in(agent, "starting")):
        return
    told.print_note(f"{', '.join(names)}: {STILL_STARTING}")
    with told.waiting(f"waiting for {', '.join(names)}"):
        await servers_started(agent, STARTS_S)
    if not set(names).isdisjoint(_servers_in(agent, "ready")):
        await agent.reload_tools()


async def servers_started(agent: CaalAgent, within_s: float) -> None:
    """Wait until no MCP server is starting any more, for so many seconds at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while _servers_in(agent, "starting"):  # noqa: ASYNC110 - a server that fails tells nobody
                await asyncio.sleep(LOOK_S)


def _servers_in(agent: CaalAgent, state: str) -> list[str]:
    return [server.name for server in agent.servers if server.state == state]


async def all_entries(agent: CaalAgent) -> list[ToolEntry]:
    """Return what every prompt shows, then what is told on demand, and keep the names."""
    entries = list({entry.exposed: entry for entry in (*agent.head_entries, *agent.table)}.values())
    await asyncio.to_thread(keep_tools, [entry.exposed for entry in entries])
    return entries


def head_names(agent: CaalAgent) -> frozenset[str]:
    """Return the names of the tools that every prompt shows."""
    return frozenset(entry.exposed for entry in agent.shown_entries)


def tool_table(
    entries: Sequence[ToolEntry], head: Collection[str], is_hidden: Callable[[ToolEntry], bool]
) -> Table:
    """Return a line a tool. Where not all are in `head`, a column says which ones are, and which
    ones the model never sees, as a rule hides them."""
    some = not all(entry.exposed in head for entry in entries)
    table = Table("tool", "tier", "source", *(["offered"] if some else []), "what it does")
    for entry in entries:
        how = "in every prompt" if entry.exposed in head else "on demand"
        how = "never, by a rule" if is_hidden(entry) else how
        first_line = entry.spec.description.partition("\n")[0]
        cells = [entry.exposed, entry.spec.tier, entry.spec.source]
        table.add_row(*map(escape, [*cells, *([how] if some else []), first_line]))
    return table


def _row(entry: ToolEntry, head: Collection[str]) -> dict[str, Any]:
    return {
        "name": entry.exposed,
        "tier": entry.spec.tier,
        "source": entry.spec.source,
        "description": entry.spec.description,
        "parameters": entry.schema["function"]["parameters"],
        "offered": entry.exposed in head,
    }


def _server_table(servers: Sequence[mcp_bridge.ServerStatus]) -> Table:
    table = Table("MCP server", "state", "transport", "tools", "connected in", "to know")
    for server in servers:
        took = f"{server.connect_ms} ms" if server.connect_ms is not None else ""
        notes = "; ".join(filter(None, (server.error, *server.notes)))
        count = str(server.tools)
        cells = (server.name, server.state, server.transport, count, took, notes)
        table.add_row(*map(escape, cells))
    return table


async def explain_tool(
    settings: Settings, agent_name: str | None, name: str, *, as_json: bool
) -> None:
    """Connect every source once, and print where everything about one tool came from.

    Raises:
        ConfigError: there is no such tool; the message has the nearest names.
    """
    agent = chosen_agent(settings, agent_name)
    try:
        await find_tools(agent)
        entry = find_entry(agent, name)
    finally:
        await agent.close_tools()
    if as_json:
        print(json.dumps(explanation(entry), ensure_ascii=False))
    else:
        print_explanation(console(), entry)


def find_entry(agent: CaalAgent, name: str) -> ToolEntry:
    """Return the entry of a name that a person typed, the search tool's included.

    Raises:
        ConfigError: there is no such tool; the message has the nearest names.
    """
    return agent.search if name == agent.search.exposed else resolve_tool(agent.table, name)


def resolve_tool(table: ToolTable, name: str) -> ToolEntry:
    """Return the entry of a name that a person typed.

    Raises:
        ConfigError: there is no such tool; the message has the nearest names.
    """
    try:
        return table.resolve(name)
    except UnknownTool as error:
        # The model is told of all that might do; a person has mistyped one of them.
        alike = difflib.get_close_matches(name, error.valid, 3, _ALIKE)
        near = f" Did you mean {' or '.join(alike)}?" if alike else ""
        raise ConfigError(f"{error}{near} `caal-node tools` lists all.") from None


def typed_arguments(given: Sequence[str], entry: ToolEntry) -> dict[str, Any]:
    """Read `city=Paris days=3`, or one JSON object, as the arguments of a call of the tool.

    Raises:
        ConfigError: it is neither.
    """
    if len(given) == 1 and given[0].lstrip()[:1] in ("{", "["):
        try:
            arguments = json.loads(given[0])
        except (ValueError, RecursionError) as error:
            hint = "write '{\"key\": 1}' or key=1"
            raise ConfigError(f"the arguments are not JSON ({error}); {hint}") from None
        if not isinstance(arguments, dict):
            raise ConfigError("the arguments are not a JSON object; write '{\"key\": 1}' or key=1")
        return cast("dict[str, Any]", arguments)
    properties: Mapping[str, Any] = entry.spec.parameters.get("properties", {})
    found: dict[str, Any] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"{pair!r}: write an argument as key=value, or all as JSON.")
        found[key] = n8n.typed(value, _typed_schema(properties.get(key)))
    return found


def _typed_schema(schema: Any) -> Mapping[str, Any]:
    """Return the schema, or that of its alternatives, that names a type; {} where none does."""
    if not isinstance(schema, Mapping):
        return {}  # `true` takes anything
    found = cast("Mapping[str, Any]", schema)
    if found.get("type") not in (None, "null"):
        return found
    for alternative in found.get("anyOf", ()):
        if named := _typed_schema(alternative):
            return named
    return {}


def explanation(entry: ToolEntry) -> dict[str, Any]:
    """Return what is known of a tool as `--explain --json` prints it."""
    spec = entry.spec
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    required = spec.parameters.get("required", ())
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
                "schema": schema,
            }
            for name, schema in properties.items()
        ],
        "examples": [[e.utterance, dict(e.arguments)] for e in spec.examples],
        "facts": list(spec.facts),
    }


def print_explanation(out: Console, entry: ToolEntry) -> None:
    """Print what `explanation` knows of a tool."""
    spec = entry.spec
    known = explanation(entry)
    out.print(f"{entry.exposed} ({spec.tier}, {spec.source})", style="bold", markup=False)
    out.print(known["description"], markup=False)
    if spec.details:
        out.print(f"the prompt has of that: {spec.description}", style="dim", markup=False)
    table = Table("parameter", "required", "schema", "found in")
    for row in known["parameters"]:
        schema = json.dumps(row["schema"], ensure_ascii=False)
        cells = row["name"], "yes" if row["required"] else "", schema, row["from"]
        table.add_row(*map(escape, cells))
    if known["parameters"]:
        print_table(out, table)
    for example in spec.examples:
        arguments = json.dumps(dict(example.arguments), ensure_ascii=False)
        out.print(f"example: {example.utterance} -> {arguments}", markup=False)
    for fact in spec.facts:
        out.print(fact, style="dim", markup=False)


async def accept_changed_tools(name: str) -> None:
    """Show the changed and new tools of `name`, a server or `server__tool`, and accept them.

    In a terminal the person is asked first. Nothing is connected: what is accepted is what was
    recorded and shown, and not what a server says by now.

    Raises:
        ConfigError: no tool of that name waits to be accepted; the message names those that do.
    """
    pins = mcp_bridge.Pins(paths.tool_pins())
    out = console()
    try:
        changes = await asyncio.to_thread(pins.changes, name)
        if not changes:
            waiting = await asyncio.to_thread(pins.waiting)
            hint = f"what waits: {', '.join(waiting)}" if waiting else "no tool waits"
            raise ConfigError(f"no tool of {name!r} waits to be accepted; {hint}")
        _print_changes(out, changes)
        what = "it" if len(changes) == 1 else f"all {len(changes)}"
        if sys.stdin.isatty() and not typer.confirm(f"Accept {what}?"):
            out.print("Nothing was accepted.")
            return
        await asyncio.to_thread(pins.accept, name, changes)
    except OSError as error:
        raise ConfigError(
            f"{paths.tool_pins()} cannot be written ({error.strerror}); fix its mode"
        ) from None
    except ValueError as error:
        raise ConfigError(str(error)) from None
    out.print(f"Accepted {what}. Live rooms offer such tools after /reload-tools.", style="dim")


def _print_changes(out: Console, changes: Sequence[mcp_bridge.AcceptedChange]) -> None:
    for tool in changes:
        out.print(f"{tool.server}__{tool.tool}", markup=False)
        if tool.was:
            out.print(f"  it says what {tool.was} said, which is gone", markup=False)
        if tool.new:
            out.print(f"  it is new, and says: {tool.after}", markup=False)
        elif tool.before == tool.after:
            out.print("  its words are the same, its schema is another", markup=False)
        else:
            out.print(f"  it said: {tool.before}\n  it says: {tool.after}", markup=False)
