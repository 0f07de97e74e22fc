"""A workflow's input schema, from the best that is known about each parameter.

What the author wrote in the notes is the whole truth where there is any. Else the published nodes
tell the names they read, else the webhook's pinned data the names that once came in, else a sibling
Execute Workflow Trigger its typed inputs. Placeholders of
the path are always there, and required: without them there is no URL. Otherwise a parameter is
required only where the author says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import Origin, Place
from n8n.discovery.node_inputs import scan
from n8n.discovery.pinned_data import from_pins
from n8n.discovery.webhook_node import Webhook
from n8n.notes.parameter import Parameter, type_schema
from n8n.notes.parser import Notes

TRIGGER_TYPE = "n8n-nodes-base.executeWorkflowTrigger"
MAX_PARAMETERS = 40
"""More than a model fills in; a workflow beyond it is misread, or no tool for a voice."""


@dataclass(frozen=True, slots=True)
class Inputs:
    schema: Mapping[str, Any]
    places: Mapping[str, Place]
    origins: Mapping[str, Origin]


def build_inputs(
    webhook: Webhook,
    notes: Notes,
    nodes: list[Mapping[str, Any]],
    workflow: Mapping[str, Any],
) -> Inputs:
    read = {} if notes.takes_nothing else scan(nodes)
    if not (notes.parameters or notes.takes_nothing or read):
        read = from_pins(workflow, webhook.node_name)
    told = {name: parameter for name, (_, parameter) in read.items()}
    known = {name: _typed(p, told.get(name)) for name, p in notes.parameters.items()}
    if not notes.takes_nothing:
        known = known or told or _triggers(nodes)
    in_path = webhook.placeholders
    for name in in_path:
        written = notes.parameters.get(name) or Parameter({}, True, "path")
        known[name] = Parameter({"type": "string", **written.schema}, True, written.origin)
    # What a node reads from `params` is no input unless the path has a place for it.
    known = {n: p for n, p in known.items() if n in in_path or read.get(n, ("",))[0] != "path"}
    known = dict(list(known.items())[:MAX_PARAMETERS])
    usual: Place = "query" if webhook.method in ("GET", "HEAD", "DELETE") else "body"
    places: dict[str, Place] = {}
    for name in known:
        place = "path" if name in in_path else read[name][0] if name in read else usual
        if place != usual and not (place == "body" and usual == "query"):
            places[name] = place
    schema = _schema(known, is_open=not (known or notes.takes_nothing))
    return Inputs(schema, places, {name: p.origin for name, p in known.items()})


def _typed(written: Parameter, told: Parameter | None) -> Parameter:
    """A parameter that the author only named has the type that the nodes' fallback tells."""
    if told is None or "type" in written.schema or "enum" in written.schema:
        return written
    return Parameter({**told.schema, **written.schema}, written.required, written.origin)


def _schema(known: Mapping[str, Parameter], *, is_open: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: dict(p.schema) for name, p in known.items()},
    }
    if required := [name for name, p in known.items() if p.required]:
        schema["required"] = required
    if is_open:
        schema["additionalProperties"] = True
    return schema


def _triggers(nodes: list[Mapping[str, Any]]) -> dict[str, Parameter]:
    """The typed inputs of a sibling trigger: the same workflow, called by another workflow."""
    found: dict[str, Parameter] = {}
    for node in nodes:
        if node.get("type") != TRIGGER_TYPE or node.get("disabled"):
            continue
        inputs = mapping(mapping(node.get("parameters")).get("workflowInputs"))
        for field in mappings(inputs.get("values")):
            name = field.get("name")
            # n8n leaves the type out where it is the default, a string.
            kind = type_schema(str(field.get("type") or "string"))
            if isinstance(name, str) and name:
                found[name] = Parameter(kind or {}, False, "trigger")
    return found
