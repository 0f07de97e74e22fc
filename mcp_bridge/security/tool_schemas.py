"""Checks schemas that servers send: what may be followed in them, and what may be shown.

A `$ref` to anywhere but the schema itself could make a validator fetch an address or read a file.
Our validators have no way to do so; a schema that asks for it is not offered all the same, as no
model could fill it in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from mcp_bridge.core.sanitize import is_visible, may_hide, visible_text, visible_value

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords whose values are data: what looks like a keyword in there is none."""
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
"""Keywords whose keys are names, and whose values are schemas."""
_EXACT: Final = _DATA | {"required", "pattern", "dependentRequired"}
"""Keywords with texts that a call must repeat as they are."""
_WORDS: Final = frozenset({"description", "title", "$comment", "markdownDescription"})
MAX_DEPTH: Final = 32
"""The allowed levels of schemas in one another. Real ones have up to eight."""


class UnfitSchema(ValueError):
    """The schema cannot be offered; the message says why, on one line."""


def checked_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives the schema without hidden characters in its words; the same one where it has none.

    Raises: UnfitSchema.
    """
    if any(not reference.startswith("#") for reference in _references(schema)):
        raise UnfitSchema("refers to a schema elsewhere ($ref)")
    written = json.dumps(schema, ensure_ascii=False)
    return cast("Mapping[str, Any]", _visible(schema, 0)) if may_hide(written) else schema


def _references(schema: object) -> Iterator[str]:
    """Yields where the schema refers to. Raises: UnfitSchema, where it is nested too deep."""
    waiting: list[tuple[object, int, bool]] = [(schema, 0, False)]
    while waiting:
        part, depth, is_data = waiting.pop()
        if depth > MAX_DEPTH:
            raise UnfitSchema(f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(part, list):
            waiting += [
                (item, depth + 1, is_data)
                for item in cast("list[object]", part)
                if isinstance(item, dict | list)
            ]
        elif isinstance(part, dict):
            for key, value in cast("dict[str, object]", part).items():
                if isinstance(value, str):
                    if key in _REFERENCES and not is_data:
                        yield value
                elif key in _MAPS and isinstance(value, dict):
                    inner = cast("dict[str, object]", value).values()
                    waiting += [(each, depth + 1, is_data) for each in inner]
                elif isinstance(value, dict | list):
                    waiting.append((cast("object", value), depth + 1, is_data or key in _DATA))


def _visible(schema: object, depth: int, *, named: bool = False) -> object:
    """Gives a part of the schema with its words as they are seen.

    `named` says that the keys are names, not keywords.
    """
    if depth > MAX_DEPTH:
        raise UnfitSchema(f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(schema, list):
        return [_visible(item, depth + 1) for item in cast("list[Any]", schema)]
    if isinstance(schema, str):
        return visible_text(schema)
    if not isinstance(schema, dict):
        return schema
    found: dict[str, object] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if not is_visible(key) or (not named and key in _EXACT and visible_value(value) != value):
            raise UnfitSchema("has hidden characters in what a call must repeat")
        if not named and key in _EXACT:
            found[key] = value
        elif not named and key in _WORDS and isinstance(value, str):
            found[key] = visible_text(value)
        else:
            found[key] = _visible(value, depth + 1, named=not named and key in _MAPS)
    return found
