"""Calls as Python writes them: `set_timer(minutes=5, label='tea')`."""

from __future__ import annotations

import re

from caal_node.replies.calls import OpenCall
from caal_node.replies.names import properties_of
from caal_node.replies.source import Source, Steps
from caal_node.replies.syntax.loose import Unreadable, keywords

_MARKS = re.compile(r"[()\[\]{}'\"\\]")
_IN_SINGLE = re.compile(r"['\\]")
_IN_DOUBLE = re.compile(r'["\\]')
_MAX_NESTING = 200


def bracketed(source: Source) -> Steps[tuple[str, bool]]:
    """Take what stands in the bracket that begins here, and the bracket: (text, was it closed)."""
    source.advance(source.at + 1)
    parts: list[str] = []
    depth = 1
    finder = _MARKS
    while True:
        found = finder.search(source.text, source.at)
        if found is None:
            parts.append(source.advance(len(source.text)))
            if source.closed:
                return "".join(parts), False
            source.wake = finder
            yield
            continue
        char = found.group()
        if char == "\\":
            parts.append(source.advance(found.start()))
            if not (yield from source.has(2)):
                parts.append(source.advance(len(source.text)))
                return "".join(parts), False
            parts.append(source.advance(source.at + 2))
        elif finder is not _MARKS:
            parts.append(source.advance(found.end()))
            finder = _MARKS
        elif char in "'\"":
            parts.append(source.advance(found.end()))
            finder = _IN_SINGLE if char == "'" else _IN_DOUBLE
        else:
            depth += 1 if char in "([{" else -1
            if depth <= 0:
                parts.append(source.advance(found.start()))
                source.advance(source.at + 1)
                return "".join(parts), True
            if depth > _MAX_NESTING:
                return "".join(parts), False
            parts.append(source.advance(found.end()))


def end_keywords(call: OpenCall, text: str) -> None:
    """End `call` with the arguments between the brackets."""
    names = tuple(properties_of(call.tool))
    try:
        call.end(keywords(text, names))
    except Unreadable:
        call.fail("The arguments cannot be read; write them as name=value.")
