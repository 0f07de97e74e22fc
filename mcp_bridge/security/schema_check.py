"""Checks values against JSON schemas of strangers, with a bound on the work.

A schema of a few lines can ask for endless work: definitions that refer to each other twice double
it at each level, and a list of unique items may ask for each to be compared with each. So a check
has so much work to spend, and each keyword is charged before it runs. Where it is spent, nothing
more is checked and no fault is found: the tool's own server judges.

A keyword that is itself broken, belongs to an older draft in a way that is not known here, or
cannot be looked at within bounds (a pattern for another engine, `unevaluatedProperties`) is passed
over. `format` is a note, as the standard has it.

Keywords: https://json-schema.org/draft/2020-12/json-schema-validation
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

WORK_US: Final = 8_000
"""The work of one check in microseconds, as keywords are charged: half of what the event loop may
be held for. Real calls take tens."""
MAX_DEPTH: Final = 64
"""The schemas that may apply within one another, references included; real ones have up to ten."""
_QUOTED_CHARS: Final = 80
_GIANT_BITS: Final = 512
_MAX_TOLD: Final = 1_000
"""So many tools are named in the log as too much work; nobody has more."""
_FAULT_US: Final = 4
_KEYWORD_US: Final = 1
_MISS: Final = object()

Path: TypeAlias = tuple[str | int, ...]
_told: Final[set[str]] = set()


@dataclass(frozen=True, slots=True)
class Fault:
    """What does not fit, and where."""

    path: Path
    message: str
    """One sentence without a stop; it quotes the value, cut."""


class TooMuchWork(Exception):
    """The schema asks for more work than a check is worth, or goes in a circle."""


def faults_of(schema: object, value: object, name: str) -> list[Fault]:
    """Gives what in `value`, which is JSON, does not fit `schema`; `name` is the tool's.

    There are none where the schema asks for too much: that is logged, once for each name.
    """
    try:
        return list(_Check(schema).faults(schema, value, (), 0))
    except TooMuchWork:
        if name not in _told and len(_told) < _MAX_TOLD:
            _told.add(name)
            logger.warning("%s: its schema asks for too much work; values go unchecked", name)
        return []


class _Check:
    """One check of one value."""

    def __init__(self, root: object, work_us: float = WORK_US) -> None:
        self._root: Final = root
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
        self.spend(_KEYWORD_US)
        if schema is False:
            yield self.fault(path, f"{_quoted(value)} is not allowed")
        if type(schema) is not dict:
            self.unsure += type(schema) is not bool
            return
        keywords = cast("dict[str, Any]", schema)
        self.spend(len(keywords) / 10)
        at = _Place(keywords, path, depth + 1)
        for keyword, rule in keywords.items():
            if (found := _KEYWORDS.get(keyword)) is None:
                continue
            rules, values, check = found
            self.spend(_KEYWORD_US)
            if type(rule) not in rules:
                self.unsure += 1
            elif values is None or type(value) in values:
                yield from check(self, rule, value, at)

    def fits(self, schema: object, value: object, at: _Place) -> bool | None:
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
        self.spend(_KEYWORD_US)
        if depth > MAX_DEPTH:
            raise TooMuchWork
        kind: type[Any] = type(one)
        if kind is not type(other):
            return kind in _NUMBER and type(other) in _NUMBER and one == other
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
        self.spend(_KEYWORD_US)
        if depth > MAX_DEPTH:
            raise TooMuchWork
        kind: type[Any] = type(value)
        if kind is dict:
            return frozenset((name, self.key(item, depth + 1)) for name, item in value.items())
        if kind is list:
            return tuple(self.key(item, depth + 1) for item in value)
        return (kind is bool, value)

    def target(self, reference: str) -> object:
        """Gives what a reference within the schema leads to; `_MISS` where that is nothing."""
        if reference != "#" and not reference.startswith("#/"):
            return _MISS
        steps = reference.split("/")[1:]
        self.spend(len(reference) / 10 + len(steps))
        found: Any = self._root
        for step in steps:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if type(found) is dict and name in found:
                found = cast("dict[str, Any]", found)[name]
            elif type(found) is list and name.isdecimal() and len(name) < 6:
                items = cast("list[Any]", found)
                found = items[int(name)] if int(name) < len(items) else _MISS
            else:
                return _MISS
        return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a keyword stands."""

    schema: dict[str, Any]
    """The keywords beside it."""
    path: Path
    """Where in the value."""
    depth: int


Faults: TypeAlias = Iterable[Fault]
_Keyword: TypeAlias = Callable[[_Check, Any, Any, _Place], Faults]
_IS_TYPE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: type(value) is bool,
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "number": lambda value: type(value) is int or type(value) is float,
    "string": lambda value: type(value) is str,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}


def _object(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _quoted(value: object) -> str:
    if type(value) is str:
        return repr(value if len(value) <= _QUOTED_CHARS else f"{value[:_QUOTED_CHARS]}…")
    if type(value) is dict:
        return "an object"
    if type(value) is list:
        return "a list"
    return "a number" if _is_giant(value) else repr(value)


def _is_giant(value: Any) -> bool:
    """Tells whether a number has so many digits that the time for writing it counts."""
    return type(value) is int and value.bit_length() > _GIANT_BITS


def _type(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
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
    yield run.fault(at.path, f"{_quoted(value)} is not of type {names}")


def _enum(run: _Check, rule: list[Any], value: Any, at: _Place) -> Faults:
    if type(value) is str:
        run.spend(len(rule) / 10)
        found = value in rule  # nothing else is equal to a text
    else:
        found = any(run.equal(value, option) for option in rule)
    if not found:
        shown = ", ".join(map(_quoted, rule[:10])) + (", …" if len(rule) > 10 else "")
        yield run.fault(at.path, f"{_quoted(value)} is not one of [{shown}]")


def _const(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    if not run.equal(value, rule):
        yield run.fault(at.path, f"{_quoted(rule)} was expected")


def _minimum(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    if value < rule:
        yield run.fault(at.path, f"{_quoted(value)} is less than the minimum of {_quoted(rule)}")
    elif value == rule and at.schema.get("exclusiveMinimum") is True:  # draft 4
        yield from _exclusive_minimum(run, rule, value, at)


def _maximum(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    if value > rule:
        yield run.fault(at.path, f"{_quoted(value)} is greater than the maximum of {_quoted(rule)}")
    elif value == rule and at.schema.get("exclusiveMaximum") is True:  # draft 4
        yield from _exclusive_maximum(run, rule, value, at)


def _exclusive_minimum(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    if value <= rule:
        yield run.fault(at.path, f"{_quoted(value)} is not greater than {_quoted(rule)}")


def _exclusive_maximum(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    if value >= rule:
        yield run.fault(at.path, f"{_quoted(value)} is not less than {_quoted(rule)}")


def _multiple_of(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    run.spend(5)
    try:
        if _is_giant(rule) or _is_giant(value):
            raise OverflowError
        if type(rule) is int and type(value) is int:
            rest = value % rule
        else:  # in decimals, as 0.3 is a multiple of 0.1 for whoever wrote it
            rest = Decimal(repr(value)) % Decimal(repr(rule))
    except ArithmeticError:
        run.unsure += 1
        return
    if rest:
        yield run.fault(at.path, f"{_quoted(value)} is not a multiple of {_quoted(rule)}")


def _bound(words: str, *, least: bool) -> _Keyword:
    def check(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
        if len(value) < rule if least else len(value) > rule:
            yield run.fault(at.path, f"{_quoted(value)} {words} ({rule})")

    return check


def _pattern(run: _Check, rule: str, value: str, at: _Place) -> Faults:
    found = run.is_in(rule, value)
    run.unsure += found is None
    if found is False:
        yield run.fault(at.path, f"{_quoted(value)} does not match {_quoted(rule)}")


def _required(run: _Check, rule: list[Any], value: dict[str, Any], at: _Place) -> Faults:
    run.spend(len(rule) / 10)
    for name in rule:
        if type(name) is str and name not in value:
            yield run.fault(at.path, f"{_quoted(name)} is a required property")


def _properties(run: _Check, rule: dict[str, Any], value: dict[str, Any], at: _Place) -> Faults:
    run.spend(min(len(rule), len(value)) / 10)
    for name in rule if len(rule) < len(value) else value:
        if name in rule and name in value:
            yield from run.faults(rule[name], value[name], (*at.path, name), at.depth)


def _pattern_properties(
    run: _Check, rule: dict[str, Any], value: dict[str, Any], at: _Place
) -> Faults:
    for pattern, schema in rule.items():
        for name, member in value.items():
            run.spend(_KEYWORD_US)
            found = run.is_in(pattern, name)
            run.unsure += found is None
            if found:
                yield from run.faults(schema, member, (*at.path, name), at.depth)


def _additional_properties(run: _Check, rule: Any, value: dict[str, Any], at: _Place) -> Faults:
    if rule is True:
        return
    named = _object(at.schema.get("properties"))
    patterns = _object(at.schema.get("patternProperties"))
    for name, member in value.items():
        run.spend(_KEYWORD_US)
        if name in named:
            continue
        found = [run.is_in(pattern, name) for pattern in patterns]
        if True in found:
            continue
        if None in found:
            run.unsure += 1
        elif rule is False:
            yield run.fault(at.path, f"{_quoted(name)} is not a known property")
        else:
            yield from run.faults(rule, member, (*at.path, name), at.depth)


def _property_names(run: _Check, rule: Any, value: dict[str, Any], at: _Place) -> Faults:
    for name in value:
        yield from run.faults(rule, name, at.path, at.depth)


def _dependencies(run: _Check, rule: dict[str, Any], value: dict[str, Any], at: _Place) -> Faults:
    run.spend(len(rule) / 10)
    for name, needed in rule.items():
        if name not in value:
            continue
        if type(needed) is list:
            yield from _required(run, cast("list[Any]", needed), value, at)
        else:
            yield from run.faults(needed, value, at.path, at.depth)


def _prefix_items(run: _Check, rule: list[Any], value: list[Any], at: _Place) -> Faults:
    for index, (schema, item) in enumerate(zip(rule, value, strict=False)):
        yield from run.faults(schema, item, (*at.path, index), at.depth)


def _items(run: _Check, rule: Any, value: list[Any], at: _Place) -> Faults:
    if type(rule) is list:  # until draft 2019-09
        yield from _prefix_items(run, cast("list[Any]", rule), value, at)
        return
    prefix = at.schema.get("prefixItems")
    for index in range(len(cast("list[Any]", prefix)) if type(prefix) is list else 0, len(value)):
        yield from run.faults(rule, value[index], (*at.path, index), at.depth)


def _additional_items(run: _Check, rule: Any, value: list[Any], at: _Place) -> Faults:
    if type(prefix := at.schema.get("items")) is list:
        for index in range(len(cast("list[Any]", prefix)), len(value)):
            yield from run.faults(rule, value[index], (*at.path, index), at.depth)


def _unique_items(run: _Check, rule: bool, value: list[Any], at: _Place) -> Faults:
    if rule and len({run.key(item) for item in value}) < len(value):
        yield run.fault(at.path, f"{_quoted(value)} has items that are the same")


def _contains(run: _Check, rule: Any, value: list[Any], at: _Place) -> Faults:
    least, most = at.schema.get("minContains", 1), at.schema.get("maxContains")
    found = [run.fits(rule, item, at) for item in value]
    certain, possible = found.count(True), len(found) - found.count(False)
    if type(least) is int and possible < least:
        yield run.fault(at.path, f"{_quoted(value)} has too few of the items that it must contain")
    elif type(most) is int and certain > most:
        yield run.fault(at.path, f"{_quoted(value)} has too many of the items that it may contain")
    else:
        run.unsure += certain != possible


def _all_of(run: _Check, rule: list[Any], value: Any, at: _Place) -> Faults:
    for schema in rule:
        yield from run.faults(schema, value, at.path, at.depth)


def _any_of(run: _Check, rule: list[Any], value: Any, at: _Place) -> Faults:
    yield from _choice(run, rule, value, at, only_one=False)


def _one_of(run: _Check, rule: list[Any], value: Any, at: _Place) -> Faults:
    yield from _choice(run, rule, value, at, only_one=True)


def _choice(run: _Check, rule: list[Any], value: Any, at: _Place, *, only_one: bool) -> Faults:
    certain = 0
    nearest: Fault | None = None
    before = run.unsure
    for schema in rule:
        run.unsure = 0
        first = next(iter(run.faults(schema, value, at.path, at.depth)), None)
        if first is None:
            certain += not run.unsure
            if not only_one or run.unsure:
                run.unsure += before
                return
        elif nearest is None or len(first.path) > len(nearest.path):
            nearest = first
    run.unsure = before
    if certain > 1:
        yield run.fault(at.path, f"{_quoted(value)} is valid under more than one of the schemas")
    elif not certain and nearest is not None:
        # What is wrong further inside says more than that no choice fits.
        inside = len(nearest.path) > len(at.path) or len(rule) == 1
        words = f"{_quoted(value)} is not valid under any of the given schemas"
        yield nearest if inside else run.fault(at.path, words)


def _not(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    fits = run.fits(rule, value, at)
    run.unsure += fits is None
    if fits:
        yield run.fault(at.path, f"{_quoted(value)} is what it must not be")


def _if(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    fits = run.fits(rule, value, at)
    run.unsure += fits is None
    branch = "then" if fits else "else"
    if fits is not None and branch in at.schema:
        yield from run.faults(at.schema[branch], value, at.path, at.depth)


def _ref(run: _Check, rule: str, value: Any, at: _Place) -> Faults:
    if (target := run.target(rule)) is _MISS:
        run.unsure += 1
    else:
        yield from run.faults(target, value, at.path, at.depth)


def _passed_over(run: _Check, rule: Any, value: Any, at: _Place) -> Faults:
    run.unsure += 1
    return ()


_NUMBER: Final = frozenset({int, float})
_TEXT: Final = frozenset({str})
_LIST: Final = frozenset({list})
_OBJECT: Final = frozenset({dict})
_SCHEMA: Final = frozenset({dict, bool})
_ANY: Final = frozenset({dict, list, str, int, float, bool, type(None)})
_KEYWORDS: Final[Mapping[str, tuple[frozenset[type], frozenset[type] | None, _Keyword]]] = {
    "type": (frozenset({str, list}), None, _type),
    "enum": (_LIST, None, _enum),
    "const": (_ANY, None, _const),
    "minimum": (_NUMBER, _NUMBER, _minimum),
    "maximum": (_NUMBER, _NUMBER, _maximum),
    "exclusiveMinimum": (_NUMBER, _NUMBER, _exclusive_minimum),
    "exclusiveMaximum": (_NUMBER, _NUMBER, _exclusive_maximum),
    "multipleOf": (_NUMBER, _NUMBER, _multiple_of),
    "minLength": (_NUMBER, _TEXT, _bound("is shorter than it must be", least=True)),
    "maxLength": (_NUMBER, _TEXT, _bound("is longer than it may be", least=False)),
    "pattern": (_TEXT, _TEXT, _pattern),
    "minItems": (_NUMBER, _LIST, _bound("has fewer items than it must", least=True)),
    "maxItems": (_NUMBER, _LIST, _bound("has more items than it may", least=False)),
    "uniqueItems": (frozenset({bool}), _LIST, _unique_items),
    "prefixItems": (_LIST, _LIST, _prefix_items),
    "items": (_SCHEMA | _LIST, _LIST, _items),
    "additionalItems": (_SCHEMA, _LIST, _additional_items),
    "contains": (_SCHEMA, _LIST, _contains),
    "unevaluatedItems": (_ANY, _LIST, _passed_over),
    "minProperties": (_NUMBER, _OBJECT, _bound("has fewer members than it must", least=True)),
    "maxProperties": (_NUMBER, _OBJECT, _bound("has more members than it may", least=False)),
    "required": (_LIST, _OBJECT, _required),
    "properties": (_OBJECT, _OBJECT, _properties),
    "patternProperties": (_OBJECT, _OBJECT, _pattern_properties),
    "additionalProperties": (_SCHEMA, _OBJECT, _additional_properties),
    "propertyNames": (_SCHEMA, _OBJECT, _property_names),
    "dependentRequired": (_OBJECT, _OBJECT, _dependencies),
    "dependentSchemas": (_OBJECT, _OBJECT, _dependencies),
    "dependencies": (_OBJECT, _OBJECT, _dependencies),
    "unevaluatedProperties": (_ANY, _OBJECT, _passed_over),
    "allOf": (_LIST, None, _all_of),
    "anyOf": (_LIST, None, _any_of),
    "oneOf": (_LIST, None, _one_of),
    "not": (_SCHEMA, None, _not),
    "if": (_SCHEMA, None, _if),
    "$ref": (_TEXT, None, _ref),
    "$dynamicRef": (_ANY, None, _passed_over),
    "$recursiveRef": (_ANY, None, _passed_over),
}
"""For each keyword: what it may be, which values it is about (None: all), and its check."""
