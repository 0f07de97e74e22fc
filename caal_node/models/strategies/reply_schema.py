"""The JSON schema that a reply is held to, made from what grammar compilers agree on.

llama.cpp and Ollama turn a schema into a grammar. What they cannot turn (formats, patterns,
references, bounds) makes some versions refuse the request, so only the shape is kept. The
arguments are checked against the tool's whole schema before it runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from caal_node.context.schemas import takes_any
from caal_node.core.tool_spec import ToolSchema

_KEPT: Final = ("type", "enum", "const")
_NESTING_MAX: Final = 6
"""Levels of nesting that are held to the schema; deeper, any value is allowed. Grammars grow with
every level."""
_ARGUMENTS_CHARS_MAX: Final = 8_000
"""Characters of the shape of one tool's arguments. A larger one makes a grammar that takes the
model's server seconds, so any object is allowed in its place."""


def line_schema(tools: Sequence[ToolSchema], *, must_call: bool = False) -> dict[str, Any]:
    """Return the schema of one line of the JSONL style: a call of one of `tools`, or speech.

    With `must_call` it cannot be speech.
    """
    speech = _object({"type": {"const": "final_answer"}, "text": {"type": "string"}})
    if not tools:
        return speech
    calls = (_object({"type": {"const": "tool_call"}, **_call(tool["function"])}) for tool in tools)
    return {"anyOf": [*calls] if must_call else [*calls, speech]}


def reply_schema(
    tools: Sequence[ToolSchema], *, least: int = 1, most: int = 6, must_call: bool = False
) -> dict[str, Any]:
    """Return the schema of one object: `least` to `most` calls of `tools`, or speech.

    Without tools only speech is allowed, and with `must_call` only calls.
    """
    if not tools:
        return _speech()
    calls = {"type": "array", "items": _one_of(tools), "minItems": least, "maxItems": most}
    return _object({"calls": calls}) if must_call else _either(calls)


def _either(calls: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [_object({"calls": calls}), _speech()]}


def _speech() -> dict[str, Any]:
    return _object({"say": {"type": "string"}})


def _one_of(tools: Sequence[ToolSchema]) -> dict[str, Any]:
    return {"anyOf": [_object(_call(tool["function"])) for tool in tools]}


def _call(function: Mapping[str, Any]) -> dict[str, Any]:
    arguments = _shape(function.get("parameters") or {}, 0)
    if arguments.get("type") != "object" or len(json.dumps(arguments)) > _ARGUMENTS_CHARS_MAX:
        arguments = {"type": "object"}
    return {"name": {"const": function["name"]}, "arguments": arguments}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _shape(schema: Any, depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > _NESTING_MAX:
        return {}
    given = cast("Mapping[str, Any]", schema)
    kept: dict[str, Any] = {key: given[key] for key in _KEPT if key in given}
    if takes_any(given):
        return {"type": "object"}  # grammars made of an empty `properties` allow only `{}`
    if isinstance(given.get("properties"), Mapping):
        properties = cast("Mapping[str, Any]", given["properties"])
        kept["type"] = "object"
        kept["properties"] = {name: _shape(sub, depth + 1) for name, sub in properties.items()}
        kept["required"] = [name for name in given.get("required", ()) if name in properties]
        if not given.get("additionalProperties"):
            kept["additionalProperties"] = False
    if isinstance(given.get("items"), Mapping):
        kept["items"] = _shape(given["items"], depth + 1)
    for key in ("anyOf", "oneOf"):
        if isinstance(given.get(key), list):
            options = cast("list[Any]", given[key])
            kept["anyOf"] = [_shape(option, depth + 1) for option in options]
    return kept
