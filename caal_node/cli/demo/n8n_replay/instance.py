"""Which recorded workflows the replayed instance has, and what it tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from caal_node.cli.demo.n8n_replay.recordings import load_recordings
from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import WEBHOOK_TYPE


class ReplayedInstance:
    """The workflows as the recordings have them, until somebody changes them."""

    def __init__(self, active: Iterable[str] | None) -> None:
        """`active` are the names of the active workflows, None for those that were recorded so.

        Raises KeyError for a name that was not recorded.
        """
        self._workflows = [*load_recordings().workflows]
        self._active = {_id(w) for w in self._workflows if _facts(w).get("active")}
        if active is not None:
            self._active.clear()
            self.switch(active, on=True)

    def switch(self, names: Iterable[str], *, on: bool) -> None:
        """Activate or deactivate workflows."""
        for name in names:
            (self._active.add if on else self._active.discard)(self.id_of(name))

    def add(self, workflow: Mapping[str, Any]) -> None:
        """Add a workflow that is no recording, in the form of the public API.

        Both APIs tell of it, and its webhooks answer 501.
        """
        preview = {k: v for k, v in workflow.items() if k not in ("nodes", "connections")}
        details = {"workflow": {**workflow, "activeVersion": {"sameAsDraft": True}}}
        mcp = {"preview": preview, "details": details}
        self._workflows.append({"rest": dict(workflow), "mcp": mcp})
        self._active.add(str(workflow["id"]))

    def rename(self, name: str, new: str) -> None:
        """Give a recorded workflow another name, as its author may; its webhook stays."""
        self._change(name, {"name": new})

    def publish(self, name: str, *, notes: str) -> None:
        """Publish another version of a recorded workflow, with other notes on its webhooks."""
        workflow_id = self.id_of(name)
        facts = next(_facts(w) for w in self._workflows if _id(w) == workflow_id)
        version = {**(mapping(facts.get("activeVersion")) or facts)}
        version["nodes"] = [
            {**node, "notes": notes} if node.get("type") == WEBHOOK_TYPE else node
            for node in mappings(version.get("nodes"))
        ]
        version_id = f"{facts.get('activeVersionId')}'"
        self._change(name, {"activeVersion": version, "activeVersionId": version_id})

    def is_active(self, name: str) -> bool:
        return self.id_of(name) in self._active

    def id_of(self, name: str) -> str:
        """Return a workflow's id. Raises KeyError for a name that was not recorded."""
        # The first of two namesakes is the one whose webhook was recorded.
        for workflow in self._workflows:
            if _facts(workflow)["name"] == name:
                return _id(workflow)
        raise KeyError(f"no workflow named {name!r} was recorded")

    def has_unrecorded_webhook(self, path: str) -> bool:
        """Whether an active workflow has a webhook here for which there is no reply."""
        active = (mapping(w.get("rest")) for w in self._workflows if _id(w) in self._active)
        versions = (mapping(w.get("activeVersion")) or w for w in active)
        nodes = (node for version in versions for node in mappings(version.get("nodes")))
        return any(mapping(node.get("parameters")).get("path") == path for node in nodes)

    def workflows(self) -> list[dict[str, Any]]:
        """Return the workflows as the public API tells of them."""
        told = (w["rest"] for w in self._workflows if w["rest"] is not None)
        return [{**w, "active": w["id"] in self._active} for w in told]

    def previews(self) -> Iterator[dict[str, Any]]:
        """Yield the workflows as the MCP server lists them."""
        for workflow in self._workflows:
            if workflow["mcp"] is not None:
                yield {**workflow["mcp"]["preview"], "active": _id(workflow) in self._active}

    def details(self, workflow_id: str) -> dict[str, Any] | None:
        """Return a workflow as the MCP server details it, None if it may not.

        Raises LookupError for an unknown one.
        """
        found = [w for w in self._workflows if _id(w) == workflow_id and w["mcp"]]
        details = found[0]["mcp"].get("details")
        if details is None:
            return None
        workflow = mapping(details["workflow"])
        if workflow_id not in self._active:
            workflow = {**workflow, "active": False, "activeVersionId": None, "activeVersion": None}
        return {**details, "workflow": workflow}

    def _change(self, name: str, change: Mapping[str, Any]) -> None:
        """Change what the public API tells; the MCP server goes on as it was recorded."""
        workflow_id = self.id_of(name)
        self._workflows = [
            {**w, "rest": {**mapping(w["rest"]), **change}} if _id(w) == workflow_id else w
            for w in self._workflows
        ]


def _facts(workflow: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(workflow.get("rest")) or mapping(mapping(workflow.get("mcp")).get("preview"))


def _id(workflow: Mapping[str, Any]) -> str:
    return str(_facts(workflow)["id"])
