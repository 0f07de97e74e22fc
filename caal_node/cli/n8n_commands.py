"""`caal-node n8n check` and `caal-node n8n try`: workflows are checked, and one is tried.

A try is run as the agent would run it, and both of its ends are shown.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console

import n8n
from caal_node.cli.tools import resolve_tool, typed_arguments
from caal_node.config.settings import Settings
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError, InvalidArguments, ToolFailure
from caal_node.core.prompt_files import sentence
from caal_node.tools.pipeline import Pipeline, error_text
from caal_node.tools.redaction import Redaction
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.configured import n8n_tier
from caal_node.tools.sources.n8n import spec_of
from caal_node.tools.table import ToolEntry, ToolTable
from mcp_bridge.core.files import read_capped

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
"""A workflow of a hundred nodes is a tenth of a mebibyte."""
MAX_NAMED: Final = 6
"""Tools that are named where many share an advice."""
_STYLES: Final = {"error": "red", "warning": "yellow", "advice": "cyan"}

MODELS_OWN = "(what the model makes of that)"
"""This is printed where the person hears the model's own words."""


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


def _unknown(entry: ToolEntry, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each argument that no parameter takes; the webhook gets it all the same."""
    schema = entry.spec.parameters
    known = list(schema.get("properties", {}))
    if schema.get("additionalProperties"):
        return
    for key in arguments:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it takes none"
            yield f"{key} is not a parameter of {entry.exposed}; {has}"


async def try_workflow(
    settings: Settings, name: str, pairs: Sequence[str], *, as_json: bool
) -> bool:
    """Call the workflow and print what came of it; return whether the call worked.

    Raises:
        ConfigError: n8n cannot be asked, there is no such tool, or an argument is not `key=value`.
    """
    console = Console(highlight=False, stderr=as_json, soft_wrap=True)
    tier = n8n_tier(settings)
    try:
        listing = await tier.discover()
        if listing.failed:
            raise ConfigError(next(iter(listing.failed.values())))
        entry = resolve_tool(ToolTable(listing.specs), name)
        arguments = typed_arguments(pairs, entry)
        for fact in entry.spec.facts:
            console.print(fact, style="dim", markup=False)
        as_text = json.dumps(arguments, ensure_ascii=False)
        console.print(f"call     {name} {as_text}", markup=False)
        for line in _unknown(entry, arguments):
            console.print(f"         {line}", style="yellow", markup=False)

        def print_progress(progress: n8n.Progress) -> None:
            line = f"         still runs: {progress.elapsed_s:.0f} of {progress.deadline_s:.0f} s"
            line += f", {progress.step}" if progress.step else ""
            console.print(line, style="dim", markup=False)

        began = time.perf_counter()
        worked, fix = True, None
        try:
            redaction = Redaction(tier, settings)
            pipeline = Pipeline(
                ToolDataCache(), redaction=redaction, timeout_s=settings.tool_timeout
            )
            result = await pipeline.run(
                *(entry, "try", arguments),
                partial(tier.call, entry.spec, arguments, on_progress=print_progress),
            )
            verbatim = isinstance(result, VerbatimResult)
            for_model = result.value if verbatim else result
            heard = result.words if verbatim else MODELS_OWN
        except ToolFailure as failure:
            worked, for_model = False, error_text(failure)
            model_asks_again = isinstance(failure, InvalidArguments)
            heard = failure.words or (MODELS_OWN if model_asks_again else sentence(failure.spoken))
            cause = failure.__cause__
            fix = cause.fix if isinstance(cause, n8n.N8nError) else None
        took_ms = round((time.perf_counter() - began) * 1000)
    finally:
        await tier.aclose()
    if as_json:
        report = {"tool": name, "arguments": arguments, "ok": worked, "model": for_model}
        report |= {"person": heard, "fix": fix, "duration_ms": took_ms}
        print(json.dumps(report, ensure_ascii=False))
        return worked
    console.print(f"model    {for_model}", markup=False)
    console.print(f"person   {heard}", markup=False)
    if fix:
        console.print(f"fix     {fix}", markup=False)
    console.print(f"{'done' if worked else 'failed'} in {took_ms} ms", markup=False)
    return worked
