"""Says which keywords of a stranger's schema a model, and its server, are shown.

A model's server may turn schemas into grammars, and a repetition of 4,000,000,000 takes its memory.
What is broken, or larger than a model can use, is not shown; arguments are checked against the
whole schema all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

PATTERN_CHARS: Final = 120
"""Characters of a pattern; a model does not follow a longer one."""
COUNT_MAX: Final = 10_000
"""Characters, items or members that a schema may ask for or allow; beyond it there is no bound."""
CHOICES_MAX: Final = 256
"""Values of an enum, or alternatives."""
NAME_CHARS: Final = 120
"""Characters of a parameter's name."""
DATA_CHARS: Final = 2_000
"""Characters of a default, a constant or an example."""
_TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_COUNTS: Final = frozenset(
    {f"{least}{of}" for least in ("min", "max") for of in ("Length", "Items", "Properties")}
)
_NUMBERS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)
_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_DATA: Final = frozenset({"default", "const", "example", "examples"})
_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LARGE_REPEAT: Final = re.compile(r"\{[\d,]{4,}")
_NUMBER_MAX: Final = 1e18


def is_shown(key: str, value: Any) -> bool:
    """Say whether the keyword `key` of a schema is shown with this value."""
    if key == "type":
        kinds = cast("list[Any]", value if isinstance(value, list) else [value])
        return len(kinds) <= len(_TYPES) and all(
            isinstance(kind, str) and kind in _TYPES for kind in kinds
        )
    if key == "pattern":
        return (
            isinstance(value, str)
            and len(value) <= PATTERN_CHARS
            and _LARGE_REPEAT.search(value) is None
        )
    if key in _COUNTS:
        return type(value) is int and 0 <= value <= COUNT_MAX
    if key in _NUMBERS:
        return isinstance(value, bool) or (
            isinstance(value, int | float) and -_NUMBER_MAX <= value <= _NUMBER_MAX
        )
    if key == "enum" or key in _LISTS:
        return isinstance(value, list) and len(cast("list[Any]", value)) <= CHOICES_MAX
    if key == "required":
        return isinstance(value, list) and all(
            isinstance(name, str) for name in cast("list[Any]", value)
        )
    if key in _DATA:
        return len(json.dumps(value, default=str)) <= DATA_CHARS
    return not (key in _MAPS and not isinstance(value, Mapping))
