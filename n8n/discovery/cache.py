"""What one discovery leaves to the next, so that less has to be asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from n8n.core.workflow_tool import Workflow


@dataclass
class DiscoveryCache:
    """What is known of an instance. Workflows are found by their ids."""

    names: dict[str, str] = field(default_factory=dict[str, str])
    """The names of the tools, by the keys of their candidates."""
    details: dict[str, Workflow] = field(default_factory=dict[str, Workflow])
    """Workflows as they were last read one by one; those that were read longest ago come first."""
    pinned_data: dict[str, tuple[Any, Mapping[str, Any]]] = field(
        default_factory=dict[str, tuple[Any, Mapping[str, Any]]]
    )
    """Pinned data, with the state of the workflow that it belongs to."""
    versions: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Published versions by their ids, for an instance whose list does not have them inline."""
    workflows: list[Workflow] = field(default_factory=list[Workflow])
    """All that the last discovery read."""

    def forget_all_but(self, workflow_ids: set[str]) -> None:
        """Drop what is known of workflows that are gone."""
        for known in (self.details, self.pinned_data):
            for gone in known.keys() - workflow_ids:
                del known[gone]


def id_of(workflow: Workflow) -> str:
    return str(workflow.get("id"))


def version_of(workflow: Workflow) -> str | None:
    """Return the id of the published version; None where the instance does not tell it."""
    version = workflow.get("activeVersionId") or workflow.get("versionId")
    return str(version) if version else None


def state_of(workflow: Workflow) -> Any:
    """Return what changes whenever a workflow's pinned data may have changed."""
    return version_of(workflow), workflow.get("updatedAt")
