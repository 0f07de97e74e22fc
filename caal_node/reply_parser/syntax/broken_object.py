"""A call's object whose JSON is broken: where it ends, and what can be trusted in it."""

from __future__ import annotations

from typing import Any, cast

from caal_node.reply_parser.arguments import BadArguments, repair_object
from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ParseContext
from caal_node.reply_parser.literal_parser import LiteralParser, UnreadableLiteral
from caal_node.reply_parser.syntax.call_object_state import CallObjectState
from caal_node.reply_parser.syntax.call_values import call_parts, end_from_value, salvage
from caal_node.reply_parser.tool_index import properties_of
from caal_node.reply_parser.values import load_json


def recover(reading: ParseContext, state: CallObjectState, closers: tuple[str, ...]) -> Steps[bool]:
    """The object's JSON is broken. Find where the call ends, and what can be trusted in it."""
    source = reading.source
    if state.made:
        return True
    if not state.committed:
        return False
    raw = "".join(state.raw)
    cut = _first(raw, closers)
    if cut is not None:
        # The marker that ends the call was swallowed by a string that was never closed.
        source.retry(raw[cut:])
        raw, ended = raw[:cut], True
    else:
        stops = closers or ("\n\n", "```")
        rest, stop = yield from source.until(stops)
        raw, ended = raw + rest, bool(stop)
    if state.call is None and salvage(reading.desk, raw):
        return True
    if state.call is not None:
        _mend(reading, state.call, raw, ended)
        return True
    value: Any = None
    try:
        value = (
            LiteralParser(raw.strip()).mapping() if ended or raw.rstrip().endswith("}") else None
        )
    except UnreadableLiteral:
        value = None
    if call_parts(value) is None and ended:
        try:
            value = repair_object(raw, None)
        except BadArguments:
            value = None
    if call_parts(value) is None or not end_from_value(reading.desk, value):
        reading.desk.broken(state.name or "", "The call is not valid JSON.")
    return True


def _mend(reading: ParseContext, call: OpenCall, raw: str, ended: bool) -> None:
    """Give an opened call its arguments from broken JSON."""
    inner = raw.find("{", 1)
    for start in _restarts(raw):
        try:
            parts = call_parts(load_json(raw[start:].rstrip()))
        except ValueError:
            continue
        if parts is not None and isinstance(parts[1], dict):
            call.end_value(parts[1])
            return
    if not ended or inner < 0:
        call.cut_off()
        return
    try:
        mended = call_parts(repair_object(raw, None))
    except BadArguments as problem:
        call.fail(str(problem))
        return
    arguments = mended[1] if mended is not None else None
    if not isinstance(arguments, dict) or not arguments:
        call.fail("The arguments are not valid JSON.")
        return
    given = cast("dict[str, Any]", arguments)
    known = set(properties_of(call.tool))
    if known and not set(given) <= known:
        call.fail("The arguments are not valid JSON.")
    else:
        call.end_value(given)


def _restarts(raw: str) -> list[int]:
    starts: list[int] = []
    at = raw.find('{"name"', 1)
    while at > 0 and len(starts) < 4:
        starts.append(at)
        at = raw.find('{"name"', at + 1)
    return starts


def _first(text: str, closers: tuple[str, ...]) -> int | None:
    found = [at for at in (text.find(closer) for closer in closers) if at >= 0]
    return min(found) if found else None
