"""An n8n workflow as a tool, as models and users see it.

It is beside `sources/n8n.py`, as `caal-node n8n check` needs neither LiveKit nor a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import n8n
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.tools.effects import workflow_effect

SOURCE: Final = "n8n"
_ORIGINS: Final[Mapping[str, str]] = {
    "schema": "the notes' schema block",
    "param": "an @param line of the notes",
    "prose": "the parameters that the notes list",
    "path": "the webhook's path",
    "nodes": "an expression in the published nodes",
    "pinned": "the webhook's pinned data",
    "trigger": "the inputs of the sibling Execute Workflow Trigger",
}


def spec_of(tool: n8n.WorkflowTool, timeout_s: float | None = None) -> ToolSpec:
    """Return a workflow as a tool, as models and users see it."""
    return ToolSpec(
        tier="n8n",
        source=SOURCE,
        name=tool.name,
        wanted=tool.name,
        own_name=tool.title,
        description=tool.description,
        parameters=tool.input_schema,
        examples=tuple(Example(e.utterance, e.arguments) for e in tool.examples),
        details=tool.full_description if tool.full_description != tool.description else "",
        origins={name: _ORIGINS[origin] for name, origin in tool.origins.items()},
        facts=_facts(tool),
        effect=workflow_effect(tool.name, tool.method, tool.tags),
        annotations=tool.tags,
        timeout_s=timeout_s,
    )


def _facts(tool: n8n.WorkflowTool) -> tuple[str, ...]:
    """Return what the workflow's author may want to know, a line each."""
    auth = "" if tool.auth_kind == "none" else f", {tool.auth_kind} auth"
    facts = [
        f"workflow {tool.title!r}: {tool.method} /webhook/{tool.path}{auth}, "
        f"answers by {tool.response_mode}"
    ]
    if tool.spoken_field:
        facts.append(f"its field {tool.spoken_field!r} is spoken as it stands")
    if tool.takes_s:
        facts.append(f"takes up to {tool.takes_s:g} s")
    if tool.input_schema.get("additionalProperties") is True:
        facts.append("its notes list no parameters and its nodes read none: it takes anything")
    return (*facts, *tool.problems)
