"""Lines of notes that mean something by themselves: `Example:`, `Takes:`, `Speak:`."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from n8n.core.json_values import mapping, parse_json
from n8n.core.workflow_tool import Example

MAX_TAKES_S: Final = 600
"""The longest that `Takes:` may ask for; nobody waits in a conversation for longer."""
EXAMPLE_FORM: Final = 'an example reads: words a person says -> {"name": "value"}'
_TAKES: Final = re.compile(
    r"^\s*takes\s*:\s*(?:up to|about|at most)?\s*(\d{1,4})"
    r"\s*(s|sec|seconds?|m|min|minutes?)?\s*\.?\s*$",
    re.IGNORECASE,
)
_SPEAK: Final = re.compile(r"^\s*speak\s*:\s*([A-Za-z_]\w*)\s*\.?\s*$", re.IGNORECASE)
_EXAMPLE: Final = re.compile(r"^\s*examples?\s*:\s*(.*)$", re.IGNORECASE)
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.*)$")
_ARROW: Final = re.compile(r"\s*(?:->|=>|→)\s*")


def spoken_field(line: str) -> str | None:
    """`Speak: message` -> message"""
    found = _SPEAK.match(line)
    return found[1] if found else None


def takes_s(line: str) -> float | None:
    """`Takes: 2 min` -> 120.0, at most MAX_TAKES_S"""
    if (found := _TAKES.match(line)) is None:
        return None
    minutes = (found[2] or "s").lower().startswith("m")
    return float(min(int(found[1]) * (60 if minutes else 1), MAX_TAKES_S))


def after_example(line: str) -> str | None:
    """What stands behind `Example:`; an empty string for the heading of a list."""
    found = _EXAMPLE.match(line)
    return found[1] if found else None


def bulleted(line: str) -> str | None:
    found = _BULLET.match(line)
    return found[1] if found else None


def read_example(text: str) -> Example | None:
    """`what's the weather in Paris -> {"city": "Paris"}`; None for what is no example."""
    arrow = _ARROW.search(text)
    words, tail = (text[: arrow.start()], text[arrow.end() :]) if arrow else (text, "")
    words = words.strip().strip("\"'“”‘’").strip()
    tail = tail.strip().rstrip(".")
    arguments: Any = {}
    if tail:
        try:
            arguments = parse_json(tail)
        except (ValueError, RecursionError):
            return None
    if not words or not isinstance(arguments, dict):
        return None
    return Example(words, mapping(cast(object, arguments)))
