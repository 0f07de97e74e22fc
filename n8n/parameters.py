"""One parameter of a workflow, as an author may write it down."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from n8n.tool import Origin

MAX_NAME_CHARS = 64
MAX_DEPTH = 6
"""How deep a parameter's own schema may go: a model fills in no deeper one."""

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
_NEED: Mapping[str, bool] = {"required": True, "mandatory": True, "optional": False}
_KEPT = frozenset(
    (
        *("type", "description", "enum", "const", "default", "format", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "items"),
        *("properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf"),
    )
)
"""A schema may say this much; references ($ref) above all stay out."""

_RANGE = re.compile(r"^(-?\d{1,15}(?:\.\d{1,9})?)\s*(?:-|–|\.\.|to)\s*(-?\d{1,15}(?:\.\d{1,9})?)$")
_BOUND = re.compile(r"^(min|max)(?:imum)?\s*[:=]?\s*(-?\d{1,15}(?:\.\d{1,9})?)$")
_DEFAULT = re.compile(r"^defaults?(?:\s+to|\s+is)?\s*[:=]?\s*(.+)$", re.IGNORECASE)
_ONE_OF = re.compile(r"\bone of:?\s+([^;]+)", re.IGNORECASE)
_JSDOC_NAME = re.compile(r"^(\[?)([A-Za-z_]\w*)(?:=([^\]]*))?\]?[:,]?$")
_PROSE_NAME = re.compile(r"\s*(?:and\s+)?[`\"']?([A-Za-z_]\w*)[`\"']?\s*")


@dataclass(frozen=True, slots=True)
class Parameter:
    schema: Mapping[str, Any]
    required: bool
    origin: Origin


def type_schema(word: str) -> Mapping[str, Any] | None:
    """`integer` -> {"type": "integer"}; `string[]` is an array of strings; None for other words."""
    word = word.strip().strip("{}()").lower()
    if word.endswith("[]") and (item := type_schema(word[:-2])) is not None:
        return {"type": "array", "items": item}
    return _TYPES.get(word)


def from_param_line(line: str) -> dict[str, Parameter]:
    """`@param days integer required How many days`, in any of the usual orders, and JSDoc's.

    At most one parameter; none when there is no name.
    """
    words = line.split()[1:]
    schema: dict[str, Any] = {}
    required = False
    if words and words[0].startswith("{"):
        schema.update(type_schema(words.pop(0)) or {})
    named = _JSDOC_NAME.match(words.pop(0)) if words else None
    if named is None or len(named[2]) > MAX_NAME_CHARS:
        return {}
    while words:
        word = words[0].strip("(),;:").lower()
        if (known := type_schema(word)) is not None and "type" not in schema:
            schema.update(known)
        elif word in _NEED:
            required = _NEED[word]
        elif "|" in word and not word.startswith("|") and "enum" not in schema:
            schema.update({"type": "string", "enum": _choices(words[0].strip("(),;:"))})
        else:
            break
        words.pop(0)
    if text := " ".join(words).lstrip("-–: ").strip():
        schema["description"] = text
    if named[3] is not None:
        schema["default"] = _typed(named[3], schema)
    return {named[2]: Parameter(schema, required and not named[1], "param")}


def from_prose(text: str) -> tuple[dict[str, Parameter], str]:
    """`city (required, string), days (optional, integer 1-7). More text.`

    The parameters, and what follows the sentence.
    """
    found: dict[str, Parameter] = {}
    at = 0
    while (named := _PROSE_NAME.match(text, at)) is not None:
        at = named.end()
        attributes = ""
        if text[at : at + 1] == "(":
            close = text.find(")", at)
            close = len(text) if close < 0 else close
            attributes, at = text[at + 1 : close], min(close + 1, len(text))
        end = _item_end(text, at)
        words = text[at:end].strip(" :-–")
        if len(named[1]) <= MAX_NAME_CHARS and named[1].lower() not in ("none", "nothing"):
            found[named[1]] = _from_attributes(attributes, words)
        at = end
        if text[at : at + 1] not in (",", ";"):
            break
        at += 1
    return found, text[at:].lstrip(". ").strip()


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
        known = type_schema(spec)
        return Parameter(known if known is not None else {"description": spec}, listed, "schema")
    if not isinstance(spec, dict):
        raise ValueError(f'{name!r} must be an object such as {{"type": "string"}}')
    spec = cast(dict[str, Any], spec)
    required = listed or spec.get("required") is True
    schema = cast(dict[str, Any], _kept({k: v for k, v in spec.items() if k != "for"}, MAX_DEPTH))
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    actions = spec.get("for")
    if actions:
        only = (
            ", ".join(map(str, cast(list[Any], actions))) if isinstance(actions, list) else actions
        )
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


def _from_attributes(attributes: str, words: str) -> Parameter:
    schema: dict[str, Any] = {}
    required = False
    told = [words] if words else []
    default: str | None = None
    if (choices := _ONE_OF.search(attributes)) is not None:
        schema["enum"] = _choices(choices[1])
        attributes = attributes[: choices.start()] + attributes[choices.end() :]
    for part in filter(None, (p.strip() for p in re.split(r"[,;]", attributes))):
        head, _, tail = part.partition(" ")
        if part.lower() in _NEED:
            required = _NEED[part.lower()]
        elif (fallback := _DEFAULT.match(part)) is not None:
            default = fallback[1]
        elif (bounds := _bounds(part)) is not None:
            schema.update(bounds)
        elif (known := type_schema(head)) is not None and "type" not in schema:
            schema.update(known)
            if (bounds := _bounds(tail)) is not None:
                schema.update(bounds)
            elif tail:
                told.append(tail)
        elif "|" in part and "enum" not in schema:
            schema["enum"] = _choices(part)
        else:
            told.append(part)
    if told:
        schema["description"] = ", ".join(told)
    if default is not None:
        schema["default"] = _typed(default, schema)
    return Parameter(schema, required, "prose")


def _item_end(text: str, at: int) -> int:
    for i in range(at, len(text)):
        if text[i] in ",;" or (text[i] == "." and not text[i + 1 : i + 2].strip()):
            return i
    return len(text)


def _bounds(text: str) -> dict[str, float] | None:
    text = text.strip().lower()
    if (both := _RANGE.match(text)) is not None:
        return {"minimum": _number(both[1]), "maximum": _number(both[2])}
    if (one := _BOUND.match(text)) is not None:
        return {f"{one[1]}imum": _number(one[2])}
    return None


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _choices(text: str) -> list[str]:
    parts = re.split(r"[|,/]|\bor\b", text)
    return list(dict.fromkeys(p for p in (x.strip(" \"'`.") for x in parts) if p))


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    text = text.strip().strip("\"'`")
    if schema.get("type") in (None, "string"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
