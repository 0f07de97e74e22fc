"""Which inputs a workflow's pinned data shows: the request that its author froze while building it.

Only names and types are taken. Values may be anybody's, and are not for a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import Place
from n8n.notes.parameter import MAX_NAME_CHARS, Parameter

MAX_ITEMS = 5
"""Pinned items that are looked at; they are alike."""
_PLACES: Mapping[str, Place] = {"body": "body", "query": "query", "params": "path"}


def from_pins(workflow: Mapping[str, Any], node_name: str) -> dict[str, tuple[Place, Parameter]]:
    """Name -> where it came in, and its type, from what is pinned to the webhook node."""
    found: dict[str, tuple[Place, Parameter]] = {}
    for item in mappings(mapping(workflow.get("pinData")).get(node_name))[:MAX_ITEMS]:
        request = mapping(item.get("json"))
        for part, place in _PLACES.items():
            for name, value in mapping(request.get(part)).items():
                if 0 < len(name) <= MAX_NAME_CHARS:
                    found.setdefault(name, (place, Parameter(_shape(value), False, "pinned")))
    return found


def _shape(value: object) -> dict[str, Any]:
    # A whole number says nothing of whether 1.5 would do as well.
    kinds: dict[type, str] = {bool: "boolean", int: "number", float: "number", str: "string"}
    kinds |= {list: "array", dict: "object"}
    kind = kinds.get(type(value))
    return {"type": kind} if kind else {}
