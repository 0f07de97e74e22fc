"""Which recorded workflows the replayed instance has, and what it tells of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from caal_node.demo.n8n_replay.recordings import Tape
from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import WEBHOOK_TYPE

MAX_LIMIT = 200
"""Of search_workflows."""
DEFAULT_ORDER = "updatedAt:desc"
ORDERS = tuple(
    f"{key}:{way}" for key in ("updatedAt", "createdAt", "name") for way in ("desc", "asc")
)
_INVALID = "Input validation error: Invalid arguments for tool"


class UnknownTool(LookupError):
    """No such tool is at the MCP endpoint."""


class Instance:
    def __init__(self, tape: Tape, active: Iterable[str] | None) -> None:
        """Raises KeyError for a name that was not recorded."""
        self._tape = tape
        self._workflows = [*tape.workflows]
        self._on = {_id(w) for w in self._workflows if _told(w).get("active")}
        if active is not None:
            self._on.clear()
            self.switch(active, on=True)

    def switch(self, names: Iterable[str], *, on: bool) -> None:
        for name in names:
            (self._on.add if on else self._on.discard)(self.id_of(name))

    def add(self, workflow: Mapping[str, Any]) -> None:
        """A workflow that is no recording, in the shape of the public API: told of by both APIs,
        with webhooks that answer 501."""
        preview = {k: v for k, v in workflow.items() if k not in ("nodes", "connections")}
        details = {"workflow": {**workflow, "activeVersion": {"sameAsDraft": True}}}
        self._workflows.append(
            {"rest": dict(workflow), "mcp": {"preview": preview, "details": details}}
        )
        self._on.add(str(workflow["id"]))

    def rename(self, name: str, new: str) -> None:
        """Give a recorded workflow another name, as its author may; its webhook stays."""
        self._change(name, {"name": new})

    def publish(self, name: str, *, notes: str) -> None:
        """Publish another version of a recorded workflow, with other notes on its webhooks."""
        told = _told(self._at(name))
        version = {**(mapping(told.get("activeVersion")) or told)}
        version["nodes"] = [
            {**node, "notes": notes} if node.get("type") == WEBHOOK_TYPE else node
            for node in mappings(version.get("nodes"))
        ]
        version_id = f"{told.get('activeVersionId')}'"
        self._change(name, {"activeVersion": version, "activeVersionId": version_id})

    def _at(self, name: str) -> Mapping[str, Any]:
        workflow_id = self.id_of(name)
        return next(w for w in self._workflows if _id(w) == workflow_id)

    def _change(self, name: str, change: Mapping[str, Any]) -> None:
        """To what the public API tells; the MCP endpoint goes on as it was recorded."""
        old = self._at(name)
        new = {**old, "rest": {**mapping(old.get("rest")), **change}}
        self._workflows[self._workflows.index(old)] = new

    def is_active(self, name: str) -> bool:
        return self.id_of(name) in self._on

    def id_of(self, name: str) -> str:
        # The first of two namesakes is the one whose webhook was recorded.
        for workflow in self._workflows:
            if _told(workflow)["name"] == name:
                return _id(workflow)
        raise KeyError(f"no workflow named {name!r} was recorded")

    def has_unrecorded_hook(self, path: str) -> bool:
        """Whether an active workflow has a webhook here for which there is no reply."""
        active = (mapping(w.get("rest")) for w in self._workflows if _id(w) in self._on)
        versions = (mapping(w.get("activeVersion")) or w for w in active)
        nodes = (node for version in versions for node in mappings(version.get("nodes")))
        return any(mapping(node.get("parameters")).get("path") == path for node in nodes)

    def listing(self, *, active_only: bool, with_pins: bool = True) -> list[Mapping[str, Any]]:
        """`data` of GET /api/v1/workflows."""
        told = (w["rest"] for w in self._workflows if w["rest"] is not None)
        listed = [{**w, "active": w["id"] in self._on} for w in told]
        if not with_pins:
            listed = [{**w, "pinData": None} if w.get("pinData") else w for w in listed]
        return [w for w in listed if w["active"] or not active_only]

    def workflow(self, workflow_id: str) -> Mapping[str, Any] | None:
        """GET /api/v1/workflows/{id}"""
        return next((w for w in self.listing(active_only=False) if w["id"] == workflow_id), None)

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of tools/call, as 2.41.1 gives it. Raises UnknownTool."""
        if name == "search_workflows":
            return self._search(arguments)
        if name == "get_workflow_details":
            return self._details(arguments)
        raise UnknownTool(f"Tool {name} not found")

    def _search(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        limit = int(arguments.get("limit", MAX_LIMIT))
        if limit > MAX_LIMIT:
            return _refusal(self._tape.refusals["limit"])
        if limit < 1:
            return _refusal(f"{_INVALID} search_workflows: limit: Number must be greater than 0")
        order = str(arguments.get("sortBy", DEFAULT_ORDER))
        if order not in ORDERS:
            wanted = " | ".join(f"'{one}'" for one in ORDERS)
            said = f"sortBy: Invalid enum value. Expected {wanted}, received '{order}'"
            return _refusal(f"{_INVALID} search_workflows: {said}")
        key, _, direction = order.partition(":")
        told = [mapping(w["mcp"])["preview"] for w in self._workflows if w["mcp"] is not None]
        told.sort(key=lambda w: str(w.get(key)), reverse=direction == "desc")
        data = [{**w, "active": w["id"] in self._on} for w in told[:limit]]
        return _result({"data": data, "count": len(told)})

    def _details(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if "workflowId" not in arguments:
            return _refusal(f"{_INVALID} get_workflow_details: workflowId: Required")
        workflow_id = str(arguments["workflowId"])
        found = next((w for w in self._workflows if _id(w) == workflow_id and w["mcp"]), None)
        if found is None:
            return _refusal(self._tape.refusals["unknown_workflow"])
        details = mapping(found["mcp"]).get("details")
        if details is None:
            return _refusal(self._tape.refusals["not_available_in_mcp"])
        workflow = mapping(mapping(details)["workflow"])
        if workflow_id not in self._on:
            workflow = {**workflow, "active": False, "activeVersionId": None, "activeVersion": None}
        return _result({**mapping(details), "workflow": workflow})


def _told(workflow: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(workflow.get("rest")) or mapping(mapping(workflow.get("mcp")).get("preview"))


def _id(workflow: Mapping[str, Any]) -> str:
    return str(_told(workflow)["id"])


def _result(structured: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
    content = [{"type": "text", "text": text}]
    return {"content": content, "structuredContent": structured}


def _refusal(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}
