"""The public REST API: every active workflow with its published nodes, a page at a time; pinned
data and single versions where the list leaves them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from n8n.core.api_client import ApiClient
from n8n.core.errors import N8nError
from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import Workflow
from n8n.discovery.normalise import id_of

PAGE_SIZE = 50
"""Workflows in one answer. n8n allows 250; so many large workflows could pass MAX_BODY_BYTES."""
MAX_PAGES = 40
MAX_PINNED_BYTES = 256 * 1024
"""The most that a workflow with its pinned data may have: a request as a person makes it has a few
hundred bytes."""


async def list_active(api: ApiClient) -> tuple[list[Workflow], tuple[str, ...]]:
    """Return the workflows as the API describes them, and notices. Raises N8nError."""
    found: dict[str, Workflow] = {}
    query = {"active": "true", "limit": str(PAGE_SIZE), "excludePinnedData": "true"}
    for _ in range(MAX_PAGES):
        page = mapping(await api.ask_json("GET", "/api/v1/workflows", params=query))
        if not isinstance(page.get("data"), list):
            raise api.unexpected("no list of workflows")
        # A workflow that changes between two pages can come twice.
        found.update((id_of(w), w) for w in mappings(page["data"]))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return list(found.values()), ()
        query["cursor"] = cursor
    return list(found.values()), (f"Only the first {MAX_PAGES * PAGE_SIZE} workflows are read.",)


async def read_version(
    api: ApiClient, workflow_id: str, version_id: str
) -> Mapping[str, Any] | None:
    """Return the nodes of one published version; None if that version cannot be had.

    Only the list of an early 2.x lacks them.
    """
    return await _optional(api, f"{_path_of(workflow_id)}/{quote(version_id, safe='')}")


async def read_pinned_data(api: ApiClient, workflow_id: str) -> Mapping[str, Any]:
    """Return a workflow's pinned data; it is empty if it cannot be had or is too large."""
    found = await _optional(api, _path_of(workflow_id), max_bytes=MAX_PINNED_BYTES)
    return mapping((found or {}).get("pinData"))


def _path_of(workflow_id: str) -> str:
    return f"/api/v1/workflows/{quote(workflow_id, safe='')}"


async def _optional(api: ApiClient, path: str, **limits: int) -> Mapping[str, Any] | None:
    """Ask for what is not worth a failed discovery. Raises N8nError for a dead connection."""
    try:
        return mapping(await api.ask_json("GET", path, **limits))
    except N8nError as e:
        if e.kind in ("unreachable", "timeout", "rate_limited"):
            raise
        return None
