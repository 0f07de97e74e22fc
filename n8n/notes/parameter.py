"""One parameter of a workflow, and the words that authors have for its type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from n8n.core.json_values import parse_json
from n8n.core.workflow_tool import Origin

MAX_NAME_CHARS = 64
"""Of a parameter; whatever is longer is no name."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "string": ("string", "str", "text"),
    "number": ("number", "float", "double", "decimal"),
    "integer": ("integer", "int"),
    "boolean": ("boolean", "bool"),
    "object": ("object", "json", "dict"),
    "array": ("array", "list"),
    "null": ("null",),
}
_TYPES: Mapping[str, Mapping[str, Any]] = {
    **{word: {"type": kind} for kind, words in _WORDS.items() for word in words},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "any": {},
}


@dataclass(frozen=True, slots=True)
class Parameter:
    schema: Mapping[str, Any]
    required: bool
    origin: Origin


def type_schema(word: str) -> Mapping[str, Any] | None:
    """`integer` -> {"type": "integer"}; `string[]` is an array of strings; None for other words."""
    word = word[:MAX_NAME_CHARS].strip().strip("{}()").lower()
    if word.endswith("[]") and (item := type_schema(word[:-2])) is not None:
        return {"type": "array", "items": item}
    return _TYPES.get(word)


def choices(text: str) -> list[str]:
    """`on|off`, `a, b or c`"""
    parts = re.split(r"[|,/]|\bor\b", text)
    return list(dict.fromkeys(p for p in (x.strip(" \"'`.") for x in parts) if p))


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """A value as its author wrote it, of the schema's type if it can be."""
    text = text.strip().strip("\"'`")
    if schema.get("type") in (None, "string"):
        return text
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return text
