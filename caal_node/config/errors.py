"""Explains a wrong setting in one line: where it is written, what it is, and what to write."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from pydantic import ValidationError

from caal_node.config.file import GivenSetting, variable
from caal_node.core.errors import ConfigError

SHOWN_CHARS: Final = 60
"""Characters of a wrong value that the message quotes: enough to recognise it in a file."""

# What to write, by the beginning of the name of pydantic's error; the first that fits is taken.
_REMEDIES: Final = {
    "value_error": "{error}",
    "literal_error": "write {expected}",
    "int": "write a whole number",
    "float": "write a number",
    "bool": "write on or off",
    "less_than": "write at most {le}",
    "greater_than_equal": "write at least {ge}",
    "greater_than": "write more than {gt}",
    "string_too_short": "write something; it is empty",
    "string_too_long": "shorten it to {max_length} characters",
    "string": "write a text in quotes",
    "path": "write a file's path in quotes",
    "too_long": "keep at most {max_length}",
    "too_short": "write at least {min_length}",
    "tuple": "write a list of texts",
    "missing": "this is missing; write it",
    "extra_forbidden": "there is no such key; the keys are say and arguments",
    "dict": "write a table",
    "mapping": "write a table",
    "invalid-json-value": "write a text, number, true, false, list or table",
    "model_type": 'write a table such as {{say = "..."}}',
    "union": "write a text or a number",
}


def explained(
    error: ValidationError, given: Mapping[str, GivenSetting], secrets: Collection[str]
) -> ConfigError:
    """Turn the first of pydantic's errors into a ConfigError, without the values of `secrets`."""
    first = error.errors(include_url=False)[0]
    field, *inside = (str(part) for part in first["loc"])
    source = given.get(field)
    where = source.where if source else variable(field)
    if inside and field == "examples":
        # pydantic also names the members of a union or a list; the tool's name is what helps.
        where = f"{source.inside.get(inside[0], where)}, {'.'.join(inside)}" if source else where
    shown = ""
    if source is not None and field not in secrets and not inside:
        shown = f" {_shortened(source.value)} does not fit;"
    return ConfigError(f"{where}:{shown} {_remedy(first['type'], first.get('ctx', {}))}.")


def _remedy(kind: str, context: Mapping[str, Any]) -> str:
    for prefix, sentence in _REMEDIES.items():
        if kind.startswith(prefix):
            return sentence.format_map(context)
    return f"write another value ({kind})"


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
