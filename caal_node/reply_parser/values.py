"""Values: from JSON, from bare text by its schema, and from what else models write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from caal_node.reply_parser.arithmetic import evaluate
from caal_node.reply_parser.literal_parser import LiteralParser, UnquotedText, UnreadableLiteral
from caal_node.reply_parser.schema_types import allowed_types

_JSON = json.JSONDecoder(strict=False)
"""Made once; `json.loads` makes one every time that it gets an option."""
_INTEGER = re.compile(r"[+-]?\d{1,400}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_MAX_LITERAL_CHARS = 20_000
"""Longer text that is no JSON is refused."""
_MAX_DEPTH = 64
"""Deeper nesting is no call of a tool."""


def load_json(text: str) -> Any:
    """Return the value of strict JSON; NaN and control characters in strings are allowed.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return _JSON.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_too_deep(text: str) -> bool:
    """Return whether brackets nest deeper than any call's arguments do."""
    depth = 0
    for bracket in re.findall(r"[{}\[\]()]", text):
        depth += 1 if bracket in "{[(" else -1
        if depth > _MAX_DEPTH:
            return True
    return False


def typed(text: str, schema: Any, *, root: Mapping[str, Any] | None = None) -> Any:
    """Return a value that was written as bare text, typed by its schema. What does not fit it
    stays text.

    root: the schema in which references are looked up.
    """
    allowed = allowed_types(schema, root or {})
    if not allowed:
        return text
    bare = text.strip()
    low = bare.lower()
    if "null" in allowed and bare in ("null", "None"):
        return None
    if "integer" in allowed and _INTEGER.fullmatch(bare):
        return int(bare)
    if "number" in allowed:
        if _INTEGER.fullmatch(bare):
            return int(bare)
        if _NUMBER.fullmatch(bare):
            return float(bare)
    if "integer" in allowed and re.fullmatch(r"[+-]?\d{1,15}\.0+", bare):
        return int(float(bare))
    if ("integer" in allowed or "number" in allowed) and "string" not in allowed:
        total = evaluate(bare)
        if total is not None:
            return total
    if "boolean" in allowed and low in ("true", "false"):
        return low == "true"
    if "object" in allowed and bare.startswith("{"):
        value = parse_literal(bare)
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
    if "array" in allowed and bare.startswith(("[", "(")):
        value = parse_literal(bare)
        if isinstance(value, list):
            return cast("list[Any]", value)
    return text


def untyped(text: str) -> Any:
    """Return a value whose schema is unknown, in a format that writes JSON for all but strings."""
    bare = text.strip()
    try:
        return load_json(bare) if bare else text
    except ValueError:
        return text


def parse_literal(text: str) -> Any:
    """Return the value of JSON, of JSON with escaped quotes, or of a Python literal; else the
    text itself."""
    try:
        return load_json(text)
    except ValueError:
        pass
    if '\\"' in text:
        try:
            return load_json(_JSON.decode(f'"{text}"'))
        except (ValueError, TypeError):
            pass
    if is_too_deep(text) or len(text) > _MAX_LITERAL_CHARS:
        return text
    parser = LiteralParser(text)
    try:
        value: Any = parser.value()
    except UnreadableLiteral:
        return text
    return text if parser.skip_space() or has_unquoted_text(value) else value


def has_unquoted_text(value: Any) -> bool:
    """Return whether something in `value` stood without quotes, so that it was no literal."""
    if isinstance(value, dict):
        return any(map(has_unquoted_text, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return any(map(has_unquoted_text, cast("list[Any]", value)))
    return isinstance(value, UnquotedText)
