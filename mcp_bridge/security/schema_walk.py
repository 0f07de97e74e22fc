"""Applies a schema of a stranger's to a value, with a bound on the work.

A schema of a few lines can ask for endless work: definitions that refer to each other twice double
it at each level, and a list of unique items may ask for each to be compared with each. So a check
has so much work to spend, and whatever it does is charged before it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

from mcp_bridge.security.patterns import compile_us, compiled

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
