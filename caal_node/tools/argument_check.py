"""Checks a call's arguments against the tool's schema; the faults are named for the model.

Schemas are strangers' work, so the check has a bound (`mcp_bridge/security/schema_check.py`). What
is not checked within it is the tool's own server's to judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from caal_node.core.errors import InvalidArguments
from caal_node.grounding.quantities import Misfit, refuse_misfits
from caal_node.reply_parser.tool_index import mapping
from caal_node.tools.table import ToolEntry
from mcp_bridge.security.schema_check import Fault, faults_of

FAULTS_MAX: Final = 3
"""Faults named at once: a model fixes three, and loses its way in ten."""
FAULT_CHARS: Final = 300
"""Characters of one fault, which quotes the value and names twenty that are allowed."""
_CHOICES: Final = frozenset(
    {"enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_PLAIN: Final = frozenset({str, int, float, bool})


def check_arguments(entry: ToolEntry, arguments: Mapping[str, Any]) -> None:
    """Check `arguments` against the schema of `entry`.

    Raises:
        InvalidArguments: they do not fit; the message names the faults.
    """
    _refuse(
        entry,
        faults_of(dict(entry.spec.parameters), dict(arguments), entry.exposed)
        or _faults_of_choices(entry, arguments),
    )


def check_choices(entry: ToolEntry, arguments: Mapping[str, Any]) -> None:
    """Check the enums and bounds of arguments whose types LiveKit has checked and made.

    A schema may have those by hand (`json_schema_extra`), of which LiveKit knows nothing.

    Raises:
        InvalidArguments: as for `check_arguments`.
    """
    _refuse(entry, _faults_of_choices(entry, arguments))


def _faults_of_choices(entry: ToolEntry, arguments: Mapping[str, Any]) -> Sequence[Fault]:
    """Return the arguments outside of their enums and bounds, whatever the rest of a schema asks.

    What LiveKit has made an object of is within them, and a default is its author's.
    """
    told = mapping(entry.spec.parameters.get("properties"))
    schemas = {
        name: {key: about[key] for key in _CHOICES & about.keys()}
        for name, value in arguments.items()
        if type(value) in _PLAIN
        and (about := mapping(told.get(name)))
        and not ("default" in about and about["default"] == value)
    }
    given = {name: arguments[name] for name in schemas}
    return faults_of({"properties": schemas}, given, entry.exposed)


def _refuse(entry: ToolEntry, faults: Sequence[Fault]) -> None:
    if faults:
        named = sorted(faults, key=lambda fault: list(map(str, fault.path)))[:FAULTS_MAX]
        raise InvalidArguments(
            f"{entry.exposed} was not called: " + "; ".join(_description(fault) for fault in named)
        )


def check_units(entry: ToolEntry, arguments: Mapping[str, Any], request: str) -> None:
    """Check that no argument is the number of what a person's `request` says in another unit.

    Raises:
        InvalidArguments: the parameter takes whole numbers alone; the message says what it is.
    """
    try:
        refuse_misfits(entry.spec.parameters, arguments, request)
    except Misfit as misfit:
        raise InvalidArguments(f"{entry.exposed} was not called: {misfit}") from None


def fits(schema: Mapping[str, Any], value: object, name: str = "a tool") -> bool:
    """Say whether `value` fits the schema of the tool `name`, as far as it can be checked."""
    return not faults_of(dict(schema), value, name)


def _description(fault: Fault) -> str:
    path = ".".join(map(str, fault.path))
    # A required property's message names it already; every other one is about the value.
    text = fault.message
    text = text if len(text) <= FAULT_CHARS else text[: FAULT_CHARS - 1] + "…"
    return f"{path}: {text}" if path else text
