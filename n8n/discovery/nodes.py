"""What the nodes of a published workflow tell: how its webhook is called, and what it reads.

An author who wrote no notes still told which inputs the workflow needs: in expressions such as
`$json.body.city`, `$('Webhook').item.json.query["page"]`, `const {a, b} = $input.item.json.body`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias
from urllib.parse import quote

from n8n.core.json_values import mapping, sequence
from n8n.core.workflow_tool import (
    WEBHOOK_TYPE,
    AuthKind,
    Nodes,
    ParameterLocation,
    placeholders,
)
from n8n.notes.parameter import Parameter

_AUTH_KINDS: Mapping[str, AuthKind] = {
    "none": "none",
    "headerAuth": "header",
    "basicAuth": "basic",
    "jwtAuth": "jwt",
}
_METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD")
"""What n8n offers; of a webhook that takes several, the first of these is used."""

FoundInputs: TypeAlias = dict[str, tuple[ParameterLocation, Parameter]]
"""A parameter's name, where in the request it comes in, and what is known of its type."""

MAX_SCANNED_CHARS = 100_000
"""How much of one workflow is read. A code node of fifty pages names its inputs in the first of
them."""
MAX_PATH_CHARS = 2_000
MAX_FOUND = 40
MAX_DEPTH = 40
MAX_VARIABLES = 8
"""Variables in one text that hold the body, the query or the parameters."""
MAX_UNPACKED = 200
"""Places in one text at which a request may be unpacked: `const {a, b} = $json.body`."""
UNPACKING_CHARS = 540
"""How far before the `json` such a statement may begin."""

_KEY = (
    r"""(?:\??\.\s*(?P<dot>[A-Za-z_$][\w$]*)"""
    r"""|\??\.?\[\s*(?P<q>["'])(?P<key>[^"'\]]{1,64})(?P=q)\s*\])"""
)
_CALL = r"(?P<call>\s*\()?"
_PART = r"""(?:\??\.|\[\s*["'])(?P<part>body|query|params)\b(?:["']\s*\])?"""
# `json.body.X`, `json["body"]["X"]`, then what stands in for X when it is missing.
_READ = re.compile(
    r"json\b"
    + _PART
    + _KEY
    + _CALL
    + r"""(?:\s*(?:\?\?|\|\|)\s*(?P<fallback>"[^"\n]{0,80}"|'[^'\n]{0,80}'"""
    r"""|-?\d{1,15}(?:\.\d{1,9})?\b|true\b|false\b))?"""
)
_UNPACKED = re.compile(r"\{(?P<names>[^{}]{1,400})\}\s*=\s*[^;\n]{0,120}?json\b" + _PART)
_VARIABLE = re.compile(
    r"\b(?:const|let|var)\s+(?P<name>[A-Za-z_$][\w$]*)\s*=\s*[^;\n]{0,120}?json\b"
    + _PART
    + r"\s*(?:\|\||\?\?|;|\n|$)"
)
_UNPACKED_NAME = re.compile(r"^\s*([A-Za-z_$][\w$]*)\s*(?::[^=]*)?(?:=\s*(.+))?$", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,9})?")
_WHOLE_REQUEST = re.compile(
    r"""(?:[$.]json|\[\s*["']json["']\s*\])(?:\??\.(?:body|query)\b|\[\s*["'](?:body|query)["']\s*\])?"""
    r"""(?![\w$]|\s*\??[.\[])|\$input\.(?:all|first|last|item)\b(?!\(\)\.json|\.json)"""
)
"""The item, its body or its query, and no field of them."""
_WHOLE_ITEM = re.compile(r"\$json\b|\.json\b|\$input\b|\bitems?\b")
_PASSING_ITEMS_ON = frozenset(("n8n-nodes-base.executeWorkflow",))
_LEAVING_ITEMS_ALONE = frozenset(
    f"n8n-nodes-base.{name}"
    for name in ("if", "switch", "filter", "merge", "noOp", "wait", "limit", "sort")
)
"""Nodes whose output is their input."""
_SET_TYPE = "n8n-nodes-base.set"
_SET_DROPS_SINCE = 3.3
"""From this version on a Set node drops the fields that it does not set, unless it is told to."""
_PARTS_OF_REQUEST = frozenset(("body", "query", "params", "headers"))
_NOT_INPUTS = frozenset(("length", "constructor", "prototype", "hasOwnProperty", "toString"))


@dataclass(frozen=True, slots=True)
class WebhookNode:
    """The settings of a webhook node that matter for calling it."""

    node_id: str
    node_name: str
    notes: str
    method: str
    path: str | None
    """The path below `/webhook/`; None for an expression, which only n8n can evaluate, and for what
    is too long for a URL."""
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
    if path.startswith("=") or len(path) > MAX_PATH_CHARS:
        return None
    path = path.strip("/")
    webhook_id = node.get("webhookId")
    if not webhook_id:
        # Nodes made by hand may lack the id; n8n then builds the path out of these two.
        return f"{workflow_id}/{quote(str(node.get('name', '')).lower(), safe='')}/{path}"
    # A path with placeholders is registered under the node's webhookId.
    return f"{webhook_id}/{path}" if placeholders(path) else path or str(webhook_id)


def inputs_read_by(nodes: Nodes) -> FoundInputs:
    """Return the inputs that the nodes read, with the type that their fallback tells."""
    found: FoundInputs = {}
    left = MAX_SCANNED_CHARS
    for text in _texts(nodes):
        if left <= 0 or len(found) >= MAX_FOUND:
            break
        text, left = text[:left], left - len(text)
        for location, name, fallback in _reads(text):
            if name not in _NOT_INPUTS and len(found) < MAX_FOUND:
                schema = _schema_of_fallback(fallback)
                found.setdefault(name, (location, Parameter(schema, False, "nodes")))
    return found


def may_read_all(nodes: Nodes) -> bool:
    """Whether a node may take the request as a whole, so that it names no input.

    That is an expression or code with an item in it, or a workflow that the item is passed to.
    """
    if any(str(node.get("type")) in _PASSING_ITEMS_ON for node in nodes):
        return True
    return any(_WHOLE_ITEM.search(text, 0, MAX_SCANNED_CHARS) for text in _texts(nodes))


def takes_whole_request(nodes: Nodes) -> bool:
    """Whether one of these nodes, which get the request as their item, may take all of it."""
    if any(str(node.get("type")) in _PASSING_ITEMS_ON for node in nodes):
        return True
    return any(_WHOLE_REQUEST.search(_without_taken_apart(text)) for text in _texts(nodes))


def _without_taken_apart(text: str) -> str:
    """Leave out statements that take a request only to read single fields of it.

    These are `const {a, b} = $json.body`, and `const body = $json.body` where `body` stands
    nowhere without a field behind it.
    """
    text = text[:MAX_SCANNED_CHARS]
    for unpacked in islice(_UNPACKED.finditer(text), MAX_VARIABLES):
        if "..." not in unpacked["names"]:
            text = text.replace(unpacked[0], "")
    for variable in islice(_VARIABLE.finditer(text), MAX_VARIABLES):
        name = re.escape(variable["name"])
        if not re.search(rf"(?<![\w$.]){name}(?![\w$]|\s*(?:\??\.|\[|=[^=]))", text):
            text = text.replace(variable[0], "")
    return text


def passes_request_on(node: Mapping[str, Any]) -> bool:
    """Whether a node that gets the request hands it to the next one as it is."""
    if node.get("type") != _SET_TYPE:
        return str(node.get("type")) in _LEAVING_ITEMS_ALONE
    version = node.get("typeVersion")
    keeps = mapping(node.get("parameters")).get("includeOtherFields") is True
    return keeps or not isinstance(version, (int, float)) or version < _SET_DROPS_SINCE


def mentions(nodes: Nodes, name: str) -> bool:
    """Whether a node has that name in it as code does: behind a dot, a quote or a bracket."""
    # `json.body.city` mentions a city, and no input that is called body.
    alone = r"""(?!["']?\s*+\]?\s*+\??[.\[])""" if name in _PARTS_OF_REQUEST else ""
    word = re.compile(rf"""[.\["'{{,(]\s*{re.escape(name)}(?![\w$]){alone}""")
    return any(word.search(text, 0, MAX_SCANNED_CHARS) for text in _texts(nodes))


def _reads(text: str) -> Iterator[tuple[ParameterLocation, str, str | None]]:
    """Yield where each input is read from, its name, and its fallback."""
    if "json" not in text:
        return
    for read in _READ.finditer(text):
        # `json.body.map(...)` is a method of the body, not an input named map.
        if read["call"] is None:
            yield _location(read["part"]), read["dot"] or read["key"], read["fallback"]
    for here in islice(re.finditer("json", text), MAX_UNPACKED):
        # One search of the whole text could hold the interpreter for a quarter of a second.
        window = text[max(0, here.start() - UNPACKING_CHARS) : here.end() + 20]
        for unpacked in _UNPACKED.finditer(window):
            for item in unpacked["names"].split(","):
                if (name := _UNPACKED_NAME.match(item)) is not None:
                    yield _location(unpacked["part"]), name[1], name[2]
    variables: dict[str, ParameterLocation] = {
        m["name"]: _location(m["part"]) for m in islice(_VARIABLE.finditer(text), MAX_VARIABLES)
    }
    if variables:
        words = "|".join(map(re.escape, variables))
        for read in re.finditer(rf"(?<![\w$.\]])(?P<name>{words})" + _KEY + _CALL, text):
            if read["call"] is None:
                yield variables[read["name"]], read["dot"] or read["key"], None


def _location(part: str) -> ParameterLocation:
    return "path" if part == "params" else "query" if part == "query" else "body"


def _schema_of_fallback(fallback: str | None) -> dict[str, Any]:
    fallback = (fallback or "").strip()
    if fallback[:1] in ('"', "'"):
        return {"type": "string", "default": fallback[1:-1]}
    if fallback in ("true", "false"):
        return {"type": "boolean", "default": fallback == "true"}
    if (number := _NUMBER.fullmatch(fallback)) is not None:
        value = float(fallback) if number[1] else int(fallback)
        return {"type": "number", "default": value}
    return {}


def _texts(nodes: Nodes) -> Iterator[str]:
    """Yield all texts in the parameters of the nodes that are switched on."""
    waiting: list[tuple[Any, int]] = [
        (n.get("parameters"), 0) for n in reversed(nodes) if not n.get("disabled")
    ]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            yield value
        elif depth < MAX_DEPTH:
            inner = [*mapping(value).values(), *sequence(value)]
            waiting += [(v, depth + 1) for v in reversed(inner)]
