"""Reading JSON that others wrote: what is not of the wanted shape counts as empty."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast


def parse_json(text: str | bytes) -> Any:
    """JSON as the standard has it, fit to be sent on: no NaN, no Infinity, no half of a surrogate
    pair. Raises ValueError or RecursionError."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    return well_formed(text, DECODER.decode(text))


def well_formed(text: str, value: Any) -> Any:
    """The value of a JSON text; an escaped half of a surrogate pair becomes a question mark."""
    if "\\ud" not in text and "\\uD" not in text:
        return value
    plain = json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace")
    return json.loads(plain)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)


def mapping(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[Any]:
    return cast(Sequence[Any], value) if isinstance(value, list) else ()


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; whatever else is in it is left out."""
    return [cast(Mapping[str, Any], item) for item in sequence(value) if isinstance(item, dict)]
