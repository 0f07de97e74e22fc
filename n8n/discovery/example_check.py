"""Whether an author's examples, defaults and bounds are what the tool's schema allows."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# jsonschema's own types leave these open.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from n8n.core.json_values import mapping

MAX_MESSAGE_CHARS: Final = 120
_DATES: Final = FormatChecker(("date",))
_VALIDATOR: Final[Any] = extend(Draft202012Validator, {"pattern": lambda *_: None})
"""It checks no pattern: an author's may take seconds."""


def fault_of(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """Say what is wrong with an example's arguments; None if a call may have them."""
    if missing := sorted(set(schema.get("required", ())) - arguments.keys()):
        return f"lacks {', '.join(missing)}"
    known = mapping(schema.get("properties"))
    if known and (unknown := sorted(arguments.keys() - known.keys())):
        return f"has {', '.join(unknown)[:MAX_MESSAGE_CHARS]}, which is no parameter"
    error: Any = best_match(_VALIDATOR(schema, format_checker=_DATES).iter_errors(arguments))
    if error is None:
        return None
    where = ".".join(map(str, error.absolute_path))
    return f"has a wrong {where}: {error.message[:MAX_MESSAGE_CHARS]}"


def faults_of_defaults(schema: Mapping[str, Any]) -> list[str]:
    """Say which parameters have a default that is none of their values, or no value at all."""
    faults: list[str] = []
    for name, told in mapping(schema.get("properties")).items():
        low, high = mapping(told).get("minimum"), mapping(told).get("maximum")
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high:
            faults.append(f"{name} has no value: it is at least {low} and at most {high}")
        elif "default" in mapping(told):
            validator = _VALIDATOR(told, format_checker=_DATES)
            if (error := best_match(validator.iter_errors(told["default"]))) is not None:
                faults.append(f"the default of {name}: {error.message[:MAX_MESSAGE_CHARS]}")
    return faults
