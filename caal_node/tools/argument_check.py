"""Checks a call's arguments against the tool's schema; the faults are named for the model.

Schemas are strangers' work, and a schema of a few lines can take for ever: definitions that refer
to each other twice double the work at each level, and a pattern such as `^(a+)+$` does so with each
character. No check may take longer than an audio frame, 20 ms. So the keywords that are looked at
are counted, and a pattern is tried only where it cannot take long. What is not checked here is the
tool's own server's to judge, as with any schema that is broken.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# jsonschema's own types are half unknown.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from caal_node.core.errors import InvalidArguments
from caal_node.tools.table import ToolEntry

FAULTS_MAX: Final = 3
"""Faults named at once: a model mends three, and loses its way in ten."""
FAULT_CHARS: Final = 120
"""Characters of one fault; a fault quotes the value, which may be long."""
SCHEMAS_MAX: Final = 256
"""Checked schemas that are kept: the tools of several large sources."""
STEPS_MAX: Final = 4_000
"""Keywords looked at for one call's arguments: some 20 ms. Real calls take tens."""
_TRIES_MAX: Final = 1_000_000
"""Ways in which a pattern may be laid over a text: some 20 ms."""
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")
_REPEAT: Final = re.compile(r"[*+]|\{\d*,\d*\}")
_EITHER: Final = re.compile(r"(?<!\()\?|\|")

_steps: Final = ContextVar[int]("caal_schema_steps", default=0)

Check = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


def check_arguments(entry: ToolEntry, arguments: Mapping[str, Any]) -> None:
    """Check `arguments` against the schema of `entry`.

    A schema that is itself broken checks nothing: the tool's own server will judge.

    Raises:
        InvalidArguments: they do not fit; the message names the faults.
    """
    if faults := _faults(entry.spec.parameters, arguments):
        named = sorted(faults, key=lambda fault: list(map(str, fault.path)))[:FAULTS_MAX]
        raise InvalidArguments(
            f"{entry.exposed} was not called: " + "; ".join(_description(fault) for fault in named)
        )


def fits(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Say whether `arguments` fit `schema`; anything fits a broken one."""
    return not _faults(schema, arguments)


def _faults(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[ValidationError]:
    try:
        valid = _valid_schema(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):  # no JSON, so no schema
        return []
    try:
        return bounded_faults(valid, arguments) if valid is not None else []
    except (Unresolvable, ValidationTooCostly):  # broken, or as good as
        return []


@lru_cache(maxsize=SCHEMAS_MAX)
def _valid_schema(schema: str) -> Mapping[str, Any] | None:
    """Return the schema where it is valid, else None. The check takes 5 ms, so it is made once."""
    parsed = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parsed)
    except SchemaError:
        return None
    return of_one_dialect(parsed)


def _description(fault: ValidationError) -> str:
    if fault.context and (nearest := best_match(fault.context)) is not None:
        fault = nearest
    path = ".".join(str(part) for part in fault.path)
    # A required property's message names it already; every other one is about the value.
    message = str(fault.message)
    text = message if len(message) <= FAULT_CHARS else message[: FAULT_CHARS - 1] + "…"
    return f"{path}: {text}" if path else text


class ValidationTooCostly(Exception):
    """The schema asks for more work than a call is worth."""


def bounded_faults(
    schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> list[ValidationError]:
    """Return what does not fit `schema`, which is valid itself and came from `of_one_dialect`.

    Raises:
        ValidationTooCostly: it takes too many steps, goes in a circle, or has an invalid pattern.
        referencing.exceptions.Unresolvable: it refers elsewhere.
    """
    before = _steps.set(0)
    try:
        # An empty registry: a $ref to elsewhere is looked up nowhere, least of all in the network.
        return list(_Bounded(schema, registry=Registry()).iter_errors(dict(arguments)))
    except (RecursionError, re.error):
        raise ValidationTooCostly from None
    finally:
        _steps.reset(before)


def of_one_dialect(schema: Any) -> Any:
    """Return the schema without `$schema`, by which jsonschema would choose its own validator."""
    if isinstance(schema, list):
        return [of_one_dialect(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: of_one_dialect(value)
        for key, value in schema.items()
        if key != "$schema" or not isinstance(value, str)
    }


def is_quick(pattern: str, text: str) -> bool:
    """Say whether looking for `pattern` in `text` cannot take long, as far as can be seen."""
    if _REPEATED_GROUP.search(pattern):
        return False
    repeats, either = len(_REPEAT.findall(pattern)), len(_EITHER.findall(pattern))
    return (len(text) + 1) ** (repeats + 1) * 2**either <= _TRIES_MAX


def _counted(check: Check) -> Check:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _steps.set(steps := _steps.get() + 1)
        if steps > STEPS_MAX:
            raise ValidationTooCostly
        yield from check(validator, value, instance, schema) or ()

    return counted


def _pattern(validator: Any, pattern: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    if (
        validator.is_type(instance, "string")
        and is_quick(pattern, instance)
        and not re.search(pattern, instance)
    ):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _by_pattern(check: Check) -> Check:
    """Bound a keyword's check that lays the schema's patterns over the names in the arguments."""

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        patterns: Mapping[str, Any] = schema.get("patternProperties") or {}
        names = instance if validator.is_type(instance, "object") else ()
        if all(is_quick(pattern, name) for pattern in patterns for name in names):
            return check(validator, value, instance, schema)
        return ()

    return checked


_own: Final[Mapping[str, Check]] = Draft202012Validator.VALIDATORS | {
    "pattern": _pattern,
    **{
        keyword: _by_pattern(Draft202012Validator.VALIDATORS[keyword])
        for keyword in ("patternProperties", "additionalProperties", "unevaluatedProperties")
    },
}
_Bounded: Final = extend(
    Draft202012Validator, {keyword: _counted(check) for keyword, check in _own.items()}
)
