"""A setting that is a table: in `caal.toml` a table, in the environment a JSON object."""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic import BaseModel, ConfigDict


class GivenTable(BaseModel):
    """The values of one table. They are immutable, and a wrong one is in no error's text."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )


def json_object(value: Any, example: str) -> Any:
    """Return the JSON object that a text holds, and any other value as it is.

    Raises:
        ValueError: the text is no JSON object; the message shows `example`.
    """
    if not isinstance(value, str):
        return value
    try:
        table: object = json.loads(value)
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise ValueError(f"write a JSON object such as {example}")
    return cast("dict[str, Any]", table)
