"""Which recorded workflows the instance has, and what it tells of them.

A test may change them as their authors would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import WEBHOOK_TYPE
from tests.recorded_n8n.recordings import load_recordings


class RecordedInstance:
    """The workflows as the recordings have them, until a test changes them; some are active."""

    def __init__(self, active: Iterable[str] | None) -> None:
        """`active` are the names of the active workflows, None for those that were recorded so.

        Raises KeyError for a name that was not recorded.
        """
        self.recorded = [*load_recordings().workflows]
        self.active = {workflow_id_of(w) for w in self.recorded if facts_of(w).get("active")}
        if active is not None:
            self.active.clear()
            self.switch(active, on=True)

    def switch(self, names: Iterable[str], *, on: bool) -> None:
        """Activate or deactivate workflows."""
        for name in names:
            (self.active.add if on else self.active.discard)(self.id_of(name))

    def is_active(self, name: str) -> bool:
        return self.id_of(name) in self.active

    def id_of(self, name: str) -> str:
        """Return a workflow's id. Raises KeyError for a name that was not recorded."""
        # The first of two namesakes is the one whose webhook was recorded.
        for workflow in self.recorded:
            if facts_of(workflow)["name"] == name:
                return workflow_id_of(workflow)
        raise KeyError(f"no workflow named {name!r} was recorded")

    def has_unrecorded_webhook(self, path: str) -> bool:
        """Whether an active workflow has a webhook here for which there is no reply."""
        active = (mapping(w.get("rest")) for w in self.recorded if workflow_id_of(w) in self.active)
        versions = (mapping(w.get("activeVersion")) or w for w in active)
        nodes = (node for version in versions for node in mappings(version.get("nodes")))
        return any(mapping(node.get("parameters")).get("path") == path for node in nodes)

    def workflows(self) -> list[dict[str, Any]]:
        """Return the workflows as the public API tells of them."""
        told = (w["rest"] for w in self.recorded if w["rest"] is not None)
        return [{**w, "active": w["id"] in self.active} for w in told]

    def add(self, workflow: Mapping[str, Any]) -> None:
        """Add a workflow that is no recording, in the form of the public API.

        Both APIs tell of it, and its webhooks answer 501.
        """
        preview = {k: v for k, v in workflow.items() if k not in ("nodes", "connections")}
        details = {"workflow": {**workflow, "activeVersion": {"sameAsDraft": True}}}
        mcp = {"preview": preview, "details": details}
        self.recorded.append({"rest": dict(workflow), "mcp": mcp})
        self.active.add(str(workflow["id"]))

    def rename(self, name: str, new: str) -> None:
        """Give a recorded workflow another name, as its author may; its webhook stays."""
        self._change(name, {"name": new})

    def publish(self, name: str, *, notes: str) -> None:
        """Publish another version of a recorded workflow, with other notes on its webhooks."""
        workflow_id = self.id_of(name)
        facts = next(facts_of(w) for w in self.recorded if workflow_id_of(w) == workflow_id)
        version = {**(mapping(facts.get("activeVersion")) or facts)}
        version["nodes"] = [
            {**node, "notes": notes} if node.get("type") == WEBHOOK_TYPE else node
            for node in mappings(version.get("nodes"))
        ]
        version_id = f"{facts.get('activeVersionId')}'"
        self._change(name, {"activeVersion": version, "activeVersionId": version_id})

    def previews(self) -> Iterator[dict[str, Any]]:
        """Yield the workflows as the MCP server lists them."""
        for workflow in self.recorded:
            if workflow["mcp"] is not None:
                yield {
                    **workflow["mcp"]["preview"],
                    "active": workflow_id_of(workflow) in self.active,
                }

    def details(self, workflow_id: str) -> dict[str, Any] | None:
        """Return a workflow as the MCP server details it, None if it may not.

        Raises LookupError for an unknown one.
        """
        found = [w for w in self.recorded if workflow_id_of(w) == workflow_id and w["mcp"]]
        details = found[0]["mcp"].get("details")
        if details is None:
            return None
        workflow = mapping(details["workflow"])
        if workflow_id not in self.active:
            workflow = {**workflow, "active": False, "activeVersionId": None, "activeVersion": None}
        return {**details, "workflow": workflow}

    def _change(self, name: str, change: Mapping[str, Any]) -> None:
        """Change what the public API tells; the MCP server goes on as it was recorded."""
        workflow_id = self.id_of(name)
        self.recorded = [
            {**w, "rest": {**mapping(w["rest"]), **change}}
            if workflow_id_of(w) == workflow_id
            else w
            for w in self.recorded
        ]


def facts_of(workflow: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an API tells of a recorded workflow."""
    return mapping(workflow.get("rest")) or mapping(mapping(workflow.get("mcp")).get("preview"))


def workflow_id_of(workflow: Mapping[str, Any]) -> str:
    return str(facts_of(workflow)["id"])
