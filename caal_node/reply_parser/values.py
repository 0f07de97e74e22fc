"""Values: which types a schema allows, and what text says as a value of these types.

Models write sums where JSON wants a number (`2*60`). json-repair reads a value up to where it stops
being a number and drops the rest: "in 2*60 minutes" would ring after two. So such a value is looked
at before anything is repaired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import prod
from typing import Any, Final, cast

from caal_node.reply_parser.literal_parser import LiteralParser, UnquotedText, UnreadableLiteral
from caal_node.reply_parser.tool_index import mapping

_MAX_SCHEMA_DEPTH = 8
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
_TYPES_OF_VALUES = {type(None): "null", bool: "boolean", int: "number", float: "number"}


def allowed_types(schema: Any, root: Mapping[str, Any], depth: int = 0) -> set[str]:
    """Return the JSON types that a schema allows; none when it does not say.

    root: the schema in which its references are looked up.
    """
    if not isinstance(schema, Mapping) or depth > _MAX_SCHEMA_DEPTH:
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
        values: list[Any] = list(given.get("enum") or ())
        found = {_TYPES_OF_VALUES.get(value.__class__, "string") for value in values}
        if "properties" in given:
            found.add("object")
        if "items" in given:
            found.add("array")
    if given.get("nullable") is True:
        found.add("null")
    return found


_DIGITS: Final = r"\d{1,9}(?:\.\d{1,6})?"
_SUM: Final = re.compile(rf"{_DIGITS}(?:\s{{0,4}}[*+]\s{{0,4}}{_DIGITS}){{1,5}}")
"""Only products and sums: with `-` and `/` people write ranges, dates and fractions, too."""
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_ITEM: Final = rf"\s*(?:[-+.\w]+|{_STRING})\s*,"
_BEGINS: Final = rf"(?:[:=]|\[(?:{_ITEM})*+)\s*"
"""What a value stands behind: a key, or a list's bracket and the items before it."""
_VALUE: Final = re.compile(rf"{_BEGINS}(?P<value>[-+]?\.?\d[^,}}\]\n\"]*)|{_STRING}", re.DOTALL)
_COMMENT: Final = re.compile(r"\s(?://|#|/\*).*", re.DOTALL)
_WHOLE: Final = re.compile(r"[-+]?[\w./-]+[\s;)]*")
"""One number or one word, which json-repair takes as it stands, and what it may leave behind."""


def evaluate(text: str) -> int | float | None:
    """Return what a product or a sum of plain numbers comes to; None if `text` is none."""
    bare = text.strip()
    if _SUM.fullmatch(bare) is None:
        return None
    products = (prod(map(float, part.split("*")), start=1.0) for part in bare.split("+"))
    total = sum(products, 0.0)
    return int(total) if total.is_integer() else total


def quote_sums(text: str) -> str | None:
    """Return broken JSON with its sums in quotes, so that repairing leaves them to the schema.

    None: there is a number in it that continues as something else.
    """
    parts: list[str] = []
    done = 0
    for found in _VALUE.finditer(text):
        if found["value"] is None:
            continue
        value = _COMMENT.sub("", found["value"]).rstrip()
        if _SUM.fullmatch(value):
            parts += text[done : found.start("value")], f'"{value}"'
            done = found.start("value") + len(value)
        elif _WHOLE.fullmatch(value) is None:
            return None
    return "".join(parts) + text[done:]


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
    numeric = "integer" in allowed or "number" in allowed
    if numeric and _INTEGER.fullmatch(bare):
        return int(bare)
    if "number" in allowed and _NUMBER.fullmatch(bare):
        return float(bare)
    if "integer" in allowed and re.fullmatch(r"[+-]?\d{1,15}\.0+", bare):
        return int(float(bare))
    if numeric and "string" not in allowed and (total := evaluate(bare)) is not None:
        return total
    if "boolean" in allowed and low in ("true", "false"):
        return low == "true"
    if bare.startswith(("{", "[", "(")) and not allowed.isdisjoint(("object", "array")):
        value = parse_literal(bare)
        if isinstance(value, dict) and "object" in allowed:
            return cast("dict[str, Any]", value)
        if isinstance(value, list) and "array" in allowed:
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
