"""Compacts tool schemas to what a model needs to fill in arguments.

Up to half of a generated schema (pydantic, zod) is titles, nulls and references. The compact one
means the same to whoever fills it in; arguments are validated against the full schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

from referencing import Registry, Specification
from referencing.exceptions import Unresolvable

from caal_node.core.items import ToolsItem
from caal_node.core.tool_spec import ToolSchema

# Tools as text: what a model reads of them where their schemas are not sent to its server.

DESCRIPTION_CHARS: Final = 160
"""Characters of a tool's description: two lines. More says how a tool works, not when to use it."""
PARAMETER_CHARS: Final = 80
"""Characters of one parameter's description."""
PURPOSE_CHARS: Final = 60
"""Characters of what a told tool is for: one short sentence."""
NOTE_CHARS: Final = 40
"""Characters of the description of a told tool's parameter."""
_NAME_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_STEM_CHARS: Final = 4
"""The beginning of a word by which it is looked for in a text: `switch_light` and "switches"."""
_TOLD_KEPT: Final = 256
"""Told tools whose text is kept: those of a dozen windows. Every request shows all of them again.
"""
_NESTING_MAX: Final = 4
"""Levels of nesting that are written out; whatever lies deeper is `object`."""
_WORD: Final = re.compile(r"[\w.$-]+")
"""A name that can be no sentence, and no line of its own."""


_SECTION: Final = re.compile(
    r"(?<!\s)\s++(?:Args|Arguments|Parameters|Params|Returns|Raises|Yields)\s*+:\s.*", re.DOTALL
)
"""The rest of a Python doc string, whose lines stand at the parameters too."""


def catalogue(tools: Sequence[ToolSchema]) -> str:
    """Write tools as text: the name, at most two lines of what it is for, and its arguments.

    The arguments are written the way types are written in code, `{city: string, days?: integer
    (1 to 7)}`. That takes a third of the tokens of JSON schema and loses nothing a call needs.
    """
    return "\n".join(map(_catalogue_entry, tools))


@lru_cache(_TOLD_KEPT)
def told_catalogue(told: ToolsItem) -> str:
    """Write the tools that stand in a conversation as text, a line each.

    A line is a signature, `set_light(room, state: on|off, brightness?: integer)`, and what the tool
    is for where its name does not say it. That takes half of what `catalogue` does.
    """
    return "\n".join(f"- {tool['function']['name']}{described(tool)}" for tool in told.tools)


def described(tool: ToolSchema) -> str:
    """Write one tool on a line, without its name: its arguments, and what it is for."""
    function = tool["function"]
    purpose = first_sentences(_SECTION.sub("", function.get("description") or ""), PURPOSE_CHARS)
    more = f": {purpose}" if purpose and not _is_told_by(function["name"], purpose) else ""
    return f"({_arguments(tool)}){more}"


def _catalogue_entry(tool: ToolSchema) -> str:
    name, shape = tool["function"]["name"], _shape(tool)
    about = first_sentences(tool["function"].get("description") or "", DESCRIPTION_CHARS)
    return f"- {name}: {about}\n  {shape}" if about else f"- {name} {shape}"


def _arguments(tool: ToolSchema) -> str:
    schema = cast("Mapping[str, Any]", tool["function"].get("parameters") or {})
    if takes_any(schema):
        return "any arguments"
    required = cast("Sequence[str]", schema.get("required") or ())
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    return ", ".join(_argument(name, sub, name in required) for name, sub in properties.items())


def _argument(name: str, schema: Any, required: bool) -> str:
    text = f"{_key(name)}{'' if required else '?'}"
    if (kind := _type(schema, 0, quoted=False)) != "string":
        text = f"{text}: {kind}"
    about = _about(schema, NOTE_CHARS)
    return f"{text} ({about})" if about else text


def _is_told_by(name: str, purpose: str) -> bool:
    """Say whether a tool's own name, of two words or more, is made of words of its purpose."""
    own = [word.lower() for word in _NAME_WORD.findall(name.rpartition("__")[2])]
    said = purpose.lower()
    return len(own) > 1 and all(word[:_STEM_CHARS] in said for word in own)


def _shape(tool: ToolSchema) -> str:
    return _object_type(cast("Mapping[str, Any]", tool["function"].get("parameters") or {}), 0)


def _object_type(schema: Mapping[str, Any], depth: int) -> str:
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    if depth > _NESTING_MAX or (depth and not properties):
        return "object"
    if takes_any(schema):
        return "{any arguments}"
    required = cast("Sequence[str]", schema.get("required") or ())
    shown = (_member(name, sub, name in required, depth) for name, sub in properties.items())
    return "{" + ", ".join(shown) + "}"


def _member(name: str, schema: Any, required: bool, depth: int) -> str:
    text = f"{_key(name)}{'' if required else '?'}: {_type(schema, depth)}"
    about = _about(schema, PARAMETER_CHARS)
    return f"{text} ({about})" if about else text


def _key(name: str) -> str:
    return name if _WORD.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _about(schema: Any, max_chars: int) -> str:
    if not isinstance(schema, Mapping):
        return ""
    return first_sentences(cast("Mapping[str, Any]", schema).get("description"), max_chars)


def _type(schema: Any, depth: int, *, quoted: bool = True) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    given = cast("Mapping[str, Any]", schema)
    if "const" in given:
        return json.dumps(given["const"], ensure_ascii=False)
    if isinstance(given.get("enum"), list):
        values = cast("list[object]", given["enum"])
        if not quoted and all(isinstance(v, str) and _WORD.fullmatch(v) for v in values):
            return "|".join(map(str, values))
        return "|".join(json.dumps(v, ensure_ascii=False) for v in values)
    for key in ("anyOf", "oneOf"):
        if isinstance(options := given.get(key), list):
            return "|".join(dict.fromkeys(_type(o, depth) for o in cast("list[Any]", options)))
    kind = given.get("type")
    if isinstance(kind, list):
        return "|".join(map(_type_name, cast("list[object]", kind)))
    if kind == "array":
        return f"[{_type(given.get('items', {}), depth + 1)}]"
    if kind == "object" or "properties" in given:
        return _object_type(given, depth + 1)
    return _type_name(kind)


def _type_name(kind: object) -> str:
    return kind if isinstance(kind, str) and _WORD.fullmatch(kind) else "any"


# Says which keywords of a stranger's schema a model, and its server, are shown.
#
# A model's server may turn schemas into grammars, and a repetition of 4,000,000,000 takes its
# memory. What is broken, or larger than a model can use, is not shown; arguments are checked
# against the whole schema all the same.

PATTERN_CHARS: Final = 120
"""Characters of a pattern; a model does not follow a longer one."""
COUNT_MAX: Final = 10_000
"""Characters, items or members that a schema may ask for or allow; beyond it there is no bound."""
CHOICES_MAX: Final = 256
"""Values of an enum, or alternatives."""
NAME_CHARS: Final = 120
"""Characters of a parameter's name."""
DATA_CHARS: Final = 2_000
"""Characters of a default, a constant or an example."""
_TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_COUNTS: Final = frozenset(
    {f"{least}{of}" for least in ("min", "max") for of in ("Length", "Items", "Properties")}
)
_NUMBERS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)
_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_DATA: Final = frozenset({"default", "const", "example", "examples"})
_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LARGE_REPEAT: Final = re.compile(r"\{[\d,]{4,}")
_NUMBER_MAX: Final = 1e18


def is_shown(key: str, value: Any) -> bool:
    """Say whether the keyword `key` of a schema is shown with this value."""
    if key == "type":
        kinds = cast("list[Any]", value if isinstance(value, list) else [value])
        return len(kinds) <= len(_TYPES) and all(
            isinstance(kind, str) and kind in _TYPES for kind in kinds
        )
    if key == "pattern":
        return (
            isinstance(value, str)
            and len(value) <= PATTERN_CHARS
            and _LARGE_REPEAT.search(value) is None
        )
    if key in _COUNTS:
        return type(value) is int and 0 <= value <= COUNT_MAX
    if key in _NUMBERS:
        return isinstance(value, bool) or (
            isinstance(value, int | float) and -_NUMBER_MAX <= value <= _NUMBER_MAX
        )
    if key == "enum" or key in _LISTS:
        return isinstance(value, list) and len(cast("list[Any]", value)) <= CHOICES_MAX
    if key == "required":
        return isinstance(value, list) and all(
            isinstance(name, str) for name in cast("list[Any]", value)
        )
    if key in _DATA:
        return len(json.dumps(value, default=str)) <= DATA_CHARS
    return not (key in _MAPS and not isinstance(value, Mapping))


Schema: TypeAlias = Mapping[str, Any]

TOOL_DESCRIPTION_CHARS: Final = 300
"""Characters for two or three sentences: what a tool does and when to use it."""
FIELD_DESCRIPTION_CHARS: Final = 140
"""Characters for one sentence, or two short ones."""
INLINED_NODES: Final = 1_000
"""Subschemas and references after which references are no longer inlined, some 10 ms: definitions
that refer to each other twice double at every level."""
DEPTH: Final = 32
"""Levels of a schema that are kept; a deeper level becomes a schema that accepts anything."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])")
_ABBREVIATION: Final = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|no)|\.\.)\.\Z", re.I)
_ABBREVIATION_CHARS: Final = 8
_DROPPED: Final = frozenset({"title", "$schema", "$id", "$comment"})
_SUBSCHEMA: Final = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
)
_SUBSCHEMA_LIST: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_SUBSCHEMA_MAP: Final = _DEFINITIONS | {"properties", "patternProperties", "dependentSchemas"}
_ANNOTATIONS: Final = frozenset({"description", "default", "examples", "deprecated"})


def compact_schema(schema: Schema) -> dict[str, Any]:
    """Compact a JSON schema, a function (`name`, `description`, `parameters`) or a whole tool.

    This drops titles, `$schema`, `$id` and `$comment`, null defaults, `additionalProperties` that
    are only true or false (true stays where no property is named), empty descriptions and
    `required` lists, and the null of an optional property. Local references are inlined where they
    are not recursive. Descriptions keep their first sentences. The order stays the same.
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
    except _TooLarge:
        return _Compactor(schema, inline=False).root()


class _TooLarge(Exception):
    """Inlined references make the schema too large."""


class _Compactor:
    def __init__(self, root: Schema, *, inline: bool) -> None:
        self._root = root
        self._inline = inline
        self._nodes = 0
        self._references = _References(root)
        self._kept_refs: list[str] = []

    def root(self) -> dict[str, Any]:
        result = self.schema(self._root, 0)
        # A kept definition may refer to others, so the list may grow during the loop.
        for ref in self._kept_refs:
            # A reference to another place needs no definition, as that place is kept.
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
            raise _TooLarge
        if depth > DEPTH:
            return {}
        source = self._resolve(cast(Schema, schema))
        required = _texts(source.get("required"))
        result: dict[str, Any] = {}
        for key, value in source.items():
            if key in _DROPPED or (not depth and key in _DEFINITIONS):
                continue
            if _is_empty(key, value) and not (key == "additionalProperties" and takes_any(source)):
                continue
            if not is_shown(key, value):
                continue
            result[key] = self._member(key, value, required, depth)
        return _unwrap(result, "allOf")

    def _member(self, key: str, value: Any, required: frozenset[str], depth: int) -> Any:
        if key == "description":
            return first_sentences(value, FIELD_DESCRIPTION_CHARS)
        if key in _SUBSCHEMA:
            return self.schema(value, depth + 1)
        if key in _SUBSCHEMA_LIST and isinstance(value, Sequence):
            return [self.schema(each, depth + 1) for each in cast(Sequence[Any], value)]
        if key in _SUBSCHEMA_MAP and isinstance(value, Mapping):
            named = {
                name: self.schema(each, depth + 1)
                for name, each in cast(Mapping[str, Any], value).items()
                if len(name) <= NAME_CHARS
            }
            if key == "properties":
                return {
                    name: each if name in required else _without_null(each)
                    for name, each in named.items()
                }
            return named
        return value

    def _is_recursive(self, ref: str) -> bool:
        """Return whether `ref` leads back to itself. A long chain of references is as good as."""
        recursive, looked_at = self._references.is_recursive(ref, INLINED_NODES - self._nodes)
        self._nodes += looked_at
        if self._nodes > INLINED_NODES:
            raise _TooLarge
        return recursive

    def _resolve(self, schema: Schema) -> Schema:
        """Inline the reference of a schema, if it has one. The schema's own members win."""
        for _ in range(DEPTH):
            ref = schema.get("$ref")
            target = self._references.target(ref) if isinstance(ref, str) else None
            if not isinstance(ref, str) or not isinstance(target, Mapping):
                return schema
            if not self._inline or self._is_recursive(ref):
                if ref not in self._kept_refs:
                    self._kept_refs.append(ref)
                return schema
            own = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**cast(Schema, target), **own}
        return schema


def takes_any(schema: Schema) -> bool:
    """Return whether an object names no property and says that any is welcome."""
    return schema.get("additionalProperties") is True and not schema.get("properties")


def _is_empty(key: str, value: Any) -> bool:
    return (
        (key == "default" and value is None)
        or (key == "additionalProperties" and isinstance(value, bool))
        or (key == "description" and not (isinstance(value, str) and value.strip()))
        or (key == "required" and value == [])
    )


def _without_null(schema: Any) -> Any:
    """Remove null from an optional property, which can be left out instead."""
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
    """Replace a choice of one by that one, where no member collides with those beside it."""
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
        # OPAQUE ignores every `$id`, so that references resolve only below this schema's root.
        resource = Specification[Any].OPAQUE.create_resource(root)
        self._resolver: Final = Registry[Any]().resolver_with_root(resource)
        self._recursive: dict[str, bool] = {}

    def target(self, ref: str) -> Any:
        """Return the target of a local reference, or None where it has none or is not local."""
        if ref != "#" and not ref.startswith("#/"):
            return None
        try:
            return self._resolver.lookup(ref).contents
        except (
            Unresolvable,
            TypeError,
            ValueError,
        ):  # there is nothing, or a number on the way
            return None

    def definition(self, ref: str) -> tuple[str, str, Any] | None:
        """Return the definition that a reference leads into: `$defs`, its name, and its schema."""
        match ref.split("/"):
            case ["#", ("$defs" | "definitions") as home, name, *_]:
                return (
                    home,
                    unquote(name).replace("~1", "/").replace("~0", "~"),
                    self.target(f"#/{home}/{name}"),
                )
            case _:
                return None

    def is_recursive(self, ref: str, most: int) -> tuple[bool, int]:
        """Return whether the target of `ref` refers, directly or not, to `ref` again.

        No more than `most` references are looked at; how many were is returned as well.
        """
        looked_at = 0
        if ref not in self._recursive:
            visited: set[str] = set()
            pending = _refs(self.target(ref))
            while pending and looked_at <= most:
                looked_at += 1
                if (following := pending.pop()) not in visited:
                    visited.add(following)
                    pending.extend(_refs(self.target(following)))
            self._recursive[ref] = ref in visited
        return self._recursive[ref], looked_at


def _refs(value: Any) -> list[str]:
    found: list[str] = []
    pending: list[Any] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            for key, member in cast(Schema, each).items():
                if key == "$ref" and isinstance(member, str):
                    found.append(member)
                else:
                    pending.append(member)
        elif isinstance(each, list):
            pending.extend(cast(list[Any], each))
    return found


def first_sentences(text: object, max_chars: int) -> str:
    """Shorten a description to as many whole sentences as fit, on one line.

    Where the first sentence alone is too long, as many of its words stay as fit.
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
