"""The schema block of notes: what stands between `---schema` and `---`, or in a code fence.

It holds JSON such as `{"city": {"type": "string", "required": true}}`, a whole JSON schema of an
object, or lines of `city: string, required`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from n8n.core.json_values import DECODER, mapping, sequence, well_formed
from n8n.notes.parameter import MAX_NAME_CHARS, Parameter, type_schema
from n8n.notes.parameter_text import from_list_line, from_words

MAX_DEPTH: Final = 6
"""How deep a parameter's own schema may go: a model fills in no deeper one."""
MAX_LIST_VALUES: Final = 256
"""The values of an enum; a check compares each with each, and a model reads no more."""
_KEPT_KEYWORDS: Final = frozenset(
    (
        *("type", "description", "enum", "const", "default", "format", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "items"),
        *("properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf"),
    )
)
"""The keywords that a schema may use; above all references ($ref) stay out."""
_NO_FORMATS: Final = FormatChecker(())
_OPENS: Final = re.compile(
    r"^\s*+(?:-{3,}+\s*+schema(?:\s*+-++)?|`{3,}+\s*+schema)\s*+(?::\s*+)?$", re.IGNORECASE
)
_CLOSES: Final = re.compile(r"^\s*(?:-{3,}|`{3,})\s*$")
_CODE_FENCE: Final = re.compile(r"^\s*`{3,}\w*\s*$")


def opens_block(line: str) -> bool:
    return _OPENS.match(line) is not None


def read_block(lines: list[str], start: int) -> tuple[int, dict[str, Parameter], str | None]:
    """Read the block that the line at `start` opens.

    Returns the index of the line after it, its parameters, and the problem if it cannot be read.
    """
    body = "\n".join("" if _CODE_FENCE.match(x) else x for x in lines[start + 1 :])
    opening = len(body) - len(body.lstrip())
    try:
        block, end = DECODER.raw_decode(body, opening)
        found = _from_json(well_formed(body, block))
    except (ValueError, RecursionError) as e:
        after = _past(lines, start + 1, lambda x: not _CLOSES.match(x))
        if body.lstrip()[:1] not in ("{", "[") and (found := _from_lines(lines, start)):
            return after, found, None
        at = start + 2 + body.count("\n", 0, getattr(e, "pos", opening))
        reason = _no_json(e) if isinstance(e, json.JSONDecodeError) else str(e)
        return after, {}, f"line {at}: the ---schema block: {reason}"
    after = start + 2 + body.count("\n", 0, end)
    end = _past(lines, after, lambda x: not x.strip() or bool(_CODE_FENCE.match(x)))
    return end, found, None


def _no_json(error: json.JSONDecodeError) -> str:
    """Say what the JSON stumbles over, and what mostly is the cause."""
    at = error.doc[error.pos :].lstrip()[:1]
    before = error.doc[: error.pos].rstrip()[-1:]
    # Python tells of the comma itself since 3.13, and before of what follows it.
    if at == "," or (before == "," and at in ("]", "}")):
        return f"it is no JSON at {at!r}: is there a comma too many?"
    where = repr(at) if at else "its end"
    return f"it is no JSON at {where}: is a quote, a comma, a value or a bracket missing?"


def _past(lines: list[str], at: int, skipped: Callable[[str], bool]) -> int:
    while at < len(lines) and skipped(lines[at]):
        at += 1
    return at + 1 if at < len(lines) and _CLOSES.match(lines[at]) else at


def _from_lines(lines: list[str], start: int) -> dict[str, Parameter]:
    """Read lines of `city: string, required` up to the one that closes the block."""
    found: dict[str, Parameter] = {}
    for line in lines[start + 1 :]:
        if _CLOSES.match(line):
            break
        found |= from_list_line(line.strip().lstrip("-*• "), "schema")
    return found


def _from_json(block: object) -> dict[str, Parameter]:
    """Read a map of parameters, or a JSON schema of an object. Raises ValueError, one line."""
    if not isinstance(block, dict):
        raise ValueError('it must be a JSON object such as {"city": {"type": "string"}}')
    block = cast(dict[str, Any], block)
    properties, required = block, ()
    if isinstance(block.get("properties"), dict):
        properties, required = mapping(block["properties"]), sequence(block.get("required"))
    return {
        name: _from_spec(name, spec, name in required)
        for name, spec in properties.items()
        if 0 < len(name) <= MAX_NAME_CHARS
    }


def _from_spec(name: str, spec: Any, is_listed: bool) -> Parameter:
    if isinstance(spec, str):
        return from_words(spec, "schema", required=is_listed)
    if not isinstance(spec, dict):
        raise ValueError(f'{name!r} must be an object such as {{"type": "string"}}')
    spec = cast(dict[str, Any], spec)
    schema = cast(dict[str, Any], _kept(spec, MAX_DEPTH))
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    if actions := spec.get("for"):
        only = ", ".join(map(str, sequence(actions) or [actions]))
        schema["description"] = f"{schema.get('description', '')} (for {only})".strip()
    if _longest_list(schema) > MAX_LIST_VALUES:
        raise ValueError(f"{name!r}: a list of over {MAX_LIST_VALUES} values is too long")
    try:
        # Without its formats: it would compile each pattern, which may take seconds.
        Draft202012Validator.check_schema(schema, format_checker=_NO_FORMATS)
    except SchemaError as e:
        raise ValueError(f"{name!r}: {e.message.splitlines()[0][:120]}") from None
    return Parameter(schema, is_listed or spec.get("required") is True, "schema")


def _longest_list(schema: Any) -> int:
    inner: list[Any] = []
    if isinstance(schema, dict):
        inner = list(cast(dict[str, Any], schema).values())
    elif isinstance(schema, list):
        inner = cast(list[Any], schema)
    own = len(inner) if isinstance(schema, list) else 0
    return max(own, *map(_longest_list, inner)) if inner else own


def _kept(schema: Any, depth: int) -> Any:
    """Return a schema with the kept keywords alone, down to a depth."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in cast(dict[str, object], schema).items():
        if key not in _KEPT_KEYWORDS or depth == 0:
            continue
        if key == "type" and isinstance(value, str):
            kept = {**kept, **(type_schema(value) or {"type": value}), **kept}
        elif key == "properties" and (properties := mapping(value)):
            kept[key] = {name: _kept(inner, depth - 1) for name, inner in properties.items()}
        elif key in ("anyOf", "oneOf", "allOf") and (schemas := sequence(value)):
            kept[key] = [_kept(inner, depth - 1) for inner in schemas]
        elif key in ("items", "additionalProperties"):
            kept[key] = _kept(value, depth - 1)
        else:
            kept[key] = value
    return kept
