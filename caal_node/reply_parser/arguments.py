"""A call's arguments: from what a model wrote to values that fit the tool's schema."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from math import isfinite, prod
from string import ascii_letters, digits
from typing import Any, Final, cast

import json_repair

from caal_node.reply_parser.literal_parser import (
    LiteralParser,
    RepeatedValues,
    UnreadableLiteral,
    collect,
    last,
    without_marks,
)
from caal_node.reply_parser.tool_index import (
    ToolSignature,
    mapping,
    normalised,
)

ARGUMENT_KEYS = (
    *("arguments", "parameters", "args", "input", "params"),
    *("kwargs", "tool_input", "action_input", "function_args"),
)
"""The keys under which models put a call's arguments."""

_MAX_SCHEMA_DEPTH = 8
_MEMBER_DEPTH = 3
_MEMBER_CHOICES = 8
"""So many references and choices are followed to an object's properties or a list's items, 8 ** 3
at most: schemas may refer to themselves."""
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
_INTEGER = re.compile(r"[+-]?\d{1,400}")
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d{1,3})?")
_MAX_LITERAL_CHARS = 20_000
"""Longer text that is no JSON is refused."""
_MAX_REPAIR_CHARS = 4_000
"""json-repair takes about 4 us a character; longer broken arguments are refused."""
_MAX_ESCAPE_COST = 300_000
"""Characters times backslashes. json-repair goes back over the string at escapes: 1,000 characters
with 330 of them take it 16 ms."""
_MAX_BRACKETS = 64
"""Deeper nesting is no call of a tool."""
_DIGITS: Final = r"\d{1,9}(?:\.\d{1,6})?"
_SUM: Final = re.compile(rf"{_DIGITS}(?:\s{{0,4}}[*+]\s{{0,4}}{_DIGITS}){{1,5}}")
"""Only products and sums: with `-` and `/` people write ranges, dates and fractions, too."""
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_ITEM: Final = rf"\s*(?:[-+.\w]+|{_STRING})\s*,"
_BEGINS: Final = rf"(?:[:=]|\[(?:{_ITEM})*+)\s*"
"""What a value stands behind: a key, or a list's bracket and the items before it."""
_VALUE: Final = re.compile(rf"{_BEGINS}(?P<value>[-+]?\.?\d[^,}}\]\n\"]*)|{_STRING}", re.DOTALL)
_QUOTED: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?P<end>"|\\?\Z)', re.DOTALL)
"""A string, also one that never ends."""
_OF_WORDS: Final = f"{ascii_letters}{digits}+-."
"""What numbers, `true` and the like consist of: the last one may be half of itself."""
_JSON: Final = json.JSONDecoder(strict=False)
"""Made once; `json.loads` makes one every time that it gets an option."""
_COMMENT: Final = re.compile(r"\s(?://|#|/\*).*", re.DOTALL)
_WHOLE: Final = re.compile(r"[-+]?[\w./-]+[\s;)]*")
"""One number or one word, which json-repair takes as it stands, and what it may leave behind."""


class BadArguments(ValueError):
    """The arguments cannot be used. `str()` gives one sentence for the model."""


def from_json(text: str, tool: ToolSignature | None, *, ended: bool = False) -> dict[str, Any]:
    """Return the arguments from JSON text: an object, an encoded object, or nothing.

    ended: a marker behind the text ends the call, so that a bracket that is missing was left out.

    Raises:
        BadArguments: it is neither.
    """
    try:
        value: Any = load_json(text)
        # Where there are more colons than keys, one may stand twice.
        keys = len(cast("dict[str, Any]", value)) if isinstance(value, dict) else 0
        if (
            tool is not None
            and 0 < keys < text.count(":")
            and any(text.count(f'"{key}"') > 1 for key in tool.properties)
        ):
            value = _with_repeated_keys(text)
    except ValueError:
        cut = not ended and (is_cut(text) or has_open_bracket(text))
        if cut or not text.rstrip().endswith("}"):
            raise BadArguments("The arguments were cut off.") from None
        return from_value(repair_object(text, tool), tool)
    return from_value(value, tool)


def _with_repeated_keys(text: str) -> Any:
    """Return the value of JSON; of an object, all the values of its own keys."""

    def collected(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        inner = [(key, _without_repeated(value)) for key, value in pairs]
        return collect(inner)

    return json.loads(text, strict=False, object_pairs_hook=collected)


def _without_repeated(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: last(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_without_repeated(one) for one in cast("list[Any]", value)]
    return value


def from_value(value: Any, tool: ToolSignature | None) -> dict[str, Any]:
    """Return the arguments from a value that a call carried.

    Raises:
        BadArguments: the value is no object.
    """
    for _ in range(3):  # Encoded twice happens; a fourth layer would be an attack.
        if not isinstance(value, str) or not value.strip():
            break
        try:
            value = load_json(value)
        except ValueError:
            if value.lstrip().startswith("{"):
                value = repair_object(value, tool)
            break
    if value is None or value == "" or value == []:
        return {}
    if not isinstance(value, dict):
        raise BadArguments("The arguments must be one JSON object.")
    given = _unwrapped(cast("dict[str, Any]", without_marks(value)), tool)
    if tool is not None and {"type", "properties"} <= set(given) - set(tool.properties):
        raise BadArguments("These are the tool's parameters, not arguments for them.")
    return _settled(given, tool)


def _unwrapped(given: dict[str, Any], tool: ToolSignature | None) -> dict[str, Any]:
    """Return the arguments inside a call that was written where its arguments belong."""
    if (
        tool is None
        # A tool that takes anything may take a name and an input as well.
        or (not tool.properties and tool.schema.get("additionalProperties") is True)
        or not set(given) <= {"name", *ARGUMENT_KEYS}
        or set(given) & set(tool.properties)
    ):
        return given
    inner = [given[key] for key in ARGUMENT_KEYS if isinstance(given.get(key), dict)]
    if not inner and "name" in given and len(given) > 1:
        raise BadArguments("The arguments must be one JSON object.")
    return cast("dict[str, Any]", inner[0]) if len(inner) == 1 else given


def _settled(arguments: dict[str, Any], tool: ToolSignature | None) -> dict[str, Any]:
    """Return `arguments` with keys and enum values as the schema spells them."""
    if tool is None or not tool.properties:
        return {key: last(value) for key, value in arguments.items()}
    settled: dict[str, Any] = {}
    for key, value in arguments.items():
        own = _own_key(key, tool, arguments)
        schema = tool.properties.get(own)
        if isinstance(value, RepeatedValues):
            value = _own_list(value, schema, tool)
        settled[own] = _own_enum(_own_type(value, schema, tool), mapping(schema))
    return settled


def _own_list(values: RepeatedValues, schema: Any, tool: ToolSignature) -> Any:
    """Return the values of a key that was repeated, as a list if its schema allows one."""
    if "array" not in allowed_types(schema, tool.schema):
        return last(values)
    items, found = mapping(schema).get("items"), list[Any]()
    for value in values:
        one = _own_enum(_own_type(value, items, tool), mapping(items))
        found += cast("list[Any]", one) if isinstance(one, list) else [one]
    return found


def _own_key(key: str, tool: ToolSignature, given: Mapping[str, Any]) -> str:
    if key in tool.properties:
        return key
    like = [name for name in tool.properties if normalised(name) == normalised(key)]
    return like[0] if len(like) == 1 and like[0] not in given else key


def _own_type(value: Any, schema: Any, tool: ToolSignature, depth: int = 0) -> Any:
    """Return a value in the type that its schema allows, where it certainly means the same.

    A value in quotes becomes what stands inside, a number the text that is wanted, and a text or a
    number the only item of a list of such. What the schema allows stays as it is.
    """
    if depth > _MAX_SCHEMA_DEPTH or value is None or isinstance(value, bool):
        return value
    root = tool.schema
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        known = mapping(_only_member(schema, "properties", root))
        return {
            key: _own_type(each, known[key], tool, depth + 1) if key in known else each
            for key, each in given.items()
        }
    if isinstance(value, list):
        items = _only_member(schema, "items", root)
        given_items = cast("list[Any]", value)
        if not isinstance(items, Mapping):
            return given_items
        return [_own_type(each, items, tool, depth + 1) for each in given_items]
    allowed = allowed_types(schema, root)
    if isinstance(value, (int, float)):
        if "array" in allowed and allowed <= {"array", "null"}:
            return _as_only_item(value, schema, tool, depth)
        is_text = "string" in allowed and allowed <= {"string", "null"} and isfinite(value)
        return json.dumps(value) if is_text else value
    if not isinstance(value, str) or "string" in allowed:
        return value
    found = typed(value, schema, root=root)
    if isinstance(found, str) and "array" in allowed and not found.lstrip().startswith(("[", "{")):
        return _as_only_item(found, schema, tool, depth)
    return found if isinstance(found, str) else _own_type(found, schema, tool, depth + 1)


def _as_only_item(value: float | str, schema: Any, tool: ToolSignature, depth: int) -> Any:
    """Return a value as the list that its schema wants, where it may be an item of it."""
    items = _only_member(schema, "items", tool.schema)
    one: object = _own_type(value, items, tool, depth + 1)
    kinds = {"number", "integer"} if isinstance(one, int) else {"number"}
    kinds = {"string"} if isinstance(one, str) else kinds
    return value if kinds.isdisjoint(allowed_types(items, tool.schema)) else [one]


def _only_member(schema: Any, name: str, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Return the schema's `properties` or `items`; None where it has none, or several to choose
    from."""
    given = mapping(schema)
    found = [given[name]] if name in given else []
    if depth < _MEMBER_DEPTH:
        parts = _choices(given)
        if "$ref" in given:
            parts.append(_referred(given["$ref"], root))
        if len(parts) > _MEMBER_CHOICES:
            return None
        inner = (_only_member(part, name, root, depth + 1) for part in parts)
        found += [each for each in inner if each is not None]
    return found[0] if len(found) == 1 else None


def _own_enum(value: Any, schema: Mapping[str, Any]) -> Any:
    allowed = schema.get("enum")
    if not isinstance(value, str) or not isinstance(allowed, list) or value in allowed:
        return value
    like = [
        entry
        for entry in cast("list[Any]", allowed)
        if isinstance(entry, str) and entry.strip().casefold() == value.strip().casefold()
    ]
    return like[0] if len(like) == 1 else value


# -- values -----------------------------------------------------------------------------------


def allowed_types(schema: Any, root: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a schema allows; none when it does not say.

    root: the schema in which its references are looked up.
    """
    return _allowed_types(schema, root, 0, set())


def _allowed_types(
    schema: Any, root: Mapping[str, Any], depth: int, followed: set[str]
) -> set[str]:
    # No reference is followed twice: one that names itself in many choices would never end.
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
    for part in _choices(given):
        found |= _allowed_types(part, root, depth + 1, followed)
    reference = given.get("$ref")
    if isinstance(reference, str) and reference not in followed:
        followed.add(reference)
        found |= _allowed_types(_referred(reference, root), root, depth + 1, followed)
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


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    """Return the schemas that `schema` joins or lets one choose from."""
    return [part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key) or ()]


def _referred(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return the schema in `root` to which a `$ref` refers; None if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/"):
        target = mapping(target).get(step)
    return target


def load_json(text: str) -> Any:
    """Return the value of strict JSON; NaN and control characters in strings are allowed.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return _JSON.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


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
    try:
        return LiteralParser(text).literal()
    except UnreadableLiteral:
        return text


# -- broken JSON ------------------------------------------------------------------------------
# Models write sums where JSON wants a number (`2*60`). json-repair reads a value up to where it
# stops being a number and drops the rest: "in 2*60 minutes" would ring after two. So such a value
# is looked at before anything is repaired.


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


_BRACKET_IN_FRONT: Final = re.compile(r"\A\{\s*+(?=\{)")


def is_cut(text: str) -> bool:
    """Return whether `text` is valid JSON up to its end, and goes on there. An object may have a
    bracket more in front."""
    text = _BRACKET_IN_FRONT.sub("", text)
    try:
        _JSON.decode(text)
    except json.JSONDecodeError as error:
        end = len(text.rstrip().rstrip(_OF_WORDS))
        if error.msg.startswith("Invalid \\u"):
            end -= 1  # The backslash.
        return error.pos >= end or error.msg.startswith("Unterminated string")
    except RecursionError:
        pass
    return False


def lacks_one_quote(text: str) -> bool:
    """Return whether `text` is an object of which nothing but the last string's quote is missing:
    all its brackets are closed behind that string, which holds none of its own."""
    string, depth = _left_open(text)
    rest = string.rstrip()
    return depth > 0 and rest.endswith("}" * depth) and not re.search(r"[{}\\]", rest[:-depth])


def has_open_bracket(text: str) -> bool:
    """Return whether a bracket is open at the end of `text`, which need not be valid JSON."""
    string, depth = _left_open(text)
    return depth > 0 and not string  # In a string with a quote of its own none can be counted.


def _left_open(text: str) -> tuple[str, int]:
    """Return the string that is open at the end of `text`, if there is one, and how many brackets
    are."""
    last = deque(_QUOTED.finditer(text), maxlen=1)
    signs = _QUOTED.sub("", text)
    depth = sum(map(signs.count, "{[")) - sum(map(signs.count, "}]"))
    return "".join(each.group() for each in last if each["end"] != '"'), depth


def is_too_deep(text: str) -> bool:
    """Return whether brackets nest deeper than any call's arguments do."""
    depth = 0
    for bracket in re.findall(r"[{}\[\]()]", text):
        depth += 1 if bracket in "{[(" else -1
        if depth > _MAX_BRACKETS:
            return True
    return False


def _takes_too_long(text: str) -> bool:
    """Return whether repairing `text` could take longer than an agent may stand still (20 ms)."""
    return len(text) > _MAX_REPAIR_CHARS or len(text) * text.count("\\") > _MAX_ESCAPE_COST


def repair_object(text: str, tool: ToolSignature | None) -> dict[str, Any]:
    """Repair broken JSON of an object, once a marker or a known name has said that it is a call.

    Raises:
        BadArguments: nothing trustworthy can be read from it.
    """
    problem = "The arguments are not valid JSON."
    if _takes_too_long(text) or not re.search(r"[:=]", text) or is_too_deep(text):
        raise BadArguments(problem)
    quoted = quote_sums(text)
    if quoted is None:
        raise BadArguments("A number in the arguments goes on as text; write one number.")
    try:
        repaired: Any = json_repair.loads(quoted)
    except Exception:  # It makes no promise of what it raises, and the text is a model's.
        raise BadArguments(problem) from None
    if not isinstance(repaired, dict) or not repaired:
        raise BadArguments(problem)
    found = cast("dict[str, Any]", repaired)
    if tool is not None and tool.properties and not set(found) <= set(tool.properties):
        raise BadArguments(problem)
    return found
