"""Checks values against schemas that servers send: arguments before a call, answers after it.

A schema of a few lines can ask for endless work: definitions that refer to each other twice double
it at each level, and a list of unique items may ask for each to be compared with each. So a check
has so much work to spend, and whatever it does is charged before it is done. Where a schema asks
for more, nothing more is checked and no fault is found: the tool's own server judges.

A keyword that belongs to an older draft is known where it can be told from a newer one. What cannot
be looked at within bounds (a pattern for another engine, `unevaluatedProperties`) is passed over,
and counted, so that nothing is concluded from what fits without it. `format` is a note, as the
standard has it.

https://json-schema.org/draft/2020-12/json-schema-validation
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

from mcp_bridge.security.patterns import compile_us, compiled

logger = logging.getLogger(__name__)

_MAX_TOLD: Final = 1_000
"""So many tools are named in the log as too much work; nobody has more."""
_told: Final[set[str]] = set()
WORK_US: Final = 8_000
"""The work of one check in microseconds, as it is charged: half of what the event loop may be held
for. Real calls take tens."""
KEYWORD_US: Final = 1.0
"""The microseconds of a keyword, or of a value that is looked at."""
MAX_DEPTH: Final = 64
"""The schemas that may apply within one another, references included; real ones have up to ten."""
NUMBER: Final = frozenset({int, float})
"""The types of numbers; that of true and false is none of them."""
MISS: Final = object()
"""What a reference leads to that leads nowhere."""
_QUOTED_CHARS: Final = 80
_GIANT_BITS: Final = 512
_FAULT_US: Final = 4.0

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """What does not fit, and where."""

    path: Path
    message: str
    """One sentence without a stop; it quotes the value, cut."""


Faults: TypeAlias = Iterable[Fault]


class TooMuchWork(Exception):
    """The schema asks for more work than a check is worth, or goes in a circle."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a keyword stands."""

    schema: dict[str, Any]
    """The keywords beside it."""
    path: Path
    """Where in the value."""
    depth: int


@dataclass(frozen=True, slots=True)
class Rule:
    """What is known of a keyword."""

    rules: frozenset[type]
    """The types that it may itself have; of another one, it is broken and passed over."""
    values: frozenset[type] | None
    """The types of the values that it is about; None for all."""
    check: Callable[[Check, Any, Any, Place], Faults]
    """Yields what does not fit, from the check, the keyword, the value and the place."""


class Check:
    """One check of one value.

    Args:
        root: The whole schema, within which references lead.
        rules: What is known of each keyword.
    """

    def __init__(self, root: object, rules: Mapping[str, Rule], work_us: float = WORK_US) -> None:
        self._root: Final = root
        self._rules: Final = rules
        self._left_us = work_us
        self.unsure = 0
        """How many keywords were passed over. What fits without them may not fit with them."""

    def spend(self, work_us: float) -> None:
        """Raises: TooMuchWork."""
        self._left_us -= work_us
        if self._left_us < 0:
            raise TooMuchWork

    def faults(self, schema: object, value: object, path: Path, depth: int) -> Iterator[Fault]:
        """Yields what does not fit. Each fault is certain, whatever was passed over."""
        if depth > MAX_DEPTH:
            raise TooMuchWork
        self.spend(KEYWORD_US)
        if schema is False:
            yield self.fault(path, f"{quoted(value)} is not allowed")
        if type(schema) is not dict:
            self.unsure += type(schema) is not bool
            return
        keywords = cast("dict[str, Any]", schema)
        self.spend(len(keywords) / 10)
        at = Place(keywords, path, depth + 1)
        for keyword, rule in keywords.items():
            if (known := self._rules.get(keyword)) is None:
                continue
            self.spend(KEYWORD_US)
            if type(rule) not in known.rules:
                self.unsure += 1
            elif known.values is None or type(value) in known.values:
                yield from known.check(self, rule, value, at)

    def fits(self, schema: object, value: object, at: Place) -> bool | None:
        """Tells whether `value` fits; None where it may, as something was passed over."""
        before, self.unsure = self.unsure, 0
        try:
            for _ in self.faults(schema, value, at.path, at.depth):
                return False
            return None if self.unsure else True
        finally:
            self.unsure = before

    def fault(self, path: Path, message: str) -> Fault:
        self.spend(_FAULT_US)
        return Fault(path, message)

    def is_in(self, pattern: str, text: str) -> bool | None:
        """Tells whether `pattern` is found in `text`; None where it cannot be looked for."""
        misses, price = compiled.cache_info().misses, compile_us(pattern)
        self.spend(price)
        found = compiled(pattern)
        if compiled.cache_info().misses == misses:  # it was known
            self._left_us += price
        if found is None:
            return None
        self.spend(found.char_us * len(text))
        try:
            return found.is_in(text)
        except ValueError:  # half of a surrogate pair
            return None

    def equal(self, one: Any, other: Any, depth: int = 0) -> bool:
        """Tells whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
        self.spend(KEYWORD_US)
        if depth > MAX_DEPTH:
            raise TooMuchWork
        kind = cast(type[object], type(one))
        if kind is not type(other):
            return kind in NUMBER and type(other) in NUMBER and one == other
        if kind is dict:
            return len(one) == len(other) and all(
                name in other and self.equal(value, other[name], depth + 1)
                for name, value in one.items()
            )
        if kind is list:
            pairs = zip(one, other, strict=False)
            return len(one) == len(other) and all(self.equal(*pair, depth + 1) for pair in pairs)
        return bool(one == other)

    def key(self, value: Any, depth: int = 0) -> object:
        """Gives something that is equal, and has a hash, for the same JSON."""
        self.spend(KEYWORD_US)
        if depth > MAX_DEPTH:
            raise TooMuchWork
        kind = cast(type[object], type(value))
        if kind is dict:
            return frozenset((name, self.key(item, depth + 1)) for name, item in value.items())
        if kind is list:
            return tuple(self.key(item, depth + 1) for item in value)
        return (kind is bool, value)

    def target(self, reference: str) -> object:
        """Gives what a reference within the schema leads to; `MISS` where that is nothing."""
        if reference != "#" and not reference.startswith("#/"):
            return MISS
        steps = reference.split("/")[1:]
        self.spend(len(reference) / 10 + len(steps))
        found: Any = self._root
        for step in steps:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if name in (members := members_of(found)):
                found = members[name]
            elif isinstance(found, list) and name.isdecimal() and len(name) < 6:
                items = cast("list[Any]", found)
                found = items[int(name)] if int(name) < len(items) else MISS
            else:
                return MISS
        return found


def members_of(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def quoted(value: object) -> str:
    if type(value) is str:
        return repr(value if len(value) <= _QUOTED_CHARS else f"{value[:_QUOTED_CHARS]}…")
    if type(value) is dict:
        return "an object"
    if type(value) is list:
        return "a list"
    return "a number" if is_giant(value) else repr(value)


def is_giant(value: Any) -> bool:
    """Tells whether a number has so many digits that the time for writing it counts."""
    return type(value) is int and value.bit_length() > _GIANT_BITS


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


def faults_of(schema: object, value: object, name: str) -> list[Fault]:
    """Gives what in `value`, which is JSON, does not fit `schema`; `name` is the tool's.

    There are none where the schema asks for too much: that is logged, once for each name.
    """
    try:
        return list(Check(schema, KEYWORDS).faults(schema, value, (), 0))
    except TooMuchWork:
        if name not in _told and len(_told) < _MAX_TOLD:
            _told.add(name)
            logger.warning("%s: its schema asks for too much work; values go unchecked", name)
        return []
