"""Workflows at the edges of what n8n does, which nobody recorded: streams, its own refusals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from tests.real_n8n.seed import WorkflowPlan

_SPEAKS: Final = "Does it. Parameters: none.\nSpeak: message"
Node = dict[str, Any]


def edges() -> Iterator[WorkflowPlan]:
    fails = _node("Stop", "stopAndError", 1, {"errorMessage": "The database is down"})
    none = _node("Code", "code", 2, {"jsCode": "return []"})
    method = "return [{json: {query: $input.first().json.query}}]"
    several: Node = {"multipleMethods": True, "httpMethod": ["GET", "POST"]}
    yield _flow("edge_fails", _hook("edge_fails", "lastNode"), fails)
    yield _flow("edge_mute", _hook("edge_mute", "responseNode"), fails)
    yield _flow("edge_no_item", _hook("edge_no_item", "lastNode"), none)
    yield _flow("edge_stream_fails", _hook("edge_stream_fails", "streaming"), fails)
    yield _flow(
        "edge_several",
        _hook("edge_several", "lastNode", **several),
        _node("Code", "code", 2, {"jsCode": method}),
    )
    yield _flow("edge_bots", _hook("edge_bots", "responseNode", ignoreBots=True), _says("Hello."))
    yield _flow(
        "edge_list", _hook("edge_list", "responseNode", ipWhitelist="192.0.2.1"), _says("Hello.")
    )


def slow_steps(name: str) -> dict[str, Any]:
    """A stream that says something and then takes its time."""
    wait: Node = {**_node("Wait", "wait", 1.1, {"amount": 4}), "webhookId": f"waits-in-{name}"}
    first, last = _says("Collecting the figures.", "First"), _says("It is done.", "Last")
    return _flow(name, _hook(name, "streaming"), first, wait, last).body


def _hook(path: str, mode: str, **more: Any) -> Node:
    options = {key: more.pop(key) for key in ("ignoreBots", "ipWhitelist") if key in more}
    parameters: Node = {"httpMethod": "POST", "path": path, "responseMode": mode}
    parameters["options"] = options
    hook = _node("Webhook", "webhook", 2.1, {**parameters, **more})
    return {**hook, "webhookId": f"id-of-{path}", "notes": _SPEAKS}


def _says(words: str, name: str = "Answer") -> Node:
    parameters: Node = {"respondWith": "text", "responseBody": words, "options": {}}
    return _node(name, "respondToWebhook", 1.5, parameters)


def _node(name: str, kind: str, version: float, parameters: dict[str, Any]) -> Node:
    told = {"id": f"node-{name}", "name": name, "type": f"n8n-nodes-base.{kind}"}
    return {**told, "typeVersion": version, "position": [0, 0], "parameters": parameters}


def _flow(name: str, *nodes: Node) -> WorkflowPlan:
    connections = {
        one["name"]: {"main": [[{"node": after["name"], "type": "main", "index": 0}]]}
        for one, after in pairwise(nodes)
    }
    settings = {"executionOrder": "v1", "availableInMCP": True}
    body = {"name": name, "nodes": [*nodes], "connections": connections, "settings": settings}
    return WorkflowPlan(body, publish=True)
