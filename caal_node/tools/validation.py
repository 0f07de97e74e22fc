"""Do the arguments fit the tool's schema? In words that a model can mend its call by."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# jsonschema's own types are half unknown.

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from caal_node.errors import InvalidArguments
from caal_node.tools.table import Entry

FAULTS_MAX: Final = 3
"""Faults told at once: a model mends three, and loses its way in ten."""

FAULT_CHARS: Final = 120
"""Characters of one fault; a fault quotes the value, which may be long."""
SCHEMAS_KEPT: Final = 256
"""Checked schemas: the tools of several large sources."""


def check_arguments(entry: Entry, arguments: Mapping[str, Any]) -> None:
    """Raise InvalidArguments where `arguments` do not fit `entry`'s schema.

    A schema that is itself broken checks nothing: the tool's own server will judge.
    """
    if (validator := _validator_of(entry.spec.parameters)) is None:
        return
    if faults := _faults(validator, arguments):
        told = sorted(faults, key=lambda fault: list(map(str, fault.path)))[:FAULTS_MAX]
        raise InvalidArguments(
            f"{entry.exposed} was not called: " + "; ".join(_words(fault) for fault in told)
        )


def fits(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether `arguments` fit `schema`; anything fits a broken one."""
    validator = _validator_of(schema)
    return validator is None or not _faults(validator, arguments)


def _faults(validator: Draft202012Validator, arguments: Mapping[str, Any]) -> list[ValidationError]:
    try:
        return list(validator.iter_errors(dict(arguments)))
    except Unresolvable:  # a schema that refers elsewhere is a broken one
        return []


def _validator_of(schema: Mapping[str, Any]) -> Draft202012Validator | None:
    try:
        return _validator(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):  # no JSON, so no schema
        return None


@lru_cache(maxsize=SCHEMAS_KEPT)
def _validator(schema: str) -> Draft202012Validator | None:
    """None for a broken schema. Checking the schema itself takes 5 ms, so it is done once."""
    parsed = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parsed)
    except SchemaError:
        return None
    # An empty registry: a $ref to elsewhere is looked up nowhere, least of all in the network.
    return Draft202012Validator(parsed, registry=Registry())


def _words(fault: ValidationError) -> str:
    if fault.context and (nearest := best_match(fault.context)) is not None:
        fault = nearest
    where = ".".join(str(part) for part in fault.path)
    # A required property's message names it already; every other one is about the value.
    message = str(fault.message)
    text = message if len(message) <= FAULT_CHARS else message[: FAULT_CHARS - 1] + "…"
    return f"{where}: {text}" if where else text
