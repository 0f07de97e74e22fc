"""Which recorded workflows the replayed instance has, and what it tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from n8n.core.json_values import mapping, mappings
from tests.recorded_n8n.replay.recordings import load_recordings


class ReplayedInstance:
    """The workflows as the recordings have them, of which some are active."""

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


def facts_of(workflow: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an API tells of a recorded workflow."""
    return mapping(workflow.get("rest")) or mapping(mapping(workflow.get("mcp")).get("preview"))


def workflow_id_of(workflow: Mapping[str, Any]) -> str:
    return str(facts_of(workflow)["id"])
