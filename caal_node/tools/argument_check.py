"""Checks a call's arguments against the tool's schema; the faults are named for the model."""

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
from referencing.exceptions import Unresolvable

from caal_node.core.errors import InvalidArguments
from caal_node.tools import bounded_validator
from caal_node.tools.table import ToolEntry

FAULTS_MAX: Final = 3
"""Faults named at once: a model mends three, and loses its way in ten."""
FAULT_CHARS: Final = 120
"""Characters of one fault; a fault quotes the value, which may be long."""
SCHEMAS_MAX: Final = 256
"""Checked schemas that are kept: the tools of several large sources."""


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
        return bounded_validator.faults(valid, arguments) if valid is not None else []
    except (Unresolvable, bounded_validator.ValidationTooCostly):  # broken, or as good as
        return []


@lru_cache(maxsize=SCHEMAS_MAX)
def _valid_schema(schema: str) -> Mapping[str, Any] | None:
    """Return the schema where it is valid, else None. The check takes 5 ms, so it is made once."""
    parsed = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parsed)
    except SchemaError:
        return None
    return bounded_validator.of_one_dialect(parsed)


def _description(fault: ValidationError) -> str:
    if fault.context and (nearest := best_match(fault.context)) is not None:
        fault = nearest
    path = ".".join(str(part) for part in fault.path)
    # A required property's message names it already; every other one is about the value.
    message = str(fault.message)
    text = message if len(message) <= FAULT_CHARS else message[: FAULT_CHARS - 1] + "…"
    return f"{path}: {text}" if path else text
