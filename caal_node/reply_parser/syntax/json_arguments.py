"""A call whose name is known, and whose arguments are the JSON object that comes next."""

from __future__ import annotations

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.syntax.json_text import json_value


def read_arguments(source: Cursor, call: OpenCall) -> Steps[None]:
    """End `call` with the object that begins here."""
    text, whole = yield from json_value(source)
    if whole:
        call.end_json(text)
    else:
        call.cut_off()
