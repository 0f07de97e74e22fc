"""The keywords of JSON schema that checks know.

A keyword that belongs to an older draft is known where it can be told from a newer one. What cannot
be looked at within bounds (a pattern for another engine, `unevaluatedProperties`) is passed over,
and counted, so that nothing is concluded from what fits without it. `format` is a note, as the
standard has it.

https://json-schema.org/draft/2020-12/json-schema-validation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, cast

from mcp_bridge.security.schema_walk import (
    KEYWORD_US,
    MISS,
    NUMBER,
    Check,
    Fault,
    Faults,
    Place,
    Rule,
    is_giant,
    members_of,
    quoted,
)

_IS_TYPE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: type(value) is bool,
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "number": lambda value: type(value) is int or type(value) is float,
    "string": lambda value: type(value) is str,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}


_OPTIONS: Final = 20
"""Values of an enum that a fault names."""


def _type(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    kinds = cast("list[Any]", [rule] if type(rule) is str else rule)
    run.spend(len(kinds) / 5)
    for kind in kinds:
        judge = _IS_TYPE.get(kind) if type(kind) is str else None
        if judge is None:
            run.unsure += 1
            return
        if judge(value):
            return
    names = ", ".join(map(repr, kinds[: len(_IS_TYPE)]))
    yield run.fault(at.path, f"{quoted(value)} is not of type {names}")


def _enum(run: Check, rule: list[Any], value: Any, at: Place) -> Faults:
    if type(value) is str:
        run.spend(len(rule) / 10)
        found = value in rule  # nothing else is equal to a text
    else:
        found = any(run.equal(value, option) for option in rule)
    if not found:
        shown = ", ".join(map(quoted, rule[:_OPTIONS])) + (", …" if len(rule) > _OPTIONS else "")
        yield run.fault(at.path, f"{quoted(value)} is not one of [{shown}]")


def _const(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    if not run.equal(value, rule):
        yield run.fault(at.path, f"{quoted(rule)} was expected")


def _minimum(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    if value < rule:
        yield run.fault(at.path, f"{quoted(value)} is less than the minimum of {quoted(rule)}")
    elif value == rule and at.schema.get("exclusiveMinimum") is True:  # draft 4
        yield from _exclusive_minimum(run, rule, value, at)


def _maximum(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    if value > rule:
        yield run.fault(at.path, f"{quoted(value)} is greater than the maximum of {quoted(rule)}")
    elif value == rule and at.schema.get("exclusiveMaximum") is True:  # draft 4
        yield from _exclusive_maximum(run, rule, value, at)


def _exclusive_minimum(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    if value <= rule:
        yield run.fault(at.path, f"{quoted(value)} is not greater than {quoted(rule)}")


def _exclusive_maximum(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    if value >= rule:
        yield run.fault(at.path, f"{quoted(value)} is not less than {quoted(rule)}")


def _multiple_of(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    run.spend(5)
    try:
        if is_giant(rule) or is_giant(value):
            raise OverflowError
        if type(rule) is int and type(value) is int:
            rest = value % rule
        else:  # in decimals, as 0.3 is a multiple of 0.1 for whoever wrote it
            rest = Decimal(repr(value)) % Decimal(repr(rule))
    except ArithmeticError:
        run.unsure += 1
        return
    if rest:
        yield run.fault(at.path, f"{quoted(value)} is not a multiple of {quoted(rule)}")


def _bound(words: str, *, least: bool) -> Callable[[Check, Any, Any, Place], Faults]:
    def check(run: Check, rule: Any, value: Any, at: Place) -> Faults:
        if len(value) < rule if least else len(value) > rule:
            yield run.fault(at.path, f"{quoted(value)} {words} ({quoted(rule)})")

    return check


def _pattern(run: Check, rule: str, value: str, at: Place) -> Faults:
    found = run.is_in(rule, value)
    run.unsure += found is None
    if found is False:
        yield run.fault(at.path, f"{quoted(value)} does not match {quoted(rule)}")


def _required(run: Check, rule: list[Any], value: dict[str, Any], at: Place) -> Faults:
    run.spend(len(rule) / 10)
    for name in rule:
        if type(name) is str and name not in value:
            yield run.fault(at.path, f"{quoted(name)} is a required property")


def _properties(run: Check, rule: dict[str, Any], value: dict[str, Any], at: Place) -> Faults:
    run.spend(min(len(rule), len(value)) / 10)
    for name in rule if len(rule) < len(value) else value:
        if name in rule and name in value:
            yield from run.faults(rule[name], value[name], (*at.path, name), at.depth)


def _pattern_properties(
    run: Check, rule: dict[str, Any], value: dict[str, Any], at: Place
) -> Faults:
    for pattern, schema in rule.items():
        for name, member in value.items():
            run.spend(KEYWORD_US)
            found = run.is_in(pattern, name)
            run.unsure += found is None
            if found:
                yield from run.faults(schema, member, (*at.path, name), at.depth)


def _additional_properties(run: Check, rule: Any, value: dict[str, Any], at: Place) -> Faults:
    if rule is True:
        return
    named = members_of(at.schema.get("properties"))
    patterns = members_of(at.schema.get("patternProperties"))
    for name, member in value.items():
        run.spend(KEYWORD_US)
        if name in named:
            continue
        found = [run.is_in(pattern, name) for pattern in patterns]
        if True in found:
            continue
        if None in found:
            run.unsure += 1
        elif rule is False:
            yield run.fault(at.path, f"{quoted(name)} is not a known property")
        else:
            yield from run.faults(rule, member, (*at.path, name), at.depth)


def _property_names(run: Check, rule: Any, value: dict[str, Any], at: Place) -> Faults:
    for name in value:
        yield from run.faults(rule, name, at.path, at.depth)


def _dependencies(run: Check, rule: dict[str, Any], value: dict[str, Any], at: Place) -> Faults:
    run.spend(len(rule) / 10)
    for name, needed in rule.items():
        if name not in value:
            continue
        if type(needed) is list:
            yield from _required(run, cast("list[Any]", needed), value, at)
        else:
            yield from run.faults(needed, value, at.path, at.depth)


def _prefix_items(run: Check, rule: list[Any], value: list[Any], at: Place) -> Faults:
    for index, (schema, item) in enumerate(zip(rule, value, strict=False)):
        yield from run.faults(schema, item, (*at.path, index), at.depth)


def _items(run: Check, rule: Any, value: list[Any], at: Place) -> Faults:
    if type(rule) is list:  # until draft 2019-09
        yield from _prefix_items(run, cast("list[Any]", rule), value, at)
        return
    prefix = at.schema.get("prefixItems")
    for index in range(len(cast("list[Any]", prefix)) if type(prefix) is list else 0, len(value)):
        yield from run.faults(rule, value[index], (*at.path, index), at.depth)


def _additional_items(run: Check, rule: Any, value: list[Any], at: Place) -> Faults:
    if type(prefix := at.schema.get("items")) is list:
        for index in range(len(cast("list[Any]", prefix)), len(value)):
            yield from run.faults(rule, value[index], (*at.path, index), at.depth)


def _unique_items(run: Check, rule: bool, value: list[Any], at: Place) -> Faults:
    if rule and len({run.key(item) for item in value}) < len(value):
        yield run.fault(at.path, f"{quoted(value)} has items that are the same")


def _contains(run: Check, rule: Any, value: list[Any], at: Place) -> Faults:
    least, most = at.schema.get("minContains", 1), at.schema.get("maxContains")
    found = [run.fits(rule, item, at) for item in value]
    certain, possible = found.count(True), len(found) - found.count(False)
    if type(least) is int and possible < least:
        yield run.fault(at.path, f"{quoted(value)} has too few of the items that it must contain")
    elif type(most) is int and certain > most:
        yield run.fault(at.path, f"{quoted(value)} has too many of the items that it may contain")
    else:
        run.unsure += certain != possible


def _all_of(run: Check, rule: list[Any], value: Any, at: Place) -> Faults:
    for schema in rule:
        yield from run.faults(schema, value, at.path, at.depth)


_NULL: Final = {"type": "null"}


def _any_of(run: Check, rule: list[Any], value: Any, at: Place) -> Faults:
    yield from _choice(run, rule, value, at, only_one=False)


def _one_of(run: Check, rule: list[Any], value: Any, at: Place) -> Faults:
    yield from _choice(run, rule, value, at, only_one=True)


def _choice(run: Check, rule: list[Any], value: Any, at: Place, *, only_one: bool) -> Faults:
    certain = 0
    nearest: Fault | None = None
    before = run.unsure
    real = [schema for schema in rule if schema != _NULL]
    for schema in rule:
        run.unsure = 0
        first = next(iter(run.faults(schema, value, at.path, at.depth)), None)
        if first is None:
            certain += not run.unsure
            if not only_one or run.unsure:
                run.unsure += before
                return
        elif (nearest is None or len(first.path) > len(nearest.path)) and schema != _NULL:
            nearest = first
    run.unsure = before
    if certain > 1:
        yield run.fault(at.path, f"{quoted(value)} is valid under more than one of the schemas")
    elif not certain and nearest is not None:
        # What is wrong further inside says more than that no choice fits, and so does what is wrong
        # with the one choice beside null.
        inside = len(nearest.path) > len(at.path) or len(real) == 1
        words = f"{quoted(value)} is not valid under any of the given schemas"
        yield nearest if inside else run.fault(at.path, words)


def _not(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    fits = run.fits(rule, value, at)
    run.unsure += fits is None
    if fits:
        yield run.fault(at.path, f"{quoted(value)} is what it must not be")


def _if(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    fits = run.fits(rule, value, at)
    run.unsure += fits is None
    branch = "then" if fits else "else"
    if fits is not None and branch in at.schema:
        yield from run.faults(at.schema[branch], value, at.path, at.depth)


def _ref(run: Check, rule: str, value: Any, at: Place) -> Faults:
    if (target := run.target(rule)) is MISS:
        run.unsure += 1
    else:
        yield from run.faults(target, value, at.path, at.depth)


def _passed_over(run: Check, rule: Any, value: Any, at: Place) -> Faults:
    run.unsure += 1
    return ()


_TEXT: Final = frozenset({str})
_LIST: Final = frozenset({list})
_OBJECT: Final = frozenset({dict})
_SCHEMA: Final = frozenset({dict, bool})
_ANY: Final = frozenset({dict, list, str, int, float, bool, type(None)})
KEYWORDS: Final[Mapping[str, Rule]] = {
    "type": Rule(frozenset({str, list}), None, _type),
    "enum": Rule(_LIST, None, _enum),
    "const": Rule(_ANY, None, _const),
    "minimum": Rule(NUMBER, NUMBER, _minimum),
    "maximum": Rule(NUMBER, NUMBER, _maximum),
    "exclusiveMinimum": Rule(NUMBER, NUMBER, _exclusive_minimum),
    "exclusiveMaximum": Rule(NUMBER, NUMBER, _exclusive_maximum),
    "multipleOf": Rule(NUMBER, NUMBER, _multiple_of),
    "minLength": Rule(NUMBER, _TEXT, _bound("is shorter than it must be", least=True)),
    "maxLength": Rule(NUMBER, _TEXT, _bound("is longer than it may be", least=False)),
    "pattern": Rule(_TEXT, _TEXT, _pattern),
    "minItems": Rule(NUMBER, _LIST, _bound("has fewer items than it must", least=True)),
    "maxItems": Rule(NUMBER, _LIST, _bound("has more items than it may", least=False)),
    "uniqueItems": Rule(frozenset({bool}), _LIST, _unique_items),
    "prefixItems": Rule(_LIST, _LIST, _prefix_items),
    "items": Rule(_SCHEMA | _LIST, _LIST, _items),
    "additionalItems": Rule(_SCHEMA, _LIST, _additional_items),
    "contains": Rule(_SCHEMA, _LIST, _contains),
    "unevaluatedItems": Rule(_ANY, _LIST, _passed_over),
    "minProperties": Rule(NUMBER, _OBJECT, _bound("has fewer members than it must", least=True)),
    "maxProperties": Rule(NUMBER, _OBJECT, _bound("has more members than it may", least=False)),
    "required": Rule(_LIST, _OBJECT, _required),
    "properties": Rule(_OBJECT, _OBJECT, _properties),
    "patternProperties": Rule(_OBJECT, _OBJECT, _pattern_properties),
    "additionalProperties": Rule(_SCHEMA, _OBJECT, _additional_properties),
    "propertyNames": Rule(_SCHEMA, _OBJECT, _property_names),
    "dependentRequired": Rule(_OBJECT, _OBJECT, _dependencies),
    "dependentSchemas": Rule(_OBJECT, _OBJECT, _dependencies),
    "dependencies": Rule(_OBJECT, _OBJECT, _dependencies),
    "unevaluatedProperties": Rule(_ANY, _OBJECT, _passed_over),
    "allOf": Rule(_LIST, None, _all_of),
    "anyOf": Rule(_LIST, None, _any_of),
    "oneOf": Rule(_LIST, None, _one_of),
    "not": Rule(_SCHEMA, None, _not),
    "if": Rule(_SCHEMA, None, _if),
    "$ref": Rule(_TEXT, None, _ref),
    "$dynamicRef": Rule(_ANY, None, _passed_over),
    "$recursiveRef": Rule(_ANY, None, _passed_over),
}
