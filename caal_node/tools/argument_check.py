"""Checks a call's arguments against the tool's schema; the faults are named for the model.

Schemas are strangers' work, so the check has a bound (`mcp_bridge/security/schema_check.py`). What
is not checked within it is the tool's own server's to judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from caal_node.core.errors import InvalidArguments
from caal_node.tools.table import ToolEntry
from mcp_bridge.security.schema_check import faults_of
from mcp_bridge.security.schema_walk import Fault

FAULTS_MAX: Final = 3
"""Faults named at once: a model mends three, and loses its way in ten."""
FAULT_CHARS: Final = 120
"""Characters of one fault; a fault quotes the value, which may be long."""


def check_arguments(entry: ToolEntry, arguments: Mapping[str, Any]) -> None:
    """Check `arguments` against the schema of `entry`.

    Raises:
        InvalidArguments: they do not fit; the message names the faults.
    """
    if faults := faults_of(dict(entry.spec.parameters), dict(arguments), entry.exposed):
        named = sorted(faults, key=lambda fault: list(map(str, fault.path)))[:FAULTS_MAX]
        raise InvalidArguments(
            f"{entry.exposed} was not called: " + "; ".join(_description(fault) for fault in named)
        )


def fits(schema: Mapping[str, Any], value: object, name: str = "a tool") -> bool:
    """Say whether `value` fits the schema of the tool `name`, as far as it can be checked."""
    return not faults_of(dict(schema), value, name)


def _description(fault: Fault) -> str:
    path = ".".join(map(str, fault.path))
    # A required property's message names it already; every other one is about the value.
    text = fault.message
    text = text if len(text) <= FAULT_CHARS else text[: FAULT_CHARS - 1] + "…"
    return f"{path}: {text}" if path else text
