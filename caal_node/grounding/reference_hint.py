"""The line at a prompt's end that says what the person's words refer to.

It holds a tool's words, so it is data: JSON on one line, of a limited length, with the heading that
says so. It stands in one request only; the model may take another reading.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from caal_node.context.one_line_json import to_line
from caal_node.core.prompt_files import fill
from caal_node.grounding.earlier_results import Thing, label_of
from caal_node.grounding.references import Reference

THING_CHARS: Final = 240
"""Characters of what one phrase means where it is one thing: a record of some eight fields."""
LABEL_CHARS: Final = 80
"""Characters of a thing's name."""
THINGS_MAX: Final = 12
"""Things that one phrase means. A longer list is read in the result itself."""


def reference_hint(references: Sequence[Reference]) -> str:
    """Return what a person's words refer to, as a line for the model; "" where there is nothing."""
    shown = [each for each in map(_told, references) if each]
    return fill("reference_hint.md", references=" ".join(shown)) if shown else ""


def _told(reference: Reference) -> str:
    if len(reference.things) > THINGS_MAX:
        return ""
    meant = [_written(thing, alone=len(reference.things) == 1) for thing in reference.things]
    return f"{_quoted(reference.words)} means {', '.join(meant)}." if all(meant) else ""


def _written(thing: Thing, *, alone: bool) -> str:
    """Return a thing's name, with its record where it stands alone."""
    label = label_of(thing)
    name = _quoted(label[:LABEL_CHARS]) if label else ""
    if not alone or isinstance(thing, str):
        return name
    short = {key: value for key, value in thing.items() if _is_short(value)}
    record = to_line(short, max_chars=THING_CHARS)
    return f"{name} {record}".strip()


def _is_short(value: Any) -> bool:
    """Whether a value is a name or a number; prose may say anything, and stays in its result."""
    if isinstance(value, str):
        return len(value) <= LABEL_CHARS
    return value is None or isinstance(value, bool | int | float)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
