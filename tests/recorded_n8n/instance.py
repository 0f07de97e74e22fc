"""The replayed instance, changed as its authors would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import WEBHOOK_TYPE
from tests.recorded_n8n.replay.instance import ReplayedInstance, facts_of, workflow_id_of


class ChangingInstance(ReplayedInstance):
    """The recorded workflows, until a test changes them; its MCP server tells of them too."""

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
