"""Whether a model can tell from a workflow what it does and what it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from n8n.checks.finding import NOTES, Told
from n8n.core.workflow_tool import WorkflowTool
from n8n.discovery.node_inputs import may_read_all
from n8n.discovery.normalise import DESCRIPTION_CHARS


def notes(tool: WorkflowTool) -> Told:
    for problem in tool.problems:
        yield "warning", f"its notes: {problem}", f"{NOTES}, and mend that line"
    if tool.full_description == tool.title:
        yield (
            "warning",
            "it has no notes, so a model knows its name alone",
            f"{NOTES}: say in a sentence or two what it does and what it answers",
        )
        return
    if len(tool.full_description) > DESCRIPTION_CHARS:
        yield (
            "advice",
            f"its notes have {len(tool.full_description)} characters, and the prompt gets the "
            f"first {DESCRIPTION_CHARS}: {tool.description!r}",
            "put what it does into the first two sentences",
        )
    if not tool.examples:
        yield (
            "advice",
            "it has no example, and small models choose several times better with one",
            f'{NOTES}: Example: words a person says -> {{"name": "value"}}',
        )


def inputs(tool: WorkflowTool, nodes: list[Mapping[str, Any]]) -> Told:
    read = [name for name, origin in tool.origins.items() if origin in ("nodes", "pinned")]
    if read:
        listed = ", ".join(f"{name} (required, string)" for name in read)
        yield (
            "warning",
            f"its parameters are guessed from its nodes: {', '.join(read)}",
            f"{NOTES}: Parameters: {listed}.",
        )
    elif tool.input_schema.get("additionalProperties") is True and may_read_all(nodes):
        yield (
            "warning",
            "nothing tells which parameters it takes",
            f"{NOTES}: Parameters: name (required, string), or Parameters: none.",
        )
    written = [n for n, origin in tool.origins.items() if origin in ("schema", "param", "prose")]
    if written and not tool.input_schema.get("required"):
        yield (
            "advice",
            "none of its parameters is required, so a model may leave all of them out",
            f"write `required` behind those that it cannot do without, of {', '.join(written)}",
        )
    if tool.method in ("GET", "HEAD", "DELETE") and _reads_body(nodes):
        yield (
            "error",
            f"it takes {tool.method}, which has no body, but its nodes read json.body",
            "set HTTP Method to POST, or read $json.query",
        )


def _reads_body(nodes: list[Mapping[str, Any]]) -> bool:
    return bool(re.search(r"json\??\.body\b", str([n.get("parameters") for n in nodes])))
