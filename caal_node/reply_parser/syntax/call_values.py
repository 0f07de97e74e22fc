"""Calls as finished JSON values: `{"name": ..., "arguments": {...}}` and what models make of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from caal_node.reply_parser.arguments import ARGUMENT_KEYS
from caal_node.reply_parser.call_builder import CallBuilder, OpenCall
from caal_node.reply_parser.values import load_json

NAME_KEYS = ("name", "function", "tool_name", "tool", "function_name", "action", "recipient_name")
WRAPPING_KEYS = ("function", "tool_call", "function_call", "call")
LIST_KEYS = ("tool_calls", "calls", "function_calls", "tools")
_OTHER_KEYS = frozenset({"id", "type", "index", "tool_call_id", "call_id", "thought", "reason"})
"""Keys that may stand beside a call and carry nothing for it."""
_RESTART = re.compile(r'\{\s*"(?:name|function|tool_name|tool)"\s*:')
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
        calls.open(named[0]).end_value(fields[named[0]])
        return True
    return False


def end_with_parts(call: OpenCall, arguments: Any) -> None:
    """End a call with what its object gave. Without arguments, only a tool that takes none is
    called."""
    if arguments is None and (call.tool is None or call.tool.properties):
        call.fail("The call has no arguments.")
    else:
        call.end_value(arguments)


def end_from_restart(calls: CallBuilder, text: str) -> bool:
    """Make the call in JSON that broke off and began again inside itself. False: there is none."""
    starts = [found.start() for found in _RESTART.finditer(text)][1 : _MAX_RESTARTS + 1]
    for start in starts:
        try:
            value: Any = load_json(text[start:])
        except ValueError:
            continue
        if call_parts(value) is not None:
            return end_from_value(calls, value)
    return False
