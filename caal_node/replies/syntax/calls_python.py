"""Calls as Python writes them: `set_timer(minutes=5, label='tea')`."""

from __future__ import annotations

from caal_node.replies.calls import OpenCall
from caal_node.replies.names import properties_of
from caal_node.replies.source import Source, Steps
from caal_node.replies.syntax.loose import Unreadable, keywords
from caal_node.replies.syntax.nesting import PYTHON, nested


def bracketed(source: Source) -> Steps[tuple[str, bool]]:
    """Take what stands in the bracket that begins here, and the bracket: (text, was it closed)."""
    text, whole = yield from nested(source, PYTHON)
    return (text[1:-1] if whole else text[1:]), whole


def end_keywords(call: OpenCall, text: str) -> None:
    """End `call` with the arguments between the brackets."""
    # Dialects use this, and the scanner knows all dialects.
    from caal_node.replies.markers import without_markers

    names = tuple(properties_of(call.tool))
    for attempt in (text, without_markers(text)):
        try:
            call.end(keywords(attempt, names))
            return
        except Unreadable:
            continue
    call.fail("The arguments cannot be read; write them as name=value.")
