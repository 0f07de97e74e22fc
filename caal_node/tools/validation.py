"""Do the arguments fit the tool's schema? In words that a model can mend its call by."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# jsonschema's own types are half unknown.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match

from caal_node.errors import InvalidArguments
from caal_node.tools.table import Entry

FAULTS_MAX: Final = 3
"""Faults told at once: a model mends three, and loses its way in ten."""

FAULT_CHARS: Final = 120
"""Characters of one fault; a fault quotes the value, which may be long."""


def check_arguments(entry: Entry, arguments: Mapping[str, Any]) -> None:
    """Raise InvalidArguments where `arguments` do not fit `entry`'s schema.

    A schema that is itself broken checks nothing: the tool's own server will judge.
    """
    schema = entry.spec.parameters
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return
    faults = list(Draft202012Validator(schema).iter_errors(dict(arguments)))
    if faults:
        told = sorted(faults, key=lambda fault: list(map(str, fault.path)))[:FAULTS_MAX]
        raise InvalidArguments(
            f"{entry.exposed} was not called: " + "; ".join(_words(fault) for fault in told)
        )


def _words(fault: ValidationError) -> str:
    if fault.context and (nearest := best_match(fault.context)) is not None:
        fault = nearest
    where = ".".join(str(part) for part in fault.path)
    # A required property's message names it already; every other one is about the value.
    message = str(fault.message)
    text = message if len(message) <= FAULT_CHARS else message[: FAULT_CHARS - 1] + "…"
    return f"{where}: {text}" if where else text
