"""A call's arguments: from what a model wrote to values that fit the tool's schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import json_repair

from caal_node.reply_parser.tool_index import ToolSignature, mapping, normalised
from caal_node.reply_parser.values import allowed_types, is_too_deep, load_json, quote_sums, typed

ARGUMENT_KEYS = (
    *("arguments", "parameters", "args", "input", "params"),
    *("kwargs", "tool_input", "action_input", "function_args"),
)
"""The keys under which models put a call's arguments."""


_MAX_REPAIR_CHARS = 4_000
"""json-repair takes about 4 us a character; longer broken arguments are refused."""
_MAX_ESCAPE_COST = 300_000
"""Characters times backslashes. json-repair goes back over the string at escapes: 1,000 characters
with 330 of them take it 16 ms."""


class BadArguments(ValueError):
    """The arguments cannot be used. `str()` gives one sentence for the model."""


def _takes_too_long(text: str) -> bool:
    """Return whether repairing `text` could take longer than an agent may stand still (20 ms)."""
    return len(text) > _MAX_REPAIR_CHARS or len(text) * text.count("\\") > _MAX_ESCAPE_COST


def repair_object(text: str, tool: ToolSignature | None) -> dict[str, Any]:
    """Repair broken JSON of an object, once a marker or a known name has said that it is a call.

    Raises:
        BadArguments: nothing trustworthy can be read from it.
    """
    problem = "The arguments are not valid JSON."
    if _takes_too_long(text) or not re.search(r"[:=]", text) or is_too_deep(text):
        raise BadArguments(problem)
    quoted = quote_sums(text)
    if quoted is None:
        raise BadArguments("A number in the arguments goes on as text; write one number.")
    try:
        repaired: Any = json_repair.loads(quoted)
    except Exception:  # It makes no promise of what it raises, and the text is a model's.
        raise BadArguments(problem) from None
    if not isinstance(repaired, dict) or not repaired:
        raise BadArguments(problem)
    found = cast("dict[str, Any]", repaired)
    if tool is not None and tool.properties and not set(found) <= set(tool.properties):
        raise BadArguments(problem)
    return found


def from_json(text: str, tool: ToolSignature | None) -> dict[str, Any]:
    """Return the arguments from JSON text: an object, an encoded object, or nothing.

    Raises:
        BadArguments: it is neither.
    """
    try:
        value: Any = load_json(text)
    except ValueError:
        if not text.rstrip().endswith("}"):
            raise BadArguments("The arguments were cut off.") from None
        return _settled(repair_object(text, tool), tool)
    return from_value(value, tool)


def from_value(value: Any, tool: ToolSignature | None) -> dict[str, Any]:
    """Return the arguments from a value that a call carried.

    Raises:
        BadArguments: the value is no object.
    """
    for _ in range(3):  # Encoded twice happens; a fourth layer would be an attack.
        if not isinstance(value, str) or not value.strip():
            break
        try:
            value = load_json(value)
        except ValueError:
            if value.lstrip().startswith("{"):
                value = repair_object(value, tool)
            break
    if value is None or value == "" or value == []:
        return {}
    if not isinstance(value, dict):
        raise BadArguments("The arguments must be one JSON object.")
    given = _unwrapped(cast("dict[str, Any]", value), tool)
    if tool is not None and {"type", "properties"} <= set(given) - set(tool.properties):
        raise BadArguments("These are the tool's parameters, not arguments for them.")
    return _settled(given, tool)


def _unwrapped(given: dict[str, Any], tool: ToolSignature | None) -> dict[str, Any]:
    """Return the arguments inside a call that was written where its arguments belong."""
    if (
        tool is None
        or not set(given) <= {"name", *ARGUMENT_KEYS}
        or set(given) & set(tool.properties)
    ):
        return given
    inner = [given[key] for key in ARGUMENT_KEYS if isinstance(given.get(key), dict)]
    return cast("dict[str, Any]", inner[0]) if len(inner) == 1 else given


def _settled(arguments: dict[str, Any], tool: ToolSignature | None) -> dict[str, Any]:
    """Return `arguments` with keys and enum values as the schema spells them."""
    if tool is None or not tool.properties:
        return arguments
    settled: dict[str, Any] = {}
    for key, value in arguments.items():
        own = _own_key(key, tool, arguments)
        schema = tool.properties.get(own)
        settled[own] = _own_enum(_own_type(value, schema, tool), mapping(schema))
    return settled


def _own_key(key: str, tool: ToolSignature, given: Mapping[str, Any]) -> str:
    if key in tool.properties:
        return key
    like = [name for name in tool.properties if normalised(name) == normalised(key)]
    return like[0] if len(like) == 1 and like[0] not in given else key


def _own_type(value: Any, schema: Any, tool: ToolSignature) -> Any:
    """Return a value in quotes as what stands inside, if its schema allows no string."""
    if not isinstance(value, str) or "string" in allowed_types(schema, tool.schema):
        return value
    return typed(value, schema, root=tool.schema)


def _own_enum(value: Any, schema: Mapping[str, Any]) -> Any:
    allowed = schema.get("enum")
    if not isinstance(value, str) or not isinstance(allowed, list) or value in allowed:
        return value
    like = [
        entry
        for entry in cast("list[Any]", allowed)
        if isinstance(entry, str) and entry.strip().casefold() == value.strip().casefold()
    ]
    return like[0] if len(like) == 1 else value
