"""Which JSON types a schema allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from caal_node.reply_parser.tool_index import mapping

_MAX_DEPTH = 8
_TYPES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
    "map": "object",
}
"""Names of types that are none of JSON's, and that schemas of tools hold all the same."""


def allowed_types(schema: Any, root: Mapping[str, Any], depth: int = 0) -> set[str]:
    """Return the JSON types that a schema allows; none when it does not say.

    root: the schema in which its references are looked up.
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return set()
    given = cast("Mapping[str, Any]", schema)
    found: set[str] = set()
    declared = given.get("type")
    if isinstance(declared, str):
        declared = [declared]
    if isinstance(declared, list):
        for kind in cast("list[Any]", declared):
            low = str(kind).lower()
            found.add(_TYPES.get(low, low))
    for key in ("anyOf", "oneOf", "allOf"):
        for part in given.get(key) or ():
            found |= allowed_types(part, root, depth + 1)
    reference = given.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for step in reference[2:].split("/"):
            target = mapping(target).get(step)
        found |= allowed_types(target, root, depth + 1)
    if not found:
        named: list[Any] = list(given.get("enum") or ())
        found |= {_type_of(value) for value in named}
        if "properties" in given:
            found.add("object")
        if "items" in given:
            found.add("array")
    if given.get("nullable") is True:
        found.add("null")
    return found


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string"
