"""The recordings: what a real n8n 2.41.1 told of its workflows, and what its webhooks answered.

workflows.json: `workflows[]` with `rest` (an item of GET /api/v1/workflows) and `mcp` (`preview` of
search_workflows, `details` of get_workflow_details), either of which is null if it was not
recorded. webhooks.json: `exchanges[]` with a request, its reply and its milliseconds. Ids of people
and projects, all but two of each list of scopes, and every secret are left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from n8n.core.json_values import mapping, mappings


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply as it came."""

    status: int
    content_type: str | None
    www_authenticate: str | None
    body: bytes
    ms: float


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request to a webhook, and the reply to it."""

    label: str
    method: str
    path: str
    """It has the query, and is percent-encoded."""
    headers: tuple[tuple[str, str], ...] | None
    """All that were sent, if the reply depends on them."""
    body: str | None
    credential: str | None
    """`right` or `wrong`, for a webhook that wants one."""
    reply: RecordedReply


@dataclass(frozen=True, slots=True)
class Recordings:
    """All that was recorded."""

    base_url: str
    """The address of the n8n that was recorded; some replies have it in them."""
    mcp_meta: Mapping[str, Any]
    refusals: Mapping[str, str]
    workflows: tuple[Mapping[str, Any], ...]
    exchanges: Mapping[str, RecordedExchange]
    """They are found by their labels."""


def read_recording(name: str) -> Any:
    """Return the JSON of one file of recordings, which the caller may change."""
    return json.loads(_text_of(name))


@cache
def _text_of(name: str) -> str:
    return (Path(__file__).with_name("recordings") / name).read_text("utf-8")


@cache
def load_recordings() -> Recordings:
    """Return the recordings, which are read once a process."""
    workflows, webhooks = read_recording("workflows.json"), read_recording("webhooks.json")
    return Recordings(
        webhooks["base_url"],
        workflows["mcp_meta"],
        workflows["refusals"],
        tuple(mappings(workflows["workflows"])),
        {one["label"]: _exchange(one) for one in mappings(webhooks["exchanges"])},
    )


def _exchange(recorded: Mapping[str, Any]) -> RecordedExchange:
    reply = {**mapping(recorded["reply"]), "ms": recorded["ms"]}
    binary = reply.pop("body_base64", None)
    reply["body"] = str(reply["body"]).encode() if binary is None else base64.b64decode(binary)
    headers = recorded.get("headers")
    return RecordedExchange(
        recorded["label"],
        recorded["method"],
        recorded["path"],
        None if headers is None else tuple((name, value) for name, value in headers),
        recorded["body"],
        recorded.get("credential"),
        RecordedReply(**reply),
    )
