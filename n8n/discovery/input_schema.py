"""A workflow's input schema, from the best that is known about each parameter.

What the author wrote in the notes is the whole truth if there is anything. Else the published nodes
tell the names that they read, else the webhook's pinned data the names that once came in, else a
sibling Execute Workflow Trigger its typed inputs. Placeholders of the path are always there and
required: without them there is no URL. Otherwise a parameter is required only if the author says
so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import (
    BODILESS_METHODS,
    Nodes,
    ParameterLocation,
    ParameterOrigin,
    placeholders,
)
from n8n.discovery.nodes import FoundInputs, WebhookNode, inputs_read_by
from n8n.notes.parameter import MAX_NAME_CHARS, Parameter, type_schema
from n8n.notes.parser import Notes

TRIGGER_TYPE = "n8n-nodes-base.executeWorkflowTrigger"
MAX_PARAMETERS = 40
"""A model does not fill in more; a workflow beyond it is misread, or no tool for a voice."""
MAX_PINNED_ITEMS = 5
"""How many pinned items are looked at; they are alike."""
_REQUEST_PARTS: Mapping[str, ParameterLocation] = {
    "body": "body",
    "query": "query",
    "params": "path",
}
_JSON_TYPES: Mapping[type, str] = {
    bool: "boolean",
    # A whole number does not say whether 1.5 would do as well.
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True)
class ToolInputs:
    """The parameters of a tool: what they are, where they travel, where they were found."""

    schema: Mapping[str, Any]
    locations: Mapping[str, ParameterLocation]
    origins: Mapping[str, ParameterOrigin]


def build_inputs(
    webhook: WebhookNode, notes: Notes, nodes: Nodes, workflow: Mapping[str, Any]
) -> ToolInputs:
    """Put together what the notes, the nodes and the workflow tell of a webhook's inputs."""
    read = {} if notes.takes_nothing else inputs_read_by(nodes)
    if not (notes.parameters or notes.takes_nothing or read):
        read = _pinned_inputs(workflow, webhook.node_name)
    by_nodes = {name: parameter for name, (_, parameter) in read.items()}
    known = {name: _with_type(p, by_nodes.get(name)) for name, p in notes.parameters.items()}
    if not notes.takes_nothing:
        known = known or by_nodes or _trigger_inputs(nodes)
    in_path = placeholders(webhook.path or "")
    for name in in_path:
        written = notes.parameters.get(name) or Parameter({}, True, "path")
        known[name] = Parameter({"type": "string", **written.schema}, True, written.origin)
    # What a node reads from `params` is no input unless the path has a place for it.
    known = {n: p for n, p in known.items() if n in in_path or read.get(n, ("",))[0] != "path"}
    known = dict(list(known.items())[:MAX_PARAMETERS])
    usual: ParameterLocation = "query" if webhook.method in BODILESS_METHODS else "body"
    locations: dict[str, ParameterLocation] = {}
    for name in known:
        location = "path" if name in in_path else read[name][0] if name in read else usual
        if location != usual and not (location == "body" and usual == "query"):
            locations[name] = location
    schema = _object_schema(known, is_open=not (known or notes.takes_nothing))
    return ToolInputs(schema, locations, {name: p.origin for name, p in known.items()})


def _with_type(written: Parameter, read: Parameter | None) -> Parameter:
    """Give a parameter that the author only named the type that the nodes' fallback tells."""
    if read is None or "type" in written.schema or "enum" in written.schema:
        return written
    return Parameter({**read.schema, **written.schema}, written.required, written.origin)


def _object_schema(known: Mapping[str, Parameter], *, is_open: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: dict(p.schema) for name, p in known.items()},
    }
    if required := [name for name, p in known.items() if p.required]:
        schema["required"] = required
    if is_open:
        schema["additionalProperties"] = True
    return schema


def _pinned_inputs(workflow: Mapping[str, Any], node_name: str) -> FoundInputs:
    """Return the inputs of the request that the author froze while building the workflow.

    Only names and types are taken. Values may be anybody's, and are not for a prompt.
    """
    found: FoundInputs = {}
    for item in mappings(mapping(workflow.get("pinData")).get(node_name))[:MAX_PINNED_ITEMS]:
        request = mapping(item.get("json"))
        for part, location in _REQUEST_PARTS.items():
            for name, value in mapping(request.get(part)).items():
                if 0 < len(name) <= MAX_NAME_CHARS:
                    kind = _JSON_TYPES.get(value.__class__)
                    schema = {"type": kind} if kind else {}
                    found.setdefault(name, (location, Parameter(schema, False, "pinned")))
    return found


def _trigger_inputs(nodes: Nodes) -> dict[str, Parameter]:
    """Return the typed inputs of a sibling trigger, by which another workflow calls this one."""
    found: dict[str, Parameter] = {}
    for node in nodes:
        if node.get("type") != TRIGGER_TYPE or node.get("disabled"):
            continue
        inputs = mapping(mapping(node.get("parameters")).get("workflowInputs"))
        for field in mappings(inputs.get("values")):
            name = field.get("name")
            # n8n leaves the type out where it is the default, a string.
            schema = type_schema(str(field.get("type") or "string"))
            if isinstance(name, str) and name:
                found[name] = Parameter(schema or {}, False, "trigger")
    return found
