"""Tools as text: what a model reads of them where their schemas are not sent to its server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from caal_node.context.schemas import first_sentences, takes_any
from caal_node.core.items import ToolsItem
from caal_node.core.tool_spec import ToolSchema

DESCRIPTION_CHARS: Final = 160
"""Characters of a tool's description: two lines. More says how a tool works, not when to use it."""
PARAMETER_CHARS: Final = 80
"""Characters of one parameter's description."""
_TOLD_KEPT: Final = 256
"""Told tools whose text is kept: those of a dozen windows. Every request shows all of them again.
"""
_NESTING_MAX: Final = 4
"""Levels of nesting that are written out; whatever lies deeper is `object`."""
_WORD: Final = re.compile(r"[\w.$-]+")
"""A name that can be no sentence, and no line of its own."""


_SECTION: Final = re.compile(
    r"(?<!\s)\s++(?:Args|Arguments|Parameters|Params|Returns|Raises|Yields)\s*+:\s.*", re.DOTALL
)
"""The rest of a Python doc string, whose lines stand at the parameters too."""


def catalogue(tools: Sequence[ToolSchema]) -> str:
    """Write tools as text: the name, at most two lines of what it is for, and its arguments.

    The arguments are written the way types are written in code, `{city: string, days?: integer
    (1 to 7)}`. That takes a third of the tokens of JSON schema and loses nothing a call needs.
    """
    return "\n".join(map(_catalogue_entry, tools))


@lru_cache(_TOLD_KEPT)
def told_catalogue(told: ToolsItem) -> str:
    """Write the tools that stand in a conversation as text."""
    return "\n".join(_catalogue_entry(tool, about=_purpose(tool)) for tool in told.tools)


def described(tool: ToolSchema) -> str:
    """Write one tool on a line, without its name: what it is for, and its arguments."""
    return " ".join(filter(None, (_purpose(tool), _shape(tool))))


def _catalogue_entry(tool: ToolSchema, *, about: str | None = None) -> str:
    name, shape = tool["function"]["name"], _shape(tool)
    if about is None:
        about = first_sentences(tool["function"].get("description") or "", DESCRIPTION_CHARS)
    return f"- {name}: {about}\n  {shape}" if about else f"- {name} {shape}"


def _purpose(tool: ToolSchema) -> str:
    """Return what a tool is for, without what its arguments say as well."""
    description = tool["function"].get("description") or ""
    return first_sentences(_SECTION.sub("", description), DESCRIPTION_CHARS)


def _shape(tool: ToolSchema) -> str:
    return _object_type(cast("Mapping[str, Any]", tool["function"].get("parameters") or {}), 0)


def _object_type(schema: Mapping[str, Any], depth: int) -> str:
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    if depth > _NESTING_MAX or (depth and not properties):
        return "object"
    if takes_any(schema):
        return "{any arguments}"
    required = cast("Sequence[str]", schema.get("required") or ())
    shown = (_member(name, sub, name in required, depth) for name, sub in properties.items())
    return "{" + ", ".join(shown) + "}"


def _member(name: str, schema: Any, required: bool, depth: int) -> str:
    name = name if _WORD.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    text = f"{name}{'' if required else '?'}: {_type(schema, depth)}"
    about: object = None
    if isinstance(schema, Mapping):
        about = cast("Mapping[str, Any]", schema).get("description")
    return f"{text} ({first_sentences(about, PARAMETER_CHARS)})" if about else text


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
        return "|".join(map(_type_name, cast("list[object]", kind)))
    if kind == "array":
        return f"[{_type(given.get('items', {}), depth + 1)}]"
    if kind == "object" or "properties" in given:
        return _object_type(given, depth + 1)
    return _type_name(kind)


def _type_name(kind: object) -> str:
    return kind if isinstance(kind, str) and _WORD.fullmatch(kind) else "any"
