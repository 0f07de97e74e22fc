"""Reading JSON that others wrote: what is not of the wanted shape counts as empty."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from json import scanner
from typing import Any, cast


def parse_json(text: str | bytes) -> Any:
    """JSON as the standard has it, fit to be sent on: no NaN, no Infinity, no half of a surrogate
    pair. Raises ValueError or RecursionError."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    return well_formed(text, DECODER.decode(text))


def parse_long_json(text: str) -> Any:
    """What `parse_json` gives, for a thread: ten times as slow, but never long without a break.

    The compiled decoder and encoder hold the interpreter's lock from end to end (20 to 120 ms for
    a mebibyte), which stops the event loop from whatever thread they run in.
    """
    value = _IN_STEPS.decode(text)
    if not _may_be_malformed(text):
        return value
    plain = "".join(_ENCODER.iterencode(value)).encode("utf-8", errors="replace").decode()
    return _IN_STEPS.decode(plain)


def well_formed(text: str, value: Any) -> Any:
    """The value of a JSON text; an escaped half of a surrogate pair becomes a question mark."""
    if not _may_be_malformed(text):
        return value
    plain = json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace")
    return json.loads(plain)


class _StepwiseDecoder(json.JSONDecoder):
    """The decoder that the standard library falls back to where nothing is compiled."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Any: the type stubs know only the compiled scanner.
        self.scan_once: Any = cast(Any, scanner).py_make_scanner(self)


def _may_be_malformed(text: str) -> bool:
    return "\\ud" in text or "\\uD" in text


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_IN_STEPS = _StepwiseDecoder(parse_float=_finite, parse_constant=_refuse)


def mapping(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[Any]:
    return cast(Sequence[Any], value) if isinstance(value, list) else ()


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; whatever else is in it is left out."""
    return [cast(Mapping[str, Any], item) for item in sequence(value) if isinstance(item, dict)]
