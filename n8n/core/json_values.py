"""Reads JSON and texts that others wrote. A value of a shape that is not wanted counts as empty."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from json import scanner
from typing import Any, Final, cast

SHORT_BYTES: Final = 4_096
"""An answer of up to this size is read in 5 ms, whatever it is. A longer one belongs into a
thread."""
LONG_BYTES: Final = 65_536
"""JSON of up to this size is read by the compiled decoder, in 1 to 8 ms."""
CONTAINERS_MAX: Final = 131_072
"""Objects and arrays of long JSON, by its brackets: the collector of garbage, which holds the
interpreter too, looks at each. A page of 50 workflows has some ten thousand."""


def parse_json(text: str | bytes) -> Any:
    """Read JSON by the standard, so that the value can be sent on: without NaN and Infinity.

    An escaped half of a surrogate pair becomes a question mark. What is long is read in small
    steps, which takes ten times as long: the compiled decoder and encoder hold the interpreter's
    lock from end to end (20 to 400 ms for a mebibyte), which stops the event loop from whatever
    thread they run in. Raises ValueError or RecursionError.
    """
    text = _decoded(text)
    if len(text) <= LONG_BYTES:
        return well_formed(text, DECODER.decode(text))
    if text.count("[") + text.count("{") > CONTAINERS_MAX:
        raise ValueError("it has too many values")
    value = _STEPWISE_DECODER.decode(text)
    if not _may_be_malformed(text):
        return value
    plain = "".join(_ENCODER.iterencode(value)).encode("utf-8", errors="replace").decode()
    return _STEPWISE_DECODER.decode(plain)


def well_formed(text: str, value: Any) -> Any:
    """Replace escaped halves of surrogate pairs in `value`, which was read from `text`."""
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


def _decoded(text: str | bytes) -> str:
    return text.decode("utf-8", errors="replace") if isinstance(text, bytes) else text


def _may_be_malformed(text: str) -> bool:
    return "\\ud" in text or "\\uD" in text


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
_STEPWISE_DECODER: Final = _StepwiseDecoder(parse_float=_finite, parse_constant=_refuse)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object as it is, and an empty one in place of anything else."""
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[Any]:
    """Return a JSON array as it is, and an empty one in place of anything else."""
    return cast(Sequence[Any], value) if isinstance(value, list) else ()


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON array; whatever else is in it is left out."""
    return [cast(Mapping[str, Any], item) for item in sequence(value) if isinstance(item, dict)]


# Control characters, and those that turn the direction of text around: nothing an author needs
# here, and a way to hide words from the person who reads the notes.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """Make all line ends one kind and take out the characters that do not show."""
    text = text.encode("utf-8", errors="replace").decode()
    return _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
