"""Reads an author's example utterances: `Example: time in Oslo -> {"zone": "Europe/Oslo"}`.

Method docstrings and the notes of n8n workflows use the same notation. The arguments are a JSON
object on the same line; an example without an arrow means a call without arguments.
"""

from __future__ import annotations

import json
import re
from typing import Final

from caal_node.core.tool_spec import Example

_LINE: Final = re.compile(
    r"^\s*(?:-\s*)?Example:\s*(?P<say>.+?)\s*(?:->\s*(?P<args>\{.*\})\s*)?$", re.I
)
EXAMPLES_MAX: Final = 3
"""Examples that are kept of one tool. Three helped a 0.5B model; each costs about 60 tokens."""


def from_text(text: str | None) -> tuple[Example, ...]:
    """Return the examples in `text`, in order. A line whose JSON is broken is left out."""
    found: list[Example] = []
    for line in (text or "").splitlines():
        if not (match := _LINE.match(line)):
            continue
        try:
            arguments = json.loads(match["args"] or "{}")
        except ValueError:
            continue
        found.append(Example(match["say"].strip("\"'“” "), arguments))
    return tuple(found[:EXAMPLES_MAX])


def without_examples(text: str) -> str:
    """Return `text` without its example lines, which the prompt shows elsewhere."""
    return "\n".join(line for line in text.splitlines() if not _LINE.match(line)).strip()
