"""A call's JSON object while it streams: the name is known before the arguments have come.

Behind a marker an object is a call whatever it looks like. UnquotedText, it must prove it: a name that
is a tool's together with arguments, or a word of the text protocol. Until then nothing is
emitted, so that JSON which somebody asked to hear can still be spoken.
"""

from __future__ import annotations

from typing import Any

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ParseContext, ReadOutcome
from caal_node.reply_parser.marker_scrubber import MarkerScrubber
from caal_node.reply_parser.syntax import text_protocol
from caal_node.reply_parser.syntax.broken_object import recover
from caal_node.reply_parser.syntax.call_object_state import CallObjectState
from caal_node.reply_parser.syntax.call_values import (
    ARGUMENT_KEYS,
    LIST_KEYS,
    NAME_KEYS,
    WRAPPING_KEYS,
    end_from_value,
    finish,
)
from caal_node.reply_parser.syntax.json_text import json_value
from caal_node.reply_parser.values import load_json

_ASIDE_KEYS = frozenset({"id", "index", "tool_call_id", "call_id"})
_SHAPE_KEYS = frozenset((*NAME_KEYS, *WRAPPING_KEYS, *LIST_KEYS, *ARGUMENT_KEYS))
_OWN_KEYS = _SHAPE_KEYS | _ASIDE_KEYS | {"type"}
_MAX_HELD_CHARS = 400
"""An object that has not proved to be a call after so much of other values is none."""


def read_call_object(
    reading: ParseContext, *, marked: bool, strict: bool = False, closers: tuple[str, ...] = ()
) -> Steps[bool]:
    """Read the object that begins here. False: it is no call (and all of it was read).

    marked: a marker or an enclosing call says that this is one.
    strict: bare in the middle of a line, where only a tool's own name counts.
    closers: markers that end the call if its JSON never does.
    """
    return (yield from _object(reading, CallObjectState(marked, committed=marked), strict, closers))


def read_bare_object(
    reading: ParseContext, *, strict: bool, closers: tuple[str, ...] = ()
) -> Steps[ReadOutcome]:
    """The same where nothing says that it is a call; and what it is if it is none."""
    state = CallObjectState(marked=False)
    if (yield from _object(reading, state, strict, closers)):
        return ReadOutcome.CALL
    return (
        ReadOutcome.TORN if state.torn and state.shape and not state.foreign else ReadOutcome.SPEECH
    )


def _object(
    reading: ParseContext, state: CallObjectState, strict: bool, closers: tuple[str, ...]
) -> Steps[bool]:
    made = yield from _read(reading, state, strict, closers)
    if state.call is not None:
        state.call.cut_off()  # Unless it has ended. What has begun must end, however it was broken.
    return made or state.made  # What was spoken or called already is not text any more.


def _nested(
    reading: ParseContext, outer: CallObjectState, strict: bool, closers: tuple[str, ...]
) -> Steps[bool]:
    """An object inside another, which may be the call itself."""
    state = CallObjectState(outer.committed, committed=outer.committed)
    made = yield from _object(reading, state, strict, closers)
    outer.torn = outer.torn or state.torn
    outer.foreign = outer.foreign or state.foreign
    outer.made = outer.made or made
    return made


def _read(
    reading: ParseContext, state: CallObjectState, strict: bool, closers: tuple[str, ...]
) -> Steps[bool]:
    source = reading.source
    state.raw.append(source.advance(source.at + 1))
    if state.marked and (yield from source.skip_space()) == "{":
        source.advance(source.at + 1)  # `{{...}}`, from a template that was taken literally.
    while True:
        char = yield from source.skip_space()
        if char == "}":
            state.raw.append(source.advance(source.at + 1))
            break
        if char == ",":
            state.raw.append(source.advance(source.at + 1))
            continue
        if not char and state.name is not None and not _may_be_named(reading, state):
            return False  # Data, of which only the last bracket is missing.
        if char != '"':
            if state.arguments is not None and state.name is not None:
                break  # Only its own bracket is missing.
            state.torn = True
            return (yield from recover(reading, state, closers))
        text, whole = yield from json_value(source)
        state.raw.append(text)
        if not whole or (yield from source.skip_space()) != ":":
            state.torn = True
            return (yield from recover(reading, state, closers))
        state.raw.append(source.advance(source.at + 1))
        key = _decoded(text).lower()
        if not (yield from _field(reading, state, key, strict, closers)):
            if state.problem:
                return (yield from recover(reading, state, closers))
            return False
    return _end(reading, state)


def _end(reading: ParseContext, state: CallObjectState) -> bool:
    if state.call is not None:
        if state.arguments is None:
            finish(state.call, None)
        else:
            state.call.end_json(state.arguments)
        return True
    if state.made:
        return True
    if state.held is not None and state.final:
        scrubber = MarkerScrubber(reading)
        scrubber.say(state.held)
        scrubber.end()
        return True
    if not state.committed:
        return False
    if state.arguments is not None or state.name is not None:
        call = reading.desk.open(state.name or "")
        if state.arguments is None:
            finish(call, None)
        else:
            call.end_json(state.arguments)
        return True
    if state.marked:
        try:
            return end_from_value(reading.desk, load_json("".join(state.raw)))
        except ValueError:
            return False
    if not state.final:
        reading.desk.broken("", "The call names no tool.")
    return True


def _field(
    reading: ParseContext, state: CallObjectState, key: str, strict: bool, closers: tuple[str, ...]
) -> Steps[bool]:
    """Read one value. False: the object is no call, or (state.problem) it is broken."""
    source = reading.source
    state.shape = state.shape or key in _SHAPE_KEYS
    # A key with half a marker in it may have been any.
    state.foreign = state.foreign or not (key in _OWN_KEYS or "<" in key or "[" in key)
    char = yield from source.skip_space()
    if char == "{" and key in WRAPPING_KEYS and state.name is None:
        return (yield from _inner(reading, state, strict, closers))
    if key in LIST_KEYS and (char == "[" or state.committed):
        return (yield from _list(reading, state, char, strict, closers))
    if char == '"' and text_protocol.speaks(state, key):
        yield from text_protocol.say(reading, state)
        return True
    if key in NAME_KEYS and char == '"' and state.name is None:
        text, whole = yield from json_value(source)
        state.raw.append(text)
        if not whole:
            state.torn, state.problem = True, state.committed
            return False
        if _named(reading, state, _decoded(text), strict):
            return True
        state.torn = (yield from source.skip_space()) not in (",", "}", "")
        return False
    if key in ARGUMENT_KEYS and state.arguments is None and char in ("{", '"', "n", "["):
        return (yield from _arguments(reading, state, char, strict))
    if char == "{" and state.name is None and _tool_key(reading, state, key):
        state.name, state.committed = key, True
        return (yield from _arguments(reading, state, char, strict))
    text, whole = yield from json_value(source)
    state.raw.append(text)
    if not whole:
        state.torn, state.problem = True, state.committed
        return False
    if key == "description" and state.call is None and not state.marked:
        return False  # A tool is being described.
    if key == "type":
        kind = _decoded(text).lower()
        state.final = kind in text_protocol.FINAL_TYPES
        state.committed = state.committed or state.final or kind in text_protocol.CALL_TYPES
        return state.committed or kind == "function"
    if key in ("text", "content") and char == '"' and state.held is None:
        state.held = _decoded(text)
    elif key not in _ASIDE_KEYS and not state.committed and state.name is None:
        return False
    return state.committed or sum(map(len, state.raw)) <= _MAX_HELD_CHARS


def _tool_key(reading: ParseContext, state: CallObjectState, key: str) -> bool:
    """`{"set_timer": {...}}`: the name is the key."""
    if state.marked:
        return key not in ARGUMENT_KEYS and len(state.raw) <= 3
    return not state.committed and len(state.raw) <= 3 and key in reading.desk.box.by_name


def _named(reading: ParseContext, state: CallObjectState, name: str, strict: bool) -> bool:
    state.name = name
    if state.committed:
        _open(reading, state)
        return True
    known = reading.desk.box.named(name) is not None
    if state.arguments is not None and (known or not strict):
        state.committed = True
        _open(reading, state)
    return known or not strict


def _may_be_named(reading: ParseContext, state: CallObjectState) -> bool:
    """Whether what has come as a name may be one, so that the object may be a call."""
    box = reading.desk.box
    return state.committed or box.open or box.named(state.name or "") is not None


def _open(reading: ParseContext, state: CallObjectState) -> None:
    if state.call is None and state.name is not None and state.arguments is None:
        state.call = reading.desk.open(state.name)


def _arguments(
    reading: ParseContext, state: CallObjectState, char: str, strict: bool
) -> Steps[bool]:
    if not state.committed and state.name is not None:
        known = reading.desk.box.named(state.name) is not None
        if not known and (strict or char != "{"):
            return False
        state.committed = True
    if state.committed:
        _open(reading, state)
    text, whole = yield from json_value(reading.source)
    state.raw.append(text)
    if whole:
        state.arguments = text
        return True
    state.torn, state.problem = True, state.committed
    return False


def _inner(
    reading: ParseContext, state: CallObjectState, strict: bool, closers: tuple[str, ...]
) -> Steps[bool]:
    made = yield from _nested(reading, state, strict, closers)
    state.committed = state.committed or made
    return made


def _list(
    reading: ParseContext, state: CallObjectState, char: str, strict: bool, closers: tuple[str, ...]
) -> Steps[bool]:
    source = reading.source
    if char != "[":
        text, _ = yield from json_value(source)
        state.raw.append(text)
        return True
    source.advance(source.at + 1)
    while True:
        char = yield from source.skip_space()
        if char == "{":
            made = yield from _nested(reading, state, strict, closers)
            if not made and not state.committed:
                return False
            state.committed = True
        elif char == ",":
            source.advance(source.at + 1)
        elif char == "]":
            source.advance(source.at + 1)
            state.made = state.made or not state.marked
            state.committed = True
            return True
        else:
            return state.committed


def _decoded(text: str) -> str:
    try:
        value: Any = load_json(text)
    except ValueError:
        return text.strip('"')
    return value if isinstance(value, str) else ""
