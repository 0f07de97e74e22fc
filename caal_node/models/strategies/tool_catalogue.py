"""The tools as text: name, at most two lines of what it is for, and the schema of its arguments.

The schema is written the way types are written in code, `{city: string, days?: integer (1 to 7)}`:
a third of the tokens of JSON schema, and nothing that a call needs is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from caal_node.context.schemas import first_sentences
from caal_node.core.tool_spec import ToolSchema

DESCRIPTION_CHARS: Final = 160
"""Two lines: more says how a tool works rather than when to use it."""
ABOUT_CHARS: Final = 80
"""Of one parameter's description."""
_DEEPEST: Final = 4
"""Levels of nesting that are written out; below them `object`."""


def catalogue(tools: Sequence[ToolSchema]) -> str:
    return "\n".join(map(_entry, tools))


def _entry(tool: ToolSchema) -> str:
    function = tool["function"]
    about = first_sentences(function.get("description") or "", DESCRIPTION_CHARS)
    shape = _object(cast("Mapping[str, Any]", function.get("parameters") or {}), 0)
    return f"- {function['name']}: {about}\n  {shape}" if about else f"- {function['name']} {shape}"


def _object(schema: Mapping[str, Any], depth: int) -> str:
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    if depth > _DEEPEST or (depth and not properties):
        return "object"
    required = cast("Sequence[str]", schema.get("required") or ())
    shown = (_member(name, sub, name in required, depth) for name, sub in properties.items())
    return "{" + ", ".join(shown) + "}"


def _member(name: str, schema: Any, required: bool, depth: int) -> str:
    text = f"{name}{'' if required else '?'}: {_type(schema, depth)}"
    about: object = None
    if isinstance(schema, Mapping):
        about = cast("Mapping[str, Any]", schema).get("description")
    return f"{text} ({first_sentences(about, ABOUT_CHARS)})" if about else text


def _type(schema: Any, depth: int) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    given = cast("Mapping[str, Any]", schema)
    if "const" in given:
        return json.dumps(given["const"], ensure_ascii=False)
    if isinstance(given.get("enum"), list):
        return "|".join(json.dumps(v, ensure_ascii=False) for v in given["enum"])
    for key in ("anyOf", "oneOf"):
        if isinstance(options := given.get(key), list):
            return "|".join(dict.fromkeys(_type(o, depth) for o in cast("list[Any]", options)))
    kind = given.get("type")
    if isinstance(kind, list):
        return "|".join(map(str, cast("list[object]", kind)))
    if kind == "array":
        return f"[{_type(given.get('items', {}), depth + 1)}]"
    if kind == "object" or "properties" in given:
        return _object(given, depth + 1)
    return kind if isinstance(kind, str) else "any"
