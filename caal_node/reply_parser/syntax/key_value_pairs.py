"""`<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`, whatever the namespace."""

from __future__ import annotations

from typing import Any

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.syntax.bare_values import type_value
from caal_node.reply_parser.syntax.tags import Tag


def read_pairs(reading: ParseContext, dialect: Format, call: OpenCall, first: Tag) -> Steps[None]:
    """`<arg_key>k</arg_key><arg_value>v</arg_value>...`, from behind the first `<arg_key>`."""
    source = reading.source
    key_end = first.closer
    value_open = first.text.replace("arg_key", "arg_value")
    value_end = value_open.replace("<", "</", 1)
    found: dict[str, Any] = {}
    while True:
        key, stop = yield from source.until((key_end, *dialect.closers))
        if stop != key_end:
            if stop:
                call.end(found)
            else:
                call.cut_off()
            return
        yield from source.take(key_end)
        value, stop = yield from _pair_value(
            reading, (value_open, value_end, first.text, *dialect.closers)
        )
        if value is not None:
            if not stop:
                call.cut_off()
                return
            found[key.strip()] = type_value(value, call, key.strip(), dialect)
        while (yield from source.skip_space()) == "\\" and (yield from source.take("\\n")):
            pass  # A newline that was escaped once too often.
        if (yield from source.take(first.text)):
            continue
        closing = yield from source.look(dialect.closers)
        if closing is None and source.closed and source.at >= len(source.text):
            _end_unclosed(call, found)
            return
        if closing is None and (yield from _cut_closer(reading, dialect)):
            _end_unclosed(call, found)
            return
        call.end(found)
        return


def _cut_closer(reading: ParseContext, dialect: Format) -> Steps[bool]:
    """Whether the reply ends in the middle of the closer."""
    source = reading.source
    if not (yield from source.peek()):
        return True
    rest = source.text[source.at :]
    if source.closed and any(closer.startswith(rest) for closer in dialect.closers):
        source.advance(len(source.text))
        return True
    return False


def _end_unclosed(call: OpenCall, found: dict[str, Any]) -> None:
    """The reply ended before the call did: it is made only when nothing can be missing."""
    if call.tool is None or set(call.tool.properties) <= set(found):
        call.end(found)
    else:
        call.cut_off()


def _pair_value(reading: ParseContext, tags: tuple[str, ...]) -> Steps[tuple[str | None, str]]:
    """The value behind a key, and what ended it; None when there is no value."""
    source = reading.source
    value_open, value_end, key_open, *closers = tags
    following = yield from source.skip_space()
    if following == "\\":
        yield from source.take("\\n")
        following = yield from source.skip_space()
    if not (yield from source.take(value_open)) and (
        not following or (yield from source.look((key_open, *closers))) is not None
    ):
        return None, ""
    text, stop = yield from source.until((value_end, key_open, *closers))
    yield from source.take(value_end)
    return text, stop
