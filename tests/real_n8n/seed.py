"""The recorded workflows and the samples, put into an n8n by its public API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import httpx2

from n8n.core.json_values import mapping, mappings
from tests.recorded_n8n.recordings import load_recordings
from tests.recorded_n8n.webhooks import RIGHT_CREDENTIALS

JWT_SECRET: Final = "a passphrase of the tests, long enough for HS256"  # noqa: S105 - guards nothing
HEADER: Final = RIGHT_CREDENTIALS["header auth"]
_CREDENTIALS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "headerAuth": ("httpHeaderAuth", {"name": HEADER[0], "value": HEADER[1]}),
    "basicAuth": ("httpBasicAuth", {"user": "recorded", "password": "recorded"}),
    "jwtAuth": (
        "jwtAuth",
        {"keyType": "passphrase", "secret": JWT_SECRET, "algorithm": "HS256"},
    ),
}
"""n8n's name for a credential and its data, by the webhook's kind of authentication."""
_WRITABLE: Final = ("name", "nodes", "connections", "settings")
"""The parts of a workflow that the public API takes."""


@dataclass(frozen=True, slots=True)
class WorkflowPlan:
    """A workflow to create. `draft` are nodes to save after it was published, and not publish."""

    body: dict[str, Any]
    publish: bool
    draft: list[Mapping[str, Any]] | None = None


def recorded() -> Iterator[WorkflowPlan]:
    """Yield them in the order of their creation: of two namesakes the older keeps the name."""
    told = [mapping(w["rest"]) for w in load_recordings().workflows if w["rest"] is not None]
    for workflow in sorted(told, key=lambda w: str(w["createdAt"])):
        version = mapping(workflow.get("activeVersion"))
        published = mappings(version.get("nodes")) or mappings(workflow["nodes"])
        body = {key: workflow[key] for key in _WRITABLE}
        body["connections"] = version.get("connections") or workflow["connections"]
        draft = mappings(workflow["nodes"])
        differs = bool(version) and draft != published
        yield WorkflowPlan(
            {**body, "nodes": published}, bool(workflow["active"]), draft if differs else None
        )


def samples() -> Iterator[WorkflowPlan]:
    for entry in sorted((resources.files("n8n") / "workflows").iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".json"):
            told = json.loads(entry.read_text("utf-8"))
            yield WorkflowPlan({key: told[key] for key in _WRITABLE}, publish=True)


def copies(number: int) -> Iterator[WorkflowPlan]:
    """Yield so many workflows of one webhook, for discovery at size."""
    for i in range(number):
        parameters = {"httpMethod": "POST", "path": f"copy-{i}", "responseMode": "lastNode"}
        node = {
            "id": f"hook-{i}",
            "name": "Webhook",
            "type": "n8n-nodes-base.webhook",
            "typeVersion": 2.1,
            "position": [0, 0],
            "webhookId": f"copy-{i}",
            "notes": f"Does {i}. Parameters: city (required, string).",
            "parameters": parameters,
        }
        settings = {"executionOrder": "v1", "availableInMCP": True}
        body = {"name": f"copy {i}", "nodes": [node], "connections": {}, "settings": settings}
        yield WorkflowPlan(body, publish=True)


class WorkflowSeeder:
    """Creates workflows and their credentials in an n8n."""

    def __init__(self, url: str, api_key: str, rest: httpx2.Client) -> None:
        self._api = httpx2.Client(base_url=url, headers={"x-n8n-api-key": api_key}, timeout=60)
        self._rest = rest
        self._credentials: dict[str, str] = {}

    def close(self) -> None:
        self._api.close()

    def create(self, planned: Iterable[WorkflowPlan]) -> list[str]:
        """Create the workflows, and return their ids."""
        return [self._create(one) for one in planned]

    def _create(self, one: WorkflowPlan) -> str:
        body = {**one.body, "nodes": [self._with_credentials(n) for n in one.body["nodes"]]}
        workflow_id = str(self._ask("POST", "/api/v1/workflows", body)["id"])
        if one.publish:
            self._ask("POST", f"/api/v1/workflows/{workflow_id}/activate", None)
        if one.draft is not None:
            # The public API would publish; the editor saves a draft.
            now = self._rest.get(f"/rest/workflows/{workflow_id}").json()["data"]
            change = {"nodes": one.draft, "connections": now["connections"]}
            saved = self._rest.patch(
                f"/rest/workflows/{workflow_id}", json={**change, "versionId": now["versionId"]}
            )
            saved.raise_for_status()
        return workflow_id

    def _with_credentials(self, node: Mapping[str, Any]) -> dict[str, Any]:
        clean = {key: value for key, value in node.items() if key != "credentials"}
        kind = mapping(node.get("parameters")).get("authentication")
        if kind not in _CREDENTIALS:
            return clean
        name, data = _CREDENTIALS[kind]
        if kind not in self._credentials:
            wanted = {"name": f"tests {kind}", "type": name, "data": data}
            self._credentials[kind] = str(self._ask("POST", "/api/v1/credentials", wanted)["id"])
        told = {"id": self._credentials[kind], "name": f"tests {kind}"}
        return {**clean, "credentials": {name: told}}

    def _ask(self, method: str, path: str, body: Any) -> Any:
        reply = self._api.request(method, path, json=body if body is not None else {})
        if reply.status_code >= 300:
            raise RuntimeError(f"{method} {path} answered {reply.status_code}: {reply.text[:500]}")
        return reply.json()
