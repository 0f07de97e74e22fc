"""One webhook node: where it listens, how it wants to be called, and how it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from n8n.core.json_values import mapping, sequence
from n8n.core.workflow_tool import WEBHOOK_TYPE, AuthKind, placeholders

_AUTH_KINDS: Mapping[str, AuthKind] = {
    "none": "none",
    "headerAuth": "header",
    "basicAuth": "basic",
    "jwtAuth": "jwt",
}
_METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD")
"""What n8n offers; of a webhook that takes several, the first of these is used."""


@dataclass(frozen=True, slots=True)
class WebhookNode:
    """The settings of a webhook node that matter for calling it."""

    node_id: str
    node_name: str
    notes: str
    method: str
    path: str | None
    """The path below `/webhook/`; None for an expression, which only n8n can evaluate."""
    response_mode: str
    auth_kind: AuthKind
    answers_nothing: bool


def is_webhook(node: Mapping[str, Any]) -> bool:
    return node.get("type") == WEBHOOK_TYPE and not node.get("disabled")


def read_webhook(
    node: Mapping[str, Any], workflow_id: str, connected_outputs: frozenset[int] = frozenset()
) -> WebhookNode:
    """`connected_outputs` are those that lead to another node.

    A webhook that takes several methods has an output for each.
    """
    parameters = mapping(node.get("parameters"))
    options = mapping(parameters.get("options"))
    return WebhookNode(
        node_id=str(node.get("id") or node.get("name") or ""),
        node_name=str(node.get("name") or ""),
        notes=str(node.get("notes") or ""),
        method=_method(parameters.get("httpMethod"), connected_outputs),
        path=_path(node, str(parameters.get("path") or ""), workflow_id),
        response_mode=str(parameters.get("responseMode") or "onReceived"),
        auth_kind=_AUTH_KINDS.get(str(parameters.get("authentication") or "none"), "other"),
        answers_nothing=parameters.get("responseData") == "noData"
        or options.get("noResponseBody") is True,
    )


def _method(value: object, connected_outputs: frozenset[int]) -> str:
    # n8n leaves out what is at its default, and GET is the node's default.
    offered = [str(m).upper() for m in sequence(value) or [value or "GET"]]
    useful = [method for i, method in enumerate(offered) if i in connected_outputs] or offered
    return next((m for m in _METHODS if m in useful), "GET")


def _path(node: Mapping[str, Any], path: str, workflow_id: str) -> str | None:
    if path.startswith("="):
        return None
    path = path.strip("/")
    webhook_id = node.get("webhookId")
    if not webhook_id:
        # Nodes made by hand may lack the id; n8n then builds the path out of these two.
        return f"{workflow_id}/{quote(str(node.get('name', '')).lower(), safe='')}/{path}"
    # A path with placeholders is registered under the node's webhookId.
    return f"{webhook_id}/{path}" if placeholders(path) else path or str(webhook_id)
