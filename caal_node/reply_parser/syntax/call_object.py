"""A call's JSON object while it streams: the name is known before the arguments have arrived.

Behind a marker an object is a call whatever it looks like. Without one it must prove it: by a name
that is a tool's together with arguments, or by a word of the text protocol. Until then nothing is
emitted, so that JSON which somebody asked to hear can still be spoken.
"""

from __future__ import annotations

from typing import Any

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.event_buffer import MarkerScrubber
from caal_node.reply_parser.format import ReadOutcome
from caal_node.reply_parser.parse_context import ParseContext
from caal_node.reply_parser.syntax import text_protocol
from caal_node.reply_parser.syntax.call_values import (
    ARGUMENT_KEYS,
    LIST_KEYS,
    NAME_KEYS,
    WRAPPING_KEYS,
    CallObject,
    end_from_value,
    end_with_parts,
    recover,
)
from caal_node.reply_parser.syntax.json_text import read_json
from caal_node.reply_parser.values import load_json

_ID_KEYS = frozenset({"id", "index", "tool_call_id", "call_id"})
_CALL_KEYS = frozenset((*NAME_KEYS, *WRAPPING_KEYS, *LIST_KEYS, *ARGUMENT_KEYS))
_KNOWN_KEYS = _CALL_KEYS | _ID_KEYS | {"type"}
_MAX_HELD_CHARS = 400
"""An object that has not proved to be a call after this much of other values is none."""


def read_call_object(
    context: ParseContext, *, marked: bool, closers: tuple[str, ...] = ()
) -> Steps[bool]:
    """Read the object that begins here. False: it is no call, and all of it was read.

    marked: a marker or an enclosing call says that this is one.
    closers: markers that end the call if its JSON never does.
    """
    reader = _ObjectReader(context, CallObject(marked, committed=marked), False, closers)
    return (yield from reader.read())


def read_bare_object(
    context: ParseContext, *, strict: bool, closers: tuple[str, ...] = ()
) -> Steps[ReadOutcome]:
    """Read the object that begins here, where nothing says yet that it is a call.

    strict: it stands in the middle of a line, where only a tool's own name counts.
    """
    state = CallObject(marked=False)
    if (yield from _ObjectReader(context, state, strict, closers).read()):
        return ReadOutcome.CALL
    broken = state.broken_off and state.has_call_key and not state.has_other_key
    return ReadOutcome.BROKEN if broken else ReadOutcome.SPEECH


class _ObjectReader:
    """Reads one object; `state` is what is known of it so far."""

    def __init__(
        self, context: ParseContext, state: CallObject, strict: bool, closers: tuple[str, ...]
    ) -> None:
        self._context = context
        self._cursor = context.cursor
        self._calls = context.calls
        self._state = state
        self._strict = strict
        self._closers = closers

    def read(self) -> Steps[bool]:
        state = self._state
        made = yield from self._read_fields()
        if state.call is not None:
            # Unless it has ended: what has begun must end, however it was broken.
            state.call.cut_off()
        return made or state.made  # What was spoken or called already is not text any more.

    def _read_fields(self) -> Steps[bool]:
        cursor, state = self._cursor, self._state
        state.raw.append(cursor.advance_by(1))
        if state.marked and (yield from cursor.skip_space()) == "{":
            cursor.advance_by(1)  # `{{...}}`, from a template that was taken literally.
        while True:
            char = yield from cursor.skip_space()
            if char == "}":
                state.raw.append(cursor.advance_by(1))
                break
            if char == ",":
                state.raw.append(cursor.advance_by(1))
                continue
            if not char and state.name is not None and not self._may_be_tool():
                return False  # Data, of which only the last bracket is missing.
            if char != '"':
                if state.arguments is not None and state.name is not None:
                    break  # Only its own bracket is missing.
                return (yield from self._recover())
            text, whole = yield from self._read_value()
            if not whole or (yield from cursor.skip_space()) != ":":
                return (yield from self._recover())
            state.raw.append(cursor.advance_by(1))
            if not (yield from self._read_field(_decoded(text).lower())):
                if state.recoverable:
                    return (yield from self._recover())
                return False
        return self._end()

    def _recover(self) -> Steps[bool]:
        self._state.broken_off = True
        return (yield from recover(self._context, self._state, self._closers))

    def _read_value(self) -> Steps[tuple[str, bool]]:
        text, whole = yield from read_json(self._cursor)
        self._state.raw.append(text)
        return text, whole

    def _break_off(self) -> bool:
        """Note that a value never ended."""
        self._state.broken_off, self._state.recoverable = True, self._state.committed
        return False

    def _end(self) -> bool:
        """Make the call, now that the object is complete. False: it is none."""
        state = self._state
        if state.call is None and not state.made:
            if state.held is not None and state.final:
                scrubber = MarkerScrubber(self._context.events)
                scrubber.say(state.held)
                scrubber.end()
                return True
            if not state.committed:
                return False
            if state.arguments is not None or state.name is not None:
                state.call = self._calls.open(state.name or "")
        if state.call is not None:
            if state.arguments is None:
                end_with_parts(state.call, None)
            else:
                state.call.end_json(state.arguments)
            return True
        if state.made:
            return True
        if state.marked:
            try:
                return end_from_value(self._calls, load_json("".join(state.raw)))
            except ValueError:
                return False
        if not state.final:
            self._calls.broken("", "The call names no tool.")
        return True

    # -- fields: each returns False where the object is no call, or broken --------------------

    def _read_field(self, key: str) -> Steps[bool]:
        state = self._state
        state.has_call_key = state.has_call_key or key in _CALL_KEYS
        # A key with half a marker in it may have been any.
        known = key in _KNOWN_KEYS or "<" in key or "[" in key
        state.has_other_key = state.has_other_key or not known
        char = yield from self._cursor.skip_space()
        if char == "{" and key in WRAPPING_KEYS and state.name is None:
            made = yield from self._read_nested()
            state.committed = state.committed or made
            return made
        if key in LIST_KEYS and (char == "[" or state.committed):
            return (yield from self._read_list(char))
        if char == '"' and text_protocol.is_spoken(state, key):
            yield from text_protocol.speak(self._context, state)
            return True
        if key in NAME_KEYS and char == '"' and state.name is None:
            return (yield from self._read_name())
        if key in ARGUMENT_KEYS and state.arguments is None and char in ("{", '"', "n", "["):
            return (yield from self._read_arguments(char))
        if char == "{" and state.name is None and self._is_tool_key(key):
            state.name, state.committed = key, True
            return (yield from self._read_arguments(char))
        return (yield from self._read_other(key, char))

    def _read_name(self) -> Steps[bool]:
        text, whole = yield from self._read_value()
        if not whole:
            return self._break_off()
        if self._set_name(_decoded(text)):
            return True
        self._state.broken_off = (yield from self._cursor.skip_space()) not in (",", "}", "")
        return False

    def _read_other(self, key: str, char: str) -> Steps[bool]:
        """Read the value of a key that names neither a tool nor its arguments."""
        state = self._state
        text, whole = yield from self._read_value()
        if not whole:
            return self._break_off()
        if key == "description" and state.call is None and not state.marked:
            return False  # A tool is being described.
        if key == "type":
            kind = _decoded(text).lower()
            state.final = kind in text_protocol.FINAL_TYPES
            is_protocol = state.final or kind in text_protocol.CALL_TYPES
            state.committed = state.committed or is_protocol
            return state.committed or kind == "function"
        if key in ("text", "content") and char == '"' and state.held is None:
            state.held = _decoded(text)
        elif key not in _ID_KEYS and not state.committed and state.name is None:
            return False
        return state.committed or sum(map(len, state.raw)) <= _MAX_HELD_CHARS

    def _read_arguments(self, char: str) -> Steps[bool]:
        state = self._state
        if not state.committed and state.name is not None:
            known = self._calls.tools.named(state.name) is not None
            if not known and (self._strict or char != "{"):
                return False
            state.committed = True
        if state.committed:
            self._open()
        text, whole = yield from self._read_value()
        if not whole:
            return self._break_off()
        state.arguments = text
        return True

    def _read_list(self, char: str) -> Steps[bool]:
        cursor, state = self._cursor, self._state
        if char != "[":
            yield from self._read_value()
            return True
        cursor.advance_by(1)
        while True:
            char = yield from cursor.skip_space()
            if char == "{":
                made = yield from self._read_nested()
                if not made and not state.committed:
                    return False
                state.committed = True
            elif char == ",":
                cursor.advance_by(1)
            elif char == "]":
                cursor.advance_by(1)
                state.made = state.made or not state.marked
                state.committed = True
                return True
            else:
                return state.committed

    def _read_nested(self) -> Steps[bool]:
        """Read an object inside this one, which may be the call itself."""
        state = self._state
        inner = CallObject(state.committed, committed=state.committed)
        made = yield from _ObjectReader(self._context, inner, self._strict, self._closers).read()
        state.broken_off = state.broken_off or inner.broken_off
        state.has_other_key = state.has_other_key or inner.has_other_key
        state.made = state.made or made
        return made

    # -- the name -----------------------------------------------------------------------------

    def _set_name(self, name: str) -> bool:
        """Note the name that was given. False: the object is no call."""
        state = self._state
        state.name = name
        if state.committed:
            self._open()
            return True
        possible = self._calls.tools.named(name) is not None or not self._strict
        if state.arguments is not None and possible:
            state.committed = True
            self._open()
        return possible

    def _open(self) -> None:
        state = self._state
        if state.call is None and state.name is not None and state.arguments is None:
            state.call = self._calls.open(state.name)

    def _is_tool_key(self, key: str) -> bool:
        """Return whether `key` may be the tool's name, as in `{"set_timer": {...}}`."""
        state = self._state
        first = len(state.raw) <= 3
        if state.marked:
            return first and key not in ARGUMENT_KEYS
        return first and not state.committed and key in self._calls.tools.by_name

    def _may_be_tool(self) -> bool:
        """Return whether the name that was given may be a tool's."""
        state, tools = self._state, self._calls.tools
        return (
            state.committed or tools.accepts_any_name or tools.named(state.name or "") is not None
        )


def _decoded(text: str) -> str:
    try:
        value: Any = load_json(text)
    except ValueError:
        return text.strip('"')
    return value if isinstance(value, str) else ""
