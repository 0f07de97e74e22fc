"""Parameters as a block of JSON in the notes: a map of them, or a JSON schema of an object."""

from __future__ import annotations

from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from n8n.core.json_values import sequence
from n8n.notes.parameter import MAX_NAME_CHARS, Parameter, type_schema
from n8n.notes.parameter_text import from_words

MAX_DEPTH = 6
"""How deep a parameter's own schema may go: a model fills in no deeper one."""
_KEPT = frozenset(
    (
        *("type", "description", "enum", "const", "default", "format", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "items"),
        *("properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf"),
    )
)
"""A schema may say this much; references ($ref) above all stay out."""


def from_schema_block(block: object) -> dict[str, Parameter]:
    """A map of parameters, or a JSON schema of an object. Raises ValueError, one line."""
    if not isinstance(block, dict):
        raise ValueError('it must be a JSON object such as {"city": {"type": "string"}}')
    block = cast(dict[str, Any], block)
    properties, required = block, ()
    if isinstance(block.get("properties"), dict):
        properties = cast(dict[str, Any], block["properties"])
        listed = block.get("required")
        required = tuple(cast(list[Any], listed)) if isinstance(listed, list) else ()
    return {
        name: _from_spec(name, spec, name in required)
        for name, spec in properties.items()
        if 0 < len(name) <= MAX_NAME_CHARS
    }


def _from_spec(name: str, spec: Any, listed: bool) -> Parameter:
    if isinstance(spec, str):
        return from_words(spec, "schema", required=listed)
    if not isinstance(spec, dict):
        raise ValueError(f'{name!r} must be an object such as {{"type": "string"}}')
    spec = cast(dict[str, Any], spec)
    required = listed or spec.get("required") is True
    schema = cast(dict[str, Any], _kept({k: v for k, v in spec.items() if k != "for"}, MAX_DEPTH))
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    if actions := spec.get("for"):
        only = ", ".join(map(str, sequence(actions) or [actions]))
        schema["description"] = f"{schema.get('description', '')} (for {only})".strip()
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as e:
        raise ValueError(f"{name!r}: {e.message.splitlines()[0][:120]}") from None
    return Parameter(schema, required, "schema")


def _kept(node: Any, depth: int) -> Any:
    if not isinstance(node, dict):
        return node
    kept: dict[str, Any] = {}
    for key, value in cast(dict[str, Any], node).items():
        if key not in _KEPT or depth == 0:
            continue
        if key == "type" and isinstance(value, str):
            kept.update({**(type_schema(value) or {"type": value}), **kept})
        elif key == "properties" and isinstance(value, dict):
            inner = cast(dict[str, Any], value)
            kept[key] = {name: _kept(spec, depth - 1) for name, spec in inner.items()}
        elif isinstance(value, list) and key in ("anyOf", "oneOf", "allOf"):
            kept[key] = [_kept(spec, depth - 1) for spec in cast(list[Any], value)]
        else:
            kept[key] = (
                _kept(value, depth - 1) if key in ("items", "additionalProperties") else value
            )
    return kept
