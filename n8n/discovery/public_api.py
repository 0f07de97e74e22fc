"""The public REST API: every active workflow with its published nodes, a page at a time; pinned
data and single versions where the list leaves them out; why a run failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from n8n.core.api_client import Api, read_json
from n8n.core.errors import N8nError
from n8n.core.json_values import mapping, mappings

PAGE = 50
"""Workflows in one answer. n8n allows 250; parsing so many at once would hold the event loop for
longer than a 20 ms audio frame on an instance with large workflows."""
MAX_PAGES = 40
MAX_PIN_BYTES = 256 * 1024
"""Of a workflow with its pinned data: a request as a person makes it is a few hundred bytes."""


async def list_active(api: Api) -> tuple[list[Mapping[str, Any]], tuple[str, ...]]:
    """Workflows as the API describes them, and notices. Raises N8nError."""
    found: dict[str, Mapping[str, Any]] = {}
    query = {"active": "true", "limit": str(PAGE), "excludePinnedData": "true"}
    for _ in range(MAX_PAGES):
        reply = await api.ask("GET", "/api/v1/workflows", params=query)
        page = mapping(read_json(api, reply.body))
        if not isinstance(page.get("data"), list):
            raise api.strange("no list of workflows")
        # A workflow that changes between two pages can come twice.
        found.update((str(w.get("id")), w) for w in mappings(page["data"]))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return list(found.values()), ()
        query["cursor"] = cursor
    return list(found.values()), (f"Only the first {MAX_PAGES * PAGE} workflows are read.",)


async def read_version(api: Api, workflow_id: str, version_id: str) -> Mapping[str, Any] | None:
    """The nodes of one published version, for an n8n whose list does not have them (early 2.x).
    None where that version cannot be had."""
    return await _maybe(api, f"{_place_of(workflow_id)}/{quote(version_id, safe='')}")


async def read_pins(api: Api, workflow_id: str) -> Mapping[str, Any]:
    """The pinned data of one workflow; none where it cannot be had or is too large."""
    found = await _maybe(api, _place_of(workflow_id), max_bytes=MAX_PIN_BYTES)
    return mapping((found or {}).get("pinData"))


def _place_of(workflow_id: str) -> str:
    return f"/api/v1/workflows/{quote(workflow_id, safe='')}"


async def _maybe(api: Api, path: str, **limits: int) -> Mapping[str, Any] | None:
    """Something that is not worth a failed discovery. Raises N8nError for a dead connection."""
    try:
        return mapping(read_json(api, (await api.ask("GET", path, **limits)).body))
    except N8nError as e:
        if e.kind in ("unreachable", "timeout", "rate_limited"):
            raise
        return None
