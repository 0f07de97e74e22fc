"""The recordings: what a real n8n 2.41.1 told of its workflows, and what its webhooks answered.

workflows.json: `workflows[]` with `rest` (an item of GET /api/v1/workflows) and `mcp` (`preview` of
search_workflows, `details` of get_workflow_details), either of which is null where it was not
recorded. webhooks.json: `exchanges[]` with a request, its reply and its milliseconds. Ids of people
and projects, all but two of each list of scopes, and every secret are left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from n8n.core.json_values import mapping, mappings


@dataclass(frozen=True, slots=True)
class Recorded:
    """A reply as it came."""

    status: int
    content_type: str | None
    www_authenticate: str | None
    body: bytes
    ms: float


@dataclass(frozen=True, slots=True)
class Exchange:
    label: str
    method: str
    path: str
    """With the query, percent-encoded."""
    headers: tuple[tuple[str, str], ...] | None
    """All that were sent, where the reply depends on them."""
    body: str | None
    credential: str | None
    """`right` or `wrong`, for a webhook that wants one."""
    reply: Recorded


@dataclass(frozen=True, slots=True)
class Tape:
    base_url: str
    """The address of the n8n that was recorded; some replies have it in them."""
    mcp_meta: Mapping[str, Any]
    refusals: Mapping[str, str]
    workflows: tuple[Mapping[str, Any], ...]
    exchanges: Mapping[str, Exchange]
    """By label."""


@cache
def load_tape() -> Tape:
    workflows = mapping(_read("workflows.json"))
    webhooks = mapping(_read("webhooks.json"))
    exchanges = map(_exchange, mappings(webhooks["exchanges"]))
    return Tape(
        webhooks["base_url"],
        workflows["mcp_meta"],
        workflows["refusals"],
        tuple(mappings(workflows["workflows"])),
        {exchange.label: exchange for exchange in exchanges},
    )


def _read(name: str) -> Any:
    return json.loads((resources.files(__package__) / "recordings" / name).read_text("utf-8"))


def _exchange(told: Mapping[str, Any]) -> Exchange:
    reply = mapping(told["reply"])
    binary = reply.get("body_base64")
    body = base64.b64decode(binary) if binary is not None else str(reply["body"]).encode()
    headers = told.get("headers")
    return Exchange(
        told["label"],
        told["method"],
        told["path"],
        None if headers is None else tuple((name, value) for name, value in headers),
        told["body"],
        told.get("credential"),
        Recorded(
            reply["status"], reply["content_type"], reply["www_authenticate"], body, told["ms"]
        ),
    )
