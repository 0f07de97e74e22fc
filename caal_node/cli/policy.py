"""`caal-node tools --policy` and `caal-node policy try`: what the owner's rules say, and why."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from caal_node.agent import CaalAgent
from caal_node.cli.chosen_agent import chosen_agent
from caal_node.cli.output import console, print_table
from caal_node.cli.tools import all_entries, find_entry, head_names, typed_arguments
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError, InvalidArguments
from caal_node.core.tool_spec import Caller, CallOrigin
from caal_node.policy.policy import taken_names, unused_globs
from caal_node.tools.argument_check import check_arguments
from caal_node.tools.call_middleware import CallMiddleware, Preview, ToolCallRequest
from caal_node.tools.middleware.policy_check import PolicyChecks
from caal_node.tools.table import ToolEntry

_VERDICTS: Final[Mapping[str, str]] = {
    "confirm": "needs a yes",
    "pin": "needs the PIN",
    "dry_run": "is only reported",
}
_STYLES: Final[Mapping[str, str]] = {
    "deny": "red",
    "confirm": "yellow",
    "pin": "yellow",
    "dry_run": "cyan",
}


@dataclass(frozen=True, slots=True)
class AskedFor:
    """The caller for whom the rules are shown, as the options name them."""

    room: str = ""
    participant: str = ""
    attributes: Sequence[str] = field(default=())
    """Each is written `name=value`."""
    api: bool = False

    def caller(self) -> Caller:
        """Return the caller.

        Raises:
            ConfigError: an attribute has no `=`.
        """
        pairs: dict[str, str] = {}
        for given in self.attributes:
            name, equals, value = given.partition("=")
            if not (name and equals):
                raise ConfigError(f"--attribute {given!r}: write name=value")
            pairs[name] = value
        somebody = self.room or self.participant or pairs
        origin: CallOrigin = "api" if self.api else "room" if somebody else "terminal"
        return Caller(origin, self.room, self.participant, pairs)


async def show_policy(
    settings: Settings, agent_name: str | None, asked: AskedFor, *, as_json: bool
) -> None:
    """Connect every source once, and print each tool's effect and verdict with their lines.

    Raises:
        ConfigError: the agent cannot be made, or an attribute cannot be read.
    """
    caller = asked.caller()
    agent = chosen_agent(settings, agent_name)
    try:
        await agent.reload_tools()
        entries = await all_entries(agent)
    finally:
        await agent.close_tools()
    policies = PolicyChecks(agent.middleware, caller)
    remarks = _remarks(policies, entries, agent)
    head = head_names(agent)
    rows = [_row(entry, policies, caller, head) for entry in entries]
    if as_json:
        faults = list(policies.faults)
        found = {"tools": rows, "faults": faults, "remarks": remarks, "failed": dict(agent.failed)}
        print(json.dumps(found, ensure_ascii=False))
        return
    out = console()
    print_table(out, _table(rows))
    for fault in policies.faults:
        out.print(f"nothing but reading is allowed: {fault}", style="bold red", markup=False)
    for remark in remarks:
        out.print(remark, style="yellow", markup=False)
    for source, reason in agent.failed.items():
        out.print(f"no tools from {source}: {reason}", style="yellow", markup=False)


def _row(
    entry: ToolEntry, policies: PolicyChecks, caller: Caller, head: Collection[str]
) -> dict[str, Any]:
    judged, hidden = policies.judge(entry, caller), policies.hide(entry)
    lines = [check.policy.effect_of(entry.exposed, entry.spec)[1] for check in policies.checks]
    return {
        "name": entry.exposed,
        "tier": entry.spec.tier,
        "source": entry.spec.source,
        "effect": judged.effect,
        "effect_line": next((line for line in lines if line), ""),
        "verdict": judged.action,
        "line": judged.line,
        "offered": entry.exposed in head and not hidden,
        "hidden": hidden,
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("tool", "tier", "effect", "given by", "verdict", "line")
    for row in rows:
        verdict = row["verdict"]
        words = _VERDICTS.get(verdict) or str(verdict)
        if verdict == "deny" and row["hidden"]:
            words += " (the model does not see it)"
        if style := _STYLES.get(verdict):
            words = f"[{style}]{words}[/]"
        effect = f"{row['effect']}s" if row["effect"] != "destructive" else "destroys"
        said = row["effect_line"] or row["source"]
        cells = [*map(escape, (row["name"], row["tier"], effect, said)), words, escape(row["line"])]
        table.add_row(*cells)
    return table


def _remarks(policies: PolicyChecks, entries: Sequence[ToolEntry], agent: CaalAgent) -> list[str]:
    some = " (not every source could be listed)" if agent.failed else ""
    remarks: list[str] = []
    for check in policies.checks:
        remarks += check.policy.warnings
        tools = [(entry.exposed, entry.spec) for entry in entries]
        remarks += taken_names(check.policy, tools)
        remarks += [f"{line}{some}" for line in unused_globs(check.policy, tools)]
    return remarks


async def try_call(
    settings: Settings,
    agent_name: str | None,
    name: str,
    arguments: Sequence[str],
    asked: AskedFor,
    *,
    as_json: bool,
) -> bool:
    """Say what each middleware would do with a call, run nothing, and return whether it may run.

    Raises:
        ConfigError: there is no such tool, or an option cannot be read.
    """
    caller = asked.caller()
    agent = chosen_agent(settings, agent_name)
    try:
        await agent.reload_tools()
        entry = find_entry(agent, name)
        given = typed_arguments(arguments, entry)
    finally:
        await agent.close_tools()
    misfit = ""
    try:
        check_arguments(entry, given)
    except InvalidArguments as error:
        misfit = str(error)
    request = ToolCallRequest(entry, "try", given, caller)
    steps = [] if misfit else _previews(agent.middleware, request)
    ends = bool(misfit) or any(shown and shown.verdict == "refused" for _, shown in steps)
    if as_json:
        rows = [{"by": by, **_told(shown)} for by, shown in steps]
        found = {"tool": entry.exposed, "arguments_error": misfit or None, "decisions": rows}
        print(json.dumps({**found, "may_run": not ends}, ensure_ascii=False))
        return not ends
    out = console()
    if misfit:
        out.print(f"the arguments do not fit: {misfit}", style="red", markup=False)
        return False
    table = Table("asked", "verdict", "line", "what is said")
    for by, shown in steps:
        told = _told(shown)
        table.add_row(*map(escape, (by, told["verdict"], told["line"], told["says"])))
    print_table(out, table)
    return not ends


def _previews(
    middleware: Sequence[CallMiddleware], request: ToolCallRequest
) -> list[tuple[str, Preview | None]]:
    """Ask each middleware in order, up to the first that refuses the call or answers for it."""
    found: list[tuple[str, Preview | None]] = []
    for each in filter(lambda each: each.judges, middleware):
        shown = each.preview(request)
        found.append((each.name, shown))
        if shown is not None and shown.verdict in ("refused", "dry_run"):
            break
    return found


def _told(shown: Preview | None) -> dict[str, str]:
    if shown is None:
        return {"verdict": "not known before the call", "line": "", "says": ""}
    return {"verdict": shown.verdict, "line": shown.line, "says": shown.says}
