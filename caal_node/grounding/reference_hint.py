"""The line at a prompt's end that says what the person's words refer to.

It holds a tool's words, so it is data: JSON on one line, of a limited length, with the heading that
says so. It stands in one request only; the model may take another reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from caal_node.context.one_line_json import to_line
from caal_node.context.tool_data import ToolData
from caal_node.core.items import Item, UserItem
from caal_node.core.prompt_files import fill, read
from caal_node.grounding.earlier_results import Thing, earlier_results, label_of
from caal_node.grounding.references import Reference, may_refer, resolve

THING_CHARS: Final = 240
"""Characters of what one phrase means where it is one thing: a record of some eight fields."""
LABEL_CHARS: Final = 80
"""Characters of a thing's name."""
THINGS_MAX: Final = 12
"""Things that one phrase means. A longer list is read in the result itself."""


def reference_hint(items: Sequence[Item], kept: Iterable[ToolData] = ()) -> str:
    """Return what the newest words of `items` refer to, as a line for the model.

    It is empty where they refer to nothing, where that is open, and where the conversation does not
    end with them. `kept` is its tool data.
    """
    newest = items[-1] if items else None
    if not isinstance(newest, UserItem) or not may_refer(newest.text):
        return ""
    found = resolve(newest.text, earlier_results(items, kept))
    shown = [each for each in map(_told, found) if each]
    return fill(read("reference_hint.md"), references=" ".join(shown)) if shown else ""


def _told(reference: Reference) -> str:
    if len(reference.things) > THINGS_MAX:
        return ""
    meant = [_written(thing, alone=len(reference.things) == 1) for thing in reference.things]
    return f"{_quoted(reference.words)} means {', '.join(meant)}." if all(meant) else ""


def _written(thing: Thing, *, alone: bool) -> str:
    """Return a thing's name, with its record where it stands alone."""
    label = label_of(thing)
    if alone and not isinstance(thing, str):
        record = to_line(thing, max_chars=THING_CHARS)
        return f"{_quoted(label[:LABEL_CHARS])} {record}" if label else record
    return _quoted(label[:LABEL_CHARS]) if label else ""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
