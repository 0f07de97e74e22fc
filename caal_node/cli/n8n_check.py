"""`caal-node n8n check`: what keeps workflows from being good voice tools, and how to fix it."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

import n8n
from caal_node.config.settings import Settings
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.workflow_spec import spec_of
from mcp_bridge.core.files import read_capped

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
"""A workflow of a hundred nodes is a tenth of a mebibyte."""
MAX_NAMED: Final = 6
"""Tools that are named where many share an advice."""
_STYLES: Final = {"error": "red", "warning": "yellow", "advice": "cyan"}


def check_files(files: Sequence[Path], *, as_json: bool) -> bool:
    """Print the tools and the findings; return whether there is nothing but advice.

    A file that cannot be read or holds no workflow is told of behind those that do.

    Raises:
        ConfigError: none of them holds a workflow.
    """
    workflows, broken = list[n8n.Workflow](), list[str]()
    for file in _in_folders(files):
        try:
            workflows += _workflows(file)
        except ConfigError as error:
            broken.append(str(error))
    if not workflows:
        raise ConfigError("\n".join(broken))
    found = n8n.check(workflows)
    return _print_check(found, len(workflows), broken, as_json=as_json) and not broken


async def check_instance(settings: Settings, *, as_json: bool) -> bool:
    """Do the same for every active workflow of N8N_URL, and name those that are no tools."""
    from caal_node.tools.sources.configured import n8n_tier  # with it come LiveKit and the MCP SDK

    try:
        async with n8n_tier(settings).workflows as tools:
            found = await tools.discover()
            findings = await tools.lint()
    except n8n.N8nError as error:
        raise ConfigError(str(error)) from error
    # What begins with a schedule or a form was never meant to be spoken to.
    own = {s.title for s in found.skipped if s.reason == "no_webhook"}
    findings = tuple(each for each in findings if each.tool or each.workflow not in own)
    titles = {finding.workflow for finding in findings}
    others = [
        f"{s.title}: {s.message}"
        for s in found.skipped
        if s.title not in titles and s.reason not in ("inactive", "archived")
    ]
    count = len({tool.workflow_id for tool in found.tools})
    checked = n8n.Check(found.tools, findings)
    return _print_check(checked, count, (*others, *found.notices), as_json=as_json)


def _in_folders(files: Sequence[Path]) -> Iterator[Path]:
    """Yield the JSON files in place of each folder."""
    for file in files:
        inside = sorted(file.glob("*.json"))
        if file.is_dir() and not inside:
            raise ConfigError(f"{file}: there is no .json file in this folder.")
        yield from inside or (file,)


def _workflows(file: Path) -> Sequence[n8n.Workflow]:
    try:
        data = read_capped(file, MAX_FILE_BYTES)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}).") from error
    except ValueError:
        said = f"{file}: larger than {MAX_FILE_BYTES >> 20} MiB. Is it a workflow?"
        raise ConfigError(said) from None
    try:
        found = n8n.workflows_in(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not JSON ({error}). Export the workflow once more.") from error
    if not found:
        raise ConfigError(f"{file}: no workflow in it. In n8n's editor: ..., Download.")
    return found


def _print_check(found: n8n.Check, count: int, others: Sequence[str], *, as_json: bool) -> bool:
    passed = all(finding.level == "advice" for finding in found.findings)
    entries = {entry.spec.name: entry for entry in ToolTable(map(spec_of, found.tools))}
    if as_json:
        rows = [dataclasses.asdict(finding) for finding in found.findings]
        tools = [dict(entry.schema["function"]) for entry in entries.values()]
        report = {"workflows": count, "tools": tools, "findings": rows, "others": list(others)}
        print(json.dumps(report, ensure_ascii=False))
        return passed
    console = Console(highlight=False, soft_wrap=True)
    shared = _shared_advice(found.findings)
    for tool in found.tools:
        console.print(tool.title, style="bold", markup=False)
        _print_tool(console, entries[tool.name])
        for finding in found.findings:
            if finding.tool == tool.name and finding.message not in shared:
                _print_finding(console, finding, f"{finding.where}: ")
    for finding in found.findings:
        if not finding.tool:
            console.print(finding.workflow, style="bold", markup=False)
            _print_finding(console, finding, f"{finding.where}: ")
    for finding, tools in shared.values():
        console.print(_some(tools, len(found.tools)), style="bold", markup=False)
        _print_finding(console, finding, "")
    for other in others:
        console.print(other, style="dim", markup=False)
    levels = Counter(finding.level for finding in found.findings)
    advice_count = len({f.message for f in found.findings if f.level == "advice"})
    workflows = counted(count, "workflow")
    errors = counted(levels["error"], "error")
    warnings = counted(levels["warning"], "warning")
    advice = counted(advice_count, "piece of advice", "pieces of advice")
    console.print(f"{workflows}: {errors}, {warnings}, {advice}", markup=False)
    return passed


def _shared_advice(
    findings: Sequence[n8n.Finding],
) -> dict[str, tuple[n8n.Finding, list[str]]]:
    """Return the advice that holds for more than one tool, with their names, by its message."""
    tools: dict[str, list[str]] = {}
    for finding in findings:
        if finding.level == "advice":
            tools.setdefault(finding.message, []).append(finding.tool)
    first = {finding.message: finding for finding in reversed(findings)}
    return {said: (first[said], names) for said, names in tools.items() if len(names) > 1}


def _some(names: Sequence[str], of: int) -> str:
    """Say which tools are meant: `all 7 tools`, or `3 of 7 tools: a, b, c`."""
    if len(names) == of:
        return f"all {counted(of, 'tool')}"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{len(names)} of {counted(of, 'tool')}: {', '.join(names[:MAX_NAMED])}{more}"


def _print_tool(console: Console, entry: ToolEntry) -> None:
    """Print a tool as the model reads it: its name, description and schema, and its examples."""
    shown = json.dumps(entry.schema["function"], ensure_ascii=False)
    console.print(f"  model    {shown}", markup=False, style="dim")
    for example in entry.spec.examples:
        arguments = json.dumps(dict(example.arguments), ensure_ascii=False)
        console.print(f"  example  {example.utterance} -> {arguments}", markup=False, style="dim")


def _print_finding(console: Console, finding: n8n.Finding, where: str) -> None:
    console.print(f"  {finding.level:8}", style=_STYLES[finding.level], end=" ")
    console.print(f"{where}{finding.message}", markup=False)
    console.print(f"           fix: {finding.fix}", markup=False, style="dim")
