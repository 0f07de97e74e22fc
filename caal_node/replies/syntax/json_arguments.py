"""A call whose name is known, and whose arguments are the JSON object that comes next."""

from __future__ import annotations

from caal_node.replies.calls import OpenCall
from caal_node.replies.source import Source, Steps
from caal_node.replies.syntax.json_text import json_value


def read_arguments(source: Source, call: OpenCall) -> Steps[None]:
    """End `call` with the object that begins here."""
    text, whole = yield from json_value(source)
    if whole:
        call.end_json(text)
    else:
        call.cut_off()
