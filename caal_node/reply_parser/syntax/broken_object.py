"""What is known of a call's object; and if its JSON is broken, what can be trusted in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from caal_node.reply_parser.arguments import BadArguments, repair_object
from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.literal_parser import LiteralParser, UnreadableLiteral
from caal_node.reply_parser.parse_context import ParseContext
from caal_node.reply_parser.syntax.call_values import (
    call_parts,
    end_from_restart,
    end_from_value,
)
from caal_node.reply_parser.tool_index import properties_of
from caal_node.reply_parser.values import load_json

_MAX_RESTARTS = 4


@dataclass(slots=True)
class CallObject:
    """What is known so far of a call's object that is being read."""

    marked: bool
    """Whether a marker or an enclosing call says that this is a call."""
    committed: bool = False
    """Whether it is certain that this is a call."""
    raw: list[str] = field(default_factory=list[str])
    """Its text, in pieces."""
    name: str | None = None
    call: OpenCall | None = None
    arguments: str | None = None
    """JSON of the arguments."""
    final: bool = False
    """Whether its `type` says that it is an answer for the person."""
    held: str | None = None
    """Text that came before a `type` said whether it is speech."""
    made: bool = False
    """Whether something of it was called or spoken already."""
    has_call_key: bool = False
    """Whether a key has come that says what is called, or with what."""
    has_other_key: bool = False
    """Whether a key has come that no call has."""
    broken_off: bool = False
    """Whether its JSON broke off."""
    recoverable: bool = False
    """Whether it broke off when it was certain that this is a call."""


def recover(context: ParseContext, state: CallObject, closers: tuple[str, ...]) -> Steps[bool]:
    """Find where a call with broken JSON ends, and make of it what can be trusted.

    Returns:
        Whether it was a call.
    """
    cursor = context.cursor
    if state.made:
        return True
    if not state.committed:
        return False
    raw = "".join(state.raw)
    found = [at for at in (raw.find(closer) for closer in closers) if at >= 0]
    if found:
        # The marker that ends the call was swallowed by a string that was never closed.
        cut = min(found)
        cursor.try_unread(raw[cut:])
        raw, ended = raw[:cut], True
    else:
        rest, stop = yield from cursor.take_until(closers or ("\n\n", "```"))
        raw, ended = raw + rest, bool(stop)
    if state.call is not None:
        _end_open_call(state.call, raw, ended)
    elif not end_from_restart(context.calls, raw):
        value = _repaired(raw, ended)
        if call_parts(value) is None or not end_from_value(context.calls, value):
            context.calls.broken(state.name or "", "The call is not valid JSON.")
    return True


def _repaired(raw: str, ended: bool) -> Any:
    """Return the object in `raw`, or None. ended: whether a closer came behind it."""
    value: Any = None
    if ended or raw.rstrip().endswith("}"):
        try:
            value = LiteralParser(raw.strip()).mapping()
        except UnreadableLiteral:
            value = None
    if call_parts(value) is None and ended:
        try:
            value = repair_object(raw, None)
        except BadArguments:
            value = None
    return value


def _end_open_call(call: OpenCall, raw: str, ended: bool) -> None:
    """Give an opened call its arguments from broken JSON."""
    for start in _restarts(raw):
        try:
            parts = call_parts(load_json(raw[start:].rstrip()))
        except ValueError:
            continue
        if parts is not None and isinstance(parts[1], dict):
            call.end_value(parts[1])
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
        call.end_value(arguments)


def _restarts(raw: str) -> list[int]:
    """Return where the call begins again inside of `raw`."""
    starts: list[int] = []
    at = raw.find('{"name"', 1)
    while at > 0 and len(starts) < _MAX_RESTARTS:
        starts.append(at)
        at = raw.find('{"name"', at + 1)
    return starts
