"""The public REST API: every active workflow with its published nodes, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from n8n.api import Api, read_json
from n8n.shapes import mapping, mappings

PAGE = 50
"""Workflows in one answer. n8n allows 250; parsing so many at once would hold the event loop for
longer than a 20 ms audio frame on an instance with large workflows."""
MAX_PAGES = 40


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
