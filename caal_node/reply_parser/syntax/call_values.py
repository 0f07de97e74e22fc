"""Calls as JSON: finished values, and objects whose JSON is broken.

A finished call is `{"name": ..., "arguments": {...}}`, and what models make of it. Where the JSON
breaks off, only what can be trusted in it is used.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from caal_node.reply_parser.argument_repair import is_cut, is_too_deep, lacks_one_quote
from caal_node.reply_parser.arguments import (
    ARGUMENT_KEYS,
    BadArguments,
    has_unquoted_text,
    load_json,
    repair_object,
)
from caal_node.reply_parser.call_builder import CUT_OFF, CallBuilder, OpenCall
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.event_buffer import MarkerScrubber
from caal_node.reply_parser.literal_parser import LiteralParser, UnreadableLiteral
from caal_node.reply_parser.parse_context import ParseContext
from caal_node.reply_parser.tool_index import properties_of

NAME_KEYS = ("name", "function", "tool_name", "tool", "function_name", "action", "recipient_name")
WRAPPING_KEYS = ("function", "tool_call", "function_call", "call")
LIST_KEYS = ("tool_calls", "calls", "function_calls", "tools")
_OTHER_KEYS = frozenset({"id", "type", "index", "tool_call_id", "call_id", "thought", "reason"})
"""Keys that may stand beside a call and carry nothing for it."""
_BEGINNING = re.compile(r'\{\s*"(?:name|function|tool_name|tool)"\s*:')
_MAX_RESTARTS = 4


def call_parts(value: Any) -> tuple[str, Any] | None:
    """Return name and arguments of an object that is written as a call. The arguments are None
    when it has none."""
    if not isinstance(value, Mapping):
        return None
    fields = cast("Mapping[str, Any]", value)
    for key in WRAPPING_KEYS:
        inner = fields.get(key)
        if isinstance(inner, Mapping):
            return call_parts(inner)
    for key in NAME_KEYS:
        name = fields.get(key)
        if isinstance(name, str):
            for argument_key in ARGUMENT_KEYS:
                if argument_key in fields:
                    return name, fields[argument_key]
            return name, None
    return None


def end_from_value(calls: CallBuilder, value: Any) -> bool:
    """Make the calls that a JSON value holds. False: it holds none."""
    if isinstance(value, list):
        made = [end_from_value(calls, entry) for entry in cast("list[Any]", value)]
        return any(made)
    if not isinstance(value, Mapping):
        return False
    fields = cast("Mapping[str, Any]", value)
    for key in LIST_KEYS:
        if isinstance(fields.get(key), list):
            return end_from_value(calls, fields[key])
    parts = call_parts(fields)
    if parts is not None:
        end_with_parts(calls.open(parts[0]), parts[1])
        return True
    named = [key for key in fields if key not in _OTHER_KEYS]
    if len(named) == 1 and isinstance(fields[named[0]], Mapping):
        calls.open(named[0]).end(fields[named[0]])
        return True
    return False


def end_with_parts(call: OpenCall, arguments: Any) -> None:
    """End a call with what its object gave. Without arguments, only a tool that takes none is
    called."""
    if arguments is None and (call.tool is None or call.tool.properties):
        call.fail("The call has no arguments.")
    else:
        call.end(arguments)


def _restarted_calls(text: str) -> Iterator[Any]:
    """Yield the calls that begin inside of `text`, JSON of a call that broke off and began anew."""
    # The first beginning is the call's own.
    for found in itertools.islice(_BEGINNING.finditer(text), 1, _MAX_RESTARTS + 1):
        try:
            value: Any = load_json(text[found.start() :])
        except ValueError:
            continue
        if call_parts(value) is not None:
            yield value


def end_broken(
    context: ParseContext, raw: str, call: OpenCall | None, name: str, closers: tuple[str, ...]
) -> Steps[None]:
    """Find where a call with broken JSON ends, and make of it what can be trusted.

    raw: its text so far.
    call: the call, if it was opened.
    name: the tool's name, if it is known; else "".
    closers: markers that end it.
    """
    cursor = context.cursor
    found = [at for at in (raw.find(closer) for closer in closers) if at >= 0]
    swallowed = bool(found) and lacks_one_quote(raw[: min(found)])
    if not (yield from cursor.peek()) and is_cut(raw) and not swallowed:
        # A closer or a call in it may belong to a string, so at most speech can stand behind it.
        if call is not None:
            call.cut_off()
        else:
            context.calls.broken(name, CUT_OFF)
        scrubber = MarkerScrubber(context.events)
        scrubber.say(raw[min(found, default=len(raw)) :])
        scrubber.end()
        return
    if found:
        # The marker that ends the call was swallowed by a string that was never closed.
        cut = min(found)
        cursor.try_unread(raw[cut:])
        raw, ended = raw[:cut], True
    else:
        rest, stop = yield from cursor.take_until(closers or ("\n\n", "```"))
        raw, ended = raw + rest, bool(stop)
    if call is not None:
        _end_open_call(call, raw, ended)
    elif not ended and _ends_in_string(raw):
        context.calls.broken(name, CUT_OFF)  # What looks like a call in it belongs to the string.
    else:
        value = next(_restarted_calls(raw), None) or _literal_list(raw) or _repaired(raw, ended)
        is_call = isinstance(value, list) or call_parts(value) is not None
        if not is_call or not end_from_value(context.calls, value):
            context.calls.broken(name, "The call is not valid JSON.")


def _ends_in_string(raw: str) -> bool:
    """Return whether `raw`, an object in Python's quotes, ends in a string of it."""
    parser = LiteralParser(raw.strip())
    try:
        parser.mapping()
    except UnreadableLiteral:
        return False
    return parser.cut


def _literal_list(raw: str) -> list[Any] | None:
    """Return the whole list of calls in Python's quotes whose first bracket was read before `raw`;
    None where it is none."""
    text = raw.strip()
    if not text.endswith("]") or is_too_deep(text):
        return None
    parser = LiteralParser(f"[{text}")
    try:
        value: Any = parser.value()
    except UnreadableLiteral:
        return None
    if parser.cut or parser.skip_space() or has_unquoted_text(value):
        return None
    return value if all(call_parts(entry) is not None for entry in value) else None


def _repaired(raw: str, ended: bool) -> Any:
    """Return the object in `raw`, or None. ended: whether a closer came behind it."""
    value: Any = None
    if ended or raw.rstrip().endswith("}"):
        try:
            parser = LiteralParser(raw.strip())
            value = parser.mapping()
        except UnreadableLiteral:
            value = None
        else:
            value = value if ended or not parser.cut else None
    if call_parts(value) is None and ended:
        try:
            value = repair_object(raw, None)
        except BadArguments:
            value = None
    return value


def _end_open_call(call: OpenCall, raw: str, ended: bool) -> None:
    """Give an opened call its arguments from broken JSON."""
    for value in _restarted_calls(raw):
        parts = call_parts(value)
        if parts is not None and isinstance(parts[1], dict):
            call.end(parts[1])
            return
    if not ended or raw.find("{", 1) < 0:
        call.cut_off()
        return
    try:
        repaired = call_parts(repair_object(raw, None))
    except BadArguments as problem:
        call.fail(str(problem))
        return
    arguments = repaired[1] if repaired is not None else None
    known = set(properties_of(call.tool))
    if (
        not isinstance(arguments, dict)
        or not arguments
        or (known and not set(cast("dict[str, Any]", arguments)) <= known)
    ):
        call.fail("The arguments are not valid JSON.")
    else:
        call.end(arguments)
