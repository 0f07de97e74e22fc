"""`caal-node n8n check`: what could be better about workflows, in files or in an instance."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

import n8n
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.tools.sources.configured import n8n_tier

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
"""A workflow of a hundred nodes is a tenth of a mebibyte."""
_STYLES: Final = {"error": "red", "warning": "yellow", "advice": "cyan"}


def check_files(files: Sequence[Path], *, as_json: bool) -> bool:
    """Print the findings; return whether there is nothing but advice.

    Raises:
        ConfigError: a file cannot be read, or holds no workflow.
    """
    workflows = [w for file in files for w in _workflows(file)]
    findings = tuple(f for w in workflows for f in n8n.lint(w))
    return _print_findings(findings, len(workflows), (), as_json=as_json)


async def check_instance(settings: Settings, *, as_json: bool) -> bool:
    """Do the same for every active workflow of N8N_URL, and name those that are no tools."""
    try:
        async with n8n_tier(settings).workflows as tools:
            found = await tools.discover()
            findings = await tools.lint()
    except n8n.N8nError as error:
        raise ConfigError(str(error)) from error
    titles = {finding.workflow for finding in findings}
    others = [
        f"{s.title}: {s.message}"
        for s in found.skipped
        if s.title not in titles and s.reason not in ("inactive", "archived")
    ]
    count = len({tool.workflow_id for tool in found.tools})
    return _print_findings(findings, count, (*others, *found.notices), as_json=as_json)


def _workflows(file: Path) -> Sequence[n8n.Workflow]:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{file}: larger than {MAX_FILE_BYTES >> 20} MiB. Is it a workflow?")
        found = n8n.workflows_in(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: no JSON ({error}). Export the workflow once more.") from error
    if not found:
        raise ConfigError(f"{file}: no workflow in it. In n8n's editor: ..., Download.")
    return found


def _print_findings(
    findings: Sequence[n8n.Finding], count: int, others: Sequence[str], *, as_json: bool
) -> bool:
    passed = all(finding.level == "advice" for finding in findings)
    if as_json:
        rows = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({"workflows": count, "findings": rows, "others": list(others)}))
        return passed
    console = Console(highlight=False, soft_wrap=True)
    titles = dict.fromkeys(finding.workflow for finding in findings)
    for title in titles:
        console.print(title, style="bold", markup=False)
        for finding in findings:
            if finding.workflow == title:
                console.print(f"  {finding.level:8}", style=_STYLES[finding.level], end=" ")
                console.print(f"{finding.where}: {finding.message}", markup=False)
                console.print(f"           mend: {finding.mend}", markup=False, style="dim")
    for other in others:
        console.print(other, style="dim", markup=False)
    levels = Counter(finding.level for finding in findings)
    workflows = _count(count, "workflow", "workflows")
    errors = _count(levels["error"], "error", "errors")
    warnings = _count(levels["warning"], "warning", "warnings")
    advice = _count(levels["advice"], "piece of advice", "pieces of advice")
    console.print(f"{workflows}: {errors}, {warnings}, {advice}", markup=False)
    return passed


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
