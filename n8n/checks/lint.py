"""What keeps a workflow from being a good voice tool, and how its author mends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from n8n.checks import answers as lint_answers
from n8n.checks import inputs as lint_inputs
from n8n.checks.finding import Finding
from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import Skipped
from n8n.discovery.normalise import Draft, normalise, published_nodes, title_of

Workflow: TypeAlias = Mapping[str, Any]
"""As n8n's editor exports it, or as its APIs tell it."""
_MENDS: Final[Mapping[str, str]] = {
    "not_available_in_mcp": "switch on Settings > Available in MCP, if it is meant to be spoken to",
    "no_webhook": "begin it with a Webhook node; forms, chats and schedules cannot be called",
    "path_is_an_expression": "give its Webhook node a fixed path",
    "unpublished": "publish it, or give N8N_API_KEY, which shows published versions",
    "inactive": "publish it",
    "archived": "take it out of the archive",
}


def lint(workflow: Workflow, slowest_s: float | None = None) -> tuple[Finding, ...]:
    """Look at one workflow as the editor exports it or an API tells it.

    `slowest_s`: how long its slowest known run took. Whether it is active does not matter here.
    """
    looked_at = {**workflow, "active": True, "isArchived": False}
    title = title_of(workflow)
    made = normalise(looked_at)
    if isinstance(made, Skipped):
        return (Finding("error", title, "workflow", made.message, _MENDS[made.reason]),)
    nodes = published_nodes(looked_at) or []
    found: list[Finding] = []
    for draft in made:
        found += _of_tool(title, draft, nodes, slowest_s)
    return tuple(found)


def _of_tool(
    title: str, draft: Draft, nodes: list[Mapping[str, Any]], slowest_s: float | None
) -> Iterator[Finding]:
    tool = draft.tool
    checks = (
        lint_inputs.notes(tool),
        lint_inputs.inputs(tool, nodes),
        lint_answers.answer(tool, nodes),
        lint_answers.time(tool, nodes, slowest_s),
        lint_answers.auth(tool, nodes),
    )
    for check in checks:
        for level, message, mend in check:
            yield Finding(level, title, tool.path, message, mend)


def workflows_in(exported: object) -> list[Workflow]:
    """The workflows of a file: one, a list of them, or an answer of the public API."""
    told = mapping(exported)
    if "nodes" in told:
        return [told]
    if "workflow" in told:
        return workflows_in(told["workflow"])
    return [w for w in mappings(told.get("data") if told else exported) if "nodes" in w]
