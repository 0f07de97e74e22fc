"""Tool schemas with everything left out that a model does not need to fill in arguments.

Generated schemas (pydantic, zod) are up to half titles, nulls and references. What remains means
the same to whoever fills it in; arguments are validated against the full schema, not this one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

from referencing import Registry, Specification
from referencing.exceptions import Unresolvable

Schema: TypeAlias = Mapping[str, Any]


TOOL_DESCRIPTION_CHARS: Final = 300
"""Two or three sentences: what a tool does and when to use it."""
FIELD_DESCRIPTION_CHARS: Final = 140
"""One sentence, or two short ones."""
INLINED_NODES: Final = 5_000
"""Subschemas after which references stay references: definitions that refer to each other twice
double at every level."""
DEPTH: Final = 32
"""Levels of a schema that are kept; what is deeper accepts anything."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])")
_ABBREVIATION: Final = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|no)|\.\.)\.\Z", re.I)
_ABBREVIATION_CHARS: Final = 8
_NOISE: Final = frozenset({"title", "$schema", "$id", "$comment"})
_ONE: Final = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
)
_MANY: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"}) | _DEFINITIONS
_ANNOTATIONS: Final = frozenset({"description", "default", "examples", "deprecated"})


def compact_schema(schema: Schema) -> dict[str, Any]:
    """A JSON schema, a function (`name`, `description`, `parameters`) or a whole tool, compacted.

    Dropped: titles, `$schema`, `$id` and `$comment`, null defaults, `additionalProperties` that
    are only true or false, empty descriptions and `required` lists, and the null of an optional
    property. Local references are put in place where they do not lead back to themselves.
    Descriptions keep their first sentences. The order of what stays is the order it came in.
    """
    if isinstance(schema.get("function"), Mapping):
        return {**schema, "function": compact_schema(schema["function"])}
    if isinstance(schema.get("name"), str) and isinstance(schema.get("parameters"), Mapping):
        description = first_sentences(schema.get("description"), TOOL_DESCRIPTION_CHARS)
        changed = {"description": description, "parameters": compact_schema(schema["parameters"])}
        merged = {key: changed.get(key, value) for key, value in schema.items()}
        return {key: value for key, value in merged.items() if (key, value) != ("description", "")}
    try:
        return _Compactor(schema, inline=True).root()
    except _TooMany:
        return _Compactor(schema, inline=False).root()


class _TooMany(Exception):
    """Putting the references in place makes the schema too large."""


class _Compactor:
    def __init__(self, root: Schema, *, inline: bool) -> None:
        self._root = root
        self._inline = inline
        self._nodes = 0
        self._references = _References(root)
        self._kept_refs: list[str] = []

    def root(self) -> dict[str, Any]:
        result = self.schema(self._root, 0)
        # A kept definition may keep others: the list grows while it is walked.
        for ref in self._kept_refs:
            # Other references point into what stays in its place.
            if (found := self._references.definition(ref)) is not None:
                home, name, definition = found
                kept = result.setdefault(home, {})
                if name not in kept:
                    kept[name] = self.schema(definition, 1)
        return result

    def schema(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping):
            return schema
        self._nodes += 1
        if self._inline and self._nodes > INLINED_NODES:
            raise _TooMany
        if depth > DEPTH:
            return {}
        source = self._resolve(cast(Schema, schema))
        required = _texts(source.get("required"))
        result: dict[str, Any] = {}
        for key, value in source.items():
            if key in _NOISE or _says_nothing(key, value) or (not depth and key in _DEFINITIONS):
                continue
            result[key] = self._member(key, value, required, depth)
        return _unwrap(result, "allOf")

    def _member(self, key: str, value: Any, required: frozenset[str], depth: int) -> Any:
        if key == "description":
            return first_sentences(value, FIELD_DESCRIPTION_CHARS)
        if key in _ONE:
            return self.schema(value, depth + 1)
        if key in _MANY and isinstance(value, Sequence):
            return [self.schema(each, depth + 1) for each in cast(Sequence[Any], value)]
        if key in _NAMED and isinstance(value, Mapping):
            named = {
                name: self.schema(each, depth + 1)
                for name, each in cast(Mapping[str, Any], value).items()
            }
            if key == "properties":
                return {
                    name: each if name in required else _without_null(each)
                    for name, each in named.items()
                }
            return named
        return value

    def _resolve(self, schema: Schema) -> Schema:
        """The schema with its reference, if any, put in place; its own members win."""
        for _ in range(DEPTH):
            ref = schema.get("$ref")
            target = self._references.target(ref) if isinstance(ref, str) else None
            if not isinstance(ref, str) or not isinstance(target, Mapping):
                return schema
            if not self._inline or self._references.leads_back(ref):
                if ref not in self._kept_refs:
                    self._kept_refs.append(ref)
                return schema
            own = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**cast(Schema, target), **own}
        return schema


def _says_nothing(key: str, value: Any) -> bool:
    return (
        (key == "default" and value is None)
        or (key == "additionalProperties" and isinstance(value, bool))
        or (key == "description" and not (isinstance(value, str) and value.strip()))
        or (key == "required" and value == [])
    )


def _without_null(schema: Any) -> Any:
    """An optional property without its null: who has nothing to say leaves the property out."""
    if not isinstance(schema, dict):
        return schema
    result = cast(dict[str, Any], schema)
    for key in ("anyOf", "oneOf"):
        if isinstance(result.get(key), list):
            choices = [each for each in result[key] if not _is_null(each)]
            if choices and len(choices) < len(result[key]):
                return _without_null(_unwrap({**result, key: choices}, key))
    kind = result.get("type")
    if isinstance(kind, list) and "null" in kind:
        kinds = [each for each in cast(list[str], kind) if each != "null"]
        result = {**result, "type": kinds[0] if len(kinds) == 1 else kinds or "null"}
        if isinstance(result.get("enum"), list):
            result["enum"] = [each for each in result["enum"] if each is not None]
    return result


def _is_null(schema: Any) -> bool:
    return schema in ({"type": "null"}, {"const": None}, {"enum": [None]})


def _unwrap(schema: dict[str, Any], key: str) -> dict[str, Any]:
    """A choice of one is that one, where its members and those beside it do not collide."""
    only = cast(Any, schema.get(key))
    if not isinstance(only, list) or len(cast(list[Any], only)) != 1:
        return schema
    inner = cast(list[Any], only)[0]
    outer = {name: value for name, value in schema.items() if name != key}
    if not isinstance(inner, dict) or set(cast(Schema, inner)) & set(outer) - _ANNOTATIONS:
        return schema
    return {**cast(dict[str, Any], inner), **outer}


def _texts(value: Any) -> frozenset[str]:
    if not isinstance(value, list):
        return frozenset()
    return frozenset(each for each in cast(list[Any], value) if isinstance(each, str))


class _References:
    """The local references of one schema: JSON pointers (RFC 6901) as URI fragments."""

    def __init__(self, root: Schema) -> None:
        # Opaque: no `$id` of a stranger's schema is looked at, only what lies under the root.
        resource = Specification[Any].OPAQUE.create_resource(root)
        self._resolver: Final = Registry[Any]().resolver_with_root(resource)
        self._loops: dict[str, bool] = {}

    def target(self, ref: str) -> Any:
        """What a reference points at; None where there is nothing, or it is not a local one."""
        if ref != "#" and not ref.startswith("#/"):
            return None
        try:
            return self._resolver.lookup(ref).contents
        except (Unresolvable, TypeError, ValueError):  # it leads nowhere, or through a number
            return None

    def definition(self, ref: str) -> tuple[str, str, Any] | None:
        """Where the definition lives that a reference leads into: `$defs`, its name, itself."""
        match ref.split("/"):
            case ["#", ("$defs" | "definitions") as home, name, *_]:
                return (
                    home,
                    unquote(name).replace("~1", "/").replace("~0", "~"),
                    self.target(f"#/{home}/{name}"),
                )
            case _:
                return None

    def leads_back(self, ref: str) -> bool:
        """Whether following `ref`, and what it points at, comes to `ref` again."""
        if ref not in self._loops:
            seen: set[str] = set()
            ahead = _refs(self.target(ref))
            while ahead:
                if (following := ahead.pop()) not in seen:
                    seen.add(following)
                    ahead.extend(_refs(self.target(following)))
            self._loops[ref] = ref in seen
        return self._loops[ref]


def _refs(value: Any) -> list[str]:
    found: list[str] = []
    ahead: list[Any] = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, Mapping):
            for key, member in cast(Schema, each).items():
                if key == "$ref" and isinstance(member, str):
                    found.append(member)
                else:
                    ahead.append(member)
        elif isinstance(each, list):
            ahead.extend(cast(list[Any], each))
    return found


def first_sentences(text: object, max_chars: int) -> str:
    """The part of a description that a model needs: as many whole sentences as fit, on one line.

    Where the first sentence is too long by itself, as many of its words as fit.
    """
    if not isinstance(text, str):
        return ""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    end = 0
    for match in _SENTENCE_END.finditer(line):
        if match.start() > max_chars:
            break
        before = line[max(0, match.start() - _ABBREVIATION_CHARS) : match.start()]
        if not _ABBREVIATION.search(before):
            end = match.start()
    if end:
        return line[:end]
    cut = line[: max_chars - 1]
    return f"{cut.rsplit(' ', 1)[0].rstrip(' ,;:')}…"
