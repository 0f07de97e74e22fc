"""Which inputs a workflow's published nodes read from the webhook's request.

An author who wrote no notes still told what the workflow needs: in expressions such as
`$json.body.city`, `$('Webhook').item.json.query["page"]`, `const {a, b} = $input.item.json.body`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from n8n.core.workflow_tool import Place
from n8n.notes.parameter import Parameter

MAX_SCANNED_CHARS = 100_000
"""Of one workflow. A code node of a fifty pages names its inputs in the first of them."""
MAX_FOUND = 40
MAX_DEPTH = 40
MAX_NAMED = 8
"""Variables in one text that hold the body, the query or the parameters."""
MAX_PULLED = 200
"""Places in one text at which a request may be pulled apart: `const {a, b} = $json.body`."""
PULLED_CHARS = 540
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
_PULLED_APART = re.compile(r"\{(?P<names>[^{}]{1,400})\}\s*=\s*[^;\n]{0,120}?json\b" + _PART)
_NAMED = re.compile(
    r"\b(?:const|let|var)\s+(?P<name>[A-Za-z_$][\w$]*)\s*=\s*[^;\n]{0,120}?json\b"
    + _PART
    + r"\s*(?:\|\||\?\?|;|\n|$)"
)
_PULLED_NAME = re.compile(r"^\s*([A-Za-z_$][\w$]*)\s*(?::[^=]*)?(?:=\s*(.+))?$", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,9})?")
_WHOLE = re.compile(r"\$json\b|\.json\b|\$input\b|\bitems?\b")
_HANDS_ON = frozenset(("n8n-nodes-base.executeWorkflow",))
_NOT_INPUTS = frozenset(("length", "constructor", "prototype", "hasOwnProperty", "toString"))


def scan(nodes: list[Mapping[str, Any]]) -> dict[str, tuple[Place, Parameter]]:
    """Name -> where it is read from, and what its fallback tells about its type."""
    found: dict[str, tuple[Place, Parameter]] = {}
    budget = MAX_SCANNED_CHARS
    for text in _texts(nodes):
        if budget <= 0 or len(found) >= MAX_FOUND:
            break
        text, budget = text[:budget], budget - len(text)
        for place, name, fallback in _reads(text):
            if name not in _NOT_INPUTS and len(found) < MAX_FOUND:
                found.setdefault(name, (place, Parameter(_told_by(fallback), False, "nodes")))
    return found


def may_read_all(nodes: list[Mapping[str, Any]]) -> bool:
    """Whether a node may take the request as a whole, so that it names no input: an expression or
    code with an item in it, or a workflow that is handed the item."""
    if any(node.get("type") in _HANDS_ON for node in nodes):
        return True
    return any(_WHOLE.search(text) for text in _texts(nodes))


def _reads(text: str) -> Iterator[tuple[Place, str, str | None]]:
    if "json" not in text:
        return
    for read in _READ.finditer(text):
        # `json.body.map(...)` is a method of the body, not an input named map.
        if read["call"] is None:
            yield _place(read["part"]), read["dot"] or read["key"], read["fallback"]
    for here in islice(re.finditer("json", text), MAX_PULLED):
        # One search of the whole text could hold the interpreter for a quarter of a second.
        window = text[max(0, here.start() - PULLED_CHARS) : here.end() + 20]
        for pulled in _PULLED_APART.finditer(window):
            for item in pulled["names"].split(","):
                if (name := _PULLED_NAME.match(item)) is not None:
                    yield _place(pulled["part"]), name[1], name[2]
    named: dict[str, Place] = {
        m["name"]: _place(m["part"]) for m in islice(_NAMED.finditer(text), MAX_NAMED)
    }
    if named:
        words = "|".join(map(re.escape, named))
        for read in re.finditer(rf"(?<![\w$.\]])(?P<name>{words})" + _KEY + _CALL, text):
            if read["call"] is None:
                yield named[read["name"]], read["dot"] or read["key"], None


def _place(part: str) -> Place:
    return "path" if part == "params" else "query" if part == "query" else "body"


def _told_by(fallback: str | None) -> dict[str, Any]:
    fallback = (fallback or "").strip()
    if fallback[:1] in ('"', "'"):
        return {"type": "string", "default": fallback[1:-1]}
    if fallback in ("true", "false"):
        return {"type": "boolean", "default": fallback == "true"}
    if (number := _NUMBER.fullmatch(fallback)) is not None:
        value = float(fallback) if number[1] else int(fallback)
        return {"type": "number", "default": value}
    return {}


def _texts(nodes: list[Mapping[str, Any]]) -> Iterator[str]:
    waiting: list[tuple[Any, int]] = [
        (n.get("parameters"), 0) for n in reversed(nodes) if not n.get("disabled")
    ]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            yield value
        elif depth < MAX_DEPTH and isinstance(value, dict):
            inner = list(cast(dict[str, Any], value).values())
            waiting += [(v, depth + 1) for v in reversed(inner)]
        elif depth < MAX_DEPTH and isinstance(value, list):
            waiting += [(v, depth + 1) for v in reversed(cast(list[Any], value))]
