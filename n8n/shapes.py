"""Reading JSON that others wrote: what is not of the wanted shape counts as empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast


def mapping(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[Any]:
    return cast(Sequence[Any], value) if isinstance(value, list) else ()


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; whatever else is in it is left out."""
    return [cast(Mapping[str, Any], item) for item in sequence(value) if isinstance(item, dict)]
