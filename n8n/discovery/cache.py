"""What one discovery leaves to the next, so that less has to be asked and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from n8n.core.json_values import mapping
from n8n.core.workflow_tool import Skipped
from n8n.discovery.normalise import Draft, normalise

Drafts: TypeAlias = list[Draft] | Skipped


@dataclass(frozen=True, slots=True)
class Seen:
    """A workflow's details as they were last read."""

    workflow: Mapping[str, Any]
    updated_at: str
    """Of its preview, then."""
    look: int
    """The number of the discovery that read them."""


@dataclass
class Known:
    names: dict[str, str] = field(default_factory=dict[str, str])
    details: dict[str, Seen] = field(default_factory=dict[str, Seen])
    """By workflow id."""
    look: int = 0
    """Discoveries so far."""
    pins: dict[str, tuple[Any, Mapping[str, Any]]] = field(
        default_factory=dict[str, tuple[Any, Mapping[str, Any]]]
    )
    """Pinned data by workflow id, with the state of the workflow that it belongs to."""
    versions: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Published versions by their id, where the list does not have them inline."""
    workflows: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    """All that the last discovery read."""
    _drafts: dict[str, tuple[Any, Drafts]] = field(default_factory=dict[str, tuple[Any, Drafts]])

    def normalised(self, workflow: Mapping[str, Any]) -> Drafts:
        """`normalise`, which is done once for each version of a workflow."""
        workflow_id, state = str(workflow.get("id")), state_of(workflow)
        last = self._drafts.get(workflow_id)
        if state is not None and last is not None and last[0] == state:
            return last[1]
        made = normalise(workflow)
        self._drafts[workflow_id] = (state, made)
        return made

    def forget_all_but(self, workflow_ids: set[str]) -> None:
        for kept in (self.details, self.pins, self._drafts):
            for gone in kept.keys() - workflow_ids:
                del kept[gone]


def version_of(workflow: Mapping[str, Any]) -> str | None:
    """The id of the published version; None where the instance does not tell."""
    version = workflow.get("activeVersionId") or workflow.get("versionId")
    return str(version) if version else None


def state_of(workflow: Mapping[str, Any]) -> Any:
    """What a tool is made of besides its nodes, which the version stands for; None without one."""
    if (version := version_of(workflow)) is None:
        return None
    plain = ("name", "description", "active", "isArchived", "availableInMCP", "createdAt")
    return (
        version,
        *(workflow.get(key) for key in plain),
        mapping(workflow.get("settings")).get("availableInMCP"),
        workflow.get("updatedAt"),
        bool(workflow.get("pinData")),
        bool(workflow.get("activeVersion")),
    )


__all__ = ["Drafts", "Known", "Seen", "state_of", "version_of"]
