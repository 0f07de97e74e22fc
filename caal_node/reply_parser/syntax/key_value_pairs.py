"""`<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`, whatever the namespace."""

from __future__ import annotations

from typing import Any

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.format import CallFormat
from caal_node.reply_parser.syntax.elements import type_value
from caal_node.reply_parser.syntax.tags import Tag


def read_pairs(cursor: Cursor, call_format: CallFormat, call: OpenCall, first: Tag) -> Steps[None]:
    """Read the pairs of `call`, from behind the first `<arg_key>`, which is `first`."""
    key_close = first.closer
    value_open = first.text.replace("arg_key", "arg_value")
    value_close = value_open.replace("<", "</", 1)
    found: dict[str, Any] = {}
    while True:
        key, stop = yield from cursor.take_until((key_close, *call_format.closers))
        if stop != key_close:
            if stop:
                call.end(found)
            else:
                call.cut_off()
            return
        yield from cursor.take(key_close)
        value, stop = yield from _read_value(
            cursor, value_open, value_close, (first.text, *call_format.closers)
        )
        if value is not None:
            if not stop:
                call.cut_off()
                return
            found[key.strip()] = type_value(value, call, key.strip(), call_format)
        while (yield from cursor.skip_space()) == "\\" and (yield from cursor.take("\\n")):
            pass  # A newline that was escaped once too often.
        if (yield from cursor.take(first.text)):
            continue
        closing = yield from cursor.peek_any(call_format.closers)
        if closing is None and (yield from _reply_ends(cursor, call_format)):
            # The call is made only when nothing can be missing.
            if call.tool is None or set(call.tool.properties) <= set(found):
                call.end(found)
            else:
                call.cut_off()
            return
        call.end(found)
        return


def _reply_ends(cursor: Cursor, call_format: CallFormat) -> Steps[bool]:
    """Return whether the reply ends here, or in the middle of a closer, which is taken then."""
    if not (yield from cursor.peek()):
        return True
    rest = cursor.text[cursor.at :]
    if cursor.closed and any(closer.startswith(rest) for closer in call_format.closers):
        cursor.take_rest()
        return True
    return False


def _read_value(
    cursor: Cursor, value_open: str, value_close: str, others: tuple[str, ...]
) -> Steps[tuple[str | None, str]]:
    """Return the value behind a key, and what ended it; None when there is no value."""
    following = yield from cursor.skip_space()
    if following == "\\":
        yield from cursor.take("\\n")
        following = yield from cursor.skip_space()
    if not (yield from cursor.take(value_open)) and (
        not following or (yield from cursor.peek_any(others)) is not None
    ):
        return None, ""
    text, stop = yield from cursor.take_until((value_close, *others))
    yield from cursor.take(value_close)
    return text, stop
