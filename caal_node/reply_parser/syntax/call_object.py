"""A call's JSON object, read field by field, so that it can be spoken if it is no call.

Behind a marker an object is a call whatever it looks like. Without one it must prove it: by a name
that is a tool's together with arguments, or by a word of the text protocol. Until then nothing is
emitted, so that JSON which somebody asked to hear can still be spoken. Beside a call a tool's own
name is proof enough: `{"name": "stop"}`, or with its arguments next to it,
`{"name": "set_timer", "minutes": 5}`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from caal_node.reply_parser.arguments import (
    ARGUMENT_KEYS,
    BadArguments,
    is_cut,
    is_too_deep,
    lacks_one_quote,
    load_json,
    repair_object,
)
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.events import CUT_OFF, CallBuilder, OpenCall
from caal_node.reply_parser.literal_parser import LiteralParser, UnreadableLiteral
from caal_node.reply_parser.parse_context import MarkerScrubber, ParseContext, ReadOutcome
from caal_node.reply_parser.syntax import text_protocol
from caal_node.reply_parser.syntax.values import read_json
from caal_node.reply_parser.tool_index import properties_of

NAME_KEYS = ("name", "function", "tool_name", "tool", "function_name", "action", "recipient_name")
WRAPPING_KEYS = ("function", "tool_call", "function_call", "call")
LIST_KEYS = ("tool_calls", "calls", "function_calls", "tools")
_OTHER_KEYS = frozenset({"id", "type", "index", "tool_call_id", "call_id", "thought", "reason"})
"""Keys that may stand beside a call and carry nothing for it."""
_BEGINNING = re.compile(r'\{\s*"(?:name|function|tool_name|tool)"\s*:')
_MAX_RESTARTS = 4
_ID_KEYS = frozenset({"id", "index", "tool_call_id", "call_id"})
_CALL_KEYS = frozenset((*NAME_KEYS, *WRAPPING_KEYS, *LIST_KEYS, *ARGUMENT_KEYS))
_KNOWN_KEYS = _CALL_KEYS | _ID_KEYS | {"type"}
_NAMED: Final = (
    rf'\s*+(?:,\s*+)?\{{\s*+(?:\{{\s*+)?"(?:{"|".join(NAME_KEYS)})"\s*:\s*"([^"\\]+)"\s*'
)
_NEIGHBOUR: Final = re.compile(
    rf'(?:{_NAMED}\}}\}}?){{0,3}}{_NAMED},\s*"(?:{"|".join(ARGUMENT_KEYS)})"\s*:\s*\{{'
)
"""A call, as it stands behind another; some without arguments may stand between."""
_NEIGHBOUR_CHARS: Final = 256
"""A name has 64 characters at most, but 20 as a rule, and the keys around it have 30."""
_MAX_HELD_CHARS = 400
"""An object that has not proved to be a call after this much of other values is none."""


def read_call_object(
    context: ParseContext, *, marked: bool, closers: tuple[str, ...] = ()
) -> Steps[bool]:
    """Read the object that begins here. False: it is no call, and all of it was read.

    marked: a marker or an enclosing call says that this is one.
    closers: markers that end the call if its JSON never does.
    """
    return (yield from _ObjectReader(context, marked, False, closers).read())


def read_bare_object(
    context: ParseContext, *, strict: bool, closers: tuple[str, ...] = ()
) -> Steps[ReadOutcome]:
    """Read the object that begins here, where nothing says yet that it is a call.

    strict: it stands in the middle of a line, where only a tool's own name counts.
    """
    reader = _ObjectReader(context, False, strict, closers)
    if (yield from reader.read()):
        return ReadOutcome.CALL
    broken = reader.broken_off and reader.has_call_key and not reader.has_other_key
    return ReadOutcome.BROKEN if broken else ReadOutcome.SPEECH


class _ObjectReader:
    """Reads one object, and keeps what is known of it so far."""

    def __init__(
        self, context: ParseContext, marked: bool, strict: bool, closers: tuple[str, ...]
    ) -> None:
        self._context = context
        self._cursor = context.cursor
        self._calls = context.calls
        self._strict = strict
        self._closers = closers
        self.marked = marked
        """Whether a marker or an enclosing call says that this is a call."""
        self.committed = marked
        """Whether it is certain that this is a call."""
        self.raw: list[str] = []
        """Its text, in pieces."""
        self.name: str | None = None
        self.call: OpenCall | None = None
        self.arguments: str | None = None
        """JSON of the arguments."""
        self.final = False
        """Whether its `type` says that it is an answer for the person."""
        self.invented = False
        """Whether its `type` says that it is a tool's result."""
        self.held: str | None = None
        """Text that came before a `type` said whether it is speech."""
        self.made = False
        """Whether something of it was called or spoken already."""
        self.has_call_key = False
        """Whether a key has come that says what is called, or with what."""
        self.bad_arguments = False
        """Whether what the arguments' key holds is no object."""
        self.has_other_key = False
        """Whether a key has come that no call has."""
        self.broken_off = False
        """Whether its JSON broke off."""
        self.recoverable = False
        """Whether it broke off when it was certain that this is a call."""

    def read(self) -> Steps[bool]:
        made = yield from self._read_fields()
        if self.call is not None:
            # Unless it has ended: what has begun must end, however it was broken.
            self.call.cut_off()
        return made or self.made  # What was spoken or called already is not text any more.

    def _read_fields(self) -> Steps[bool]:
        cursor = self._cursor
        self.raw.append(cursor.advance_by(1))
        doubled = (yield from cursor.skip_space()) == "{"
        if doubled:
            cursor.advance_by(1)  # `{{...}}`, from a template that was taken literally.
        while True:
            char = yield from cursor.skip_space()
            if char == "}":
                self.raw.append(cursor.advance_by(1))
                break
            if char == ",":
                self.raw.append(cursor.advance_by(1))
                continue
            if not char and self.name is not None and not self._may_be_tool():
                return False  # Data, of which only the last bracket is missing.
            if char != '"':
                if self.arguments is not None and self.name is not None:
                    break  # Only its own bracket is missing.
                return (yield from self._recover())
            text, whole = yield from self._read_value()
            if not whole or (yield from cursor.skip_space()) != ":":
                return (yield from self._recover())
            self.raw.append(cursor.advance_by(1))
            if self.invented:
                yield from cursor.skip_space()
                _, whole = yield from self._read_value()
                if whole:
                    continue
                return True  # The reply ends inside of it.
            if not (yield from self._read_field(_decoded(text).lower())):
                if self.recoverable:
                    return (yield from self._recover())
                return False
        if doubled and (yield from cursor.skip_space()) == "}":
            cursor.advance_by(1)
        elif doubled:
            cursor.unread(cursor.skipped)
        return (yield from self._end())

    def _recover(self) -> Steps[bool]:
        """Make of broken JSON what can be trusted. False: it is no call."""
        self.broken_off = True
        if self.invented:
            return True
        if self.committed and not self.made:
            raw = "".join(self.raw)
            yield from _end_broken(self._context, raw, self.call, self.name or "", self._closers)
        return self.made or self.committed

    def _read_value(self) -> Steps[tuple[str, bool]]:
        text, whole = yield from read_json(self._cursor)
        self.raw.append(text)
        return text, whole

    def _break_off(self) -> bool:
        """Note that a value never ended."""
        self.broken_off, self.recoverable = True, self.committed
        return False

    def _end(self) -> Steps[bool]:
        """Make the call, now that the object is complete. False: it is none."""
        if self.invented:
            return True
        if self.call is None and not self.made:
            if self.held is not None and self.final:
                MarkerScrubber(self._context.events).say_all(self.held)
                return True
            if not self.committed:
                return (yield from self._end_beside_call())
            if self.arguments is not None or self.name is not None:
                self.call = self._calls.open(self.name or "")
        if self.call is not None:
            if self.arguments is None:
                given = self._arguments_beside_name() or None
                if given is None and self.bad_arguments:
                    self.call.fail("The arguments must be one JSON object.")
                _end_with_parts(self.call, given)
            else:
                self.call.end_json(self.arguments)
            return True
        if self.made:
            return True
        if self.marked:
            try:
                return end_from_value(self._calls, load_json("".join(self.raw)))
            except ValueError:
                return False
        if not self.final:
            self._calls.broken("", "The call names no tool.")
        return True

    def _end_beside_call(self) -> Steps[bool]:
        """Make the call of an object that has no arguments' key, if a call stands beside it."""
        tools = self._calls.tools
        exact = tools.accepts_any_name or (self.name or "") in tools.by_name
        given = self._arguments_beside_name() if exact and not self._strict else None
        if given is None:
            return False
        if not self._context.position.behind_call:
            cursor = self._cursor
            yield from cursor.has(_NEIGHBOUR_CHARS)
            end = cursor.at + _NEIGHBOUR_CHARS
            neighbour = _NEIGHBOUR.match(cursor.text, cursor.at, end)
            if neighbour is None:
                return False
            if not tools.accepts_any_name and tools.named(neighbour[2]) is None:
                return False
        self._calls.open(self.name or "").end(given)
        return True

    def _arguments_beside_name(self) -> dict[str, Any] | None:
        """Return the arguments that stand beside the name, if the known tool takes them and needs
        no others; else None."""
        tool = self._calls.tools.named(self.name or "")
        try:
            fields = cast("dict[str, Any]", load_json("".join(self.raw)))
        except ValueError:
            return None
        own, required = properties_of(tool), tool.required if tool is not None else ()
        around = {*NAME_KEYS, *_ID_KEYS, "type"}
        given = {k: v for k, v in fields.items() if k in own or k.lower() not in around}
        if own.keys() & NAME_KEYS or not set(required) <= given.keys() <= own.keys():
            return None
        return given

    # -- fields: each returns False where the object is no call, or broken --------------------

    def _read_field(self, key: str) -> Steps[bool]:
        self.has_call_key = self.has_call_key or key in _CALL_KEYS
        # A key with half a marker in it may have been any.
        known = key in _KNOWN_KEYS or "<" in key or "[" in key
        self.has_other_key = self.has_other_key or not known
        char = yield from self._cursor.skip_space()
        if char == "{" and key in WRAPPING_KEYS and self.name is None:
            made = yield from self._read_nested()
            self.committed = self.committed or made
            return made
        if key in LIST_KEYS and (char == "[" or self.committed):
            return (yield from self._read_list(char))
        if char == '"' and self._is_spoken(key):
            self.committed = self.made = True
            self.raw.clear()
            yield from text_protocol.speak_string(self._context)
            return True
        if key in NAME_KEYS and char == '"' and self.name is None:
            return (yield from self._read_name())
        if key in ARGUMENT_KEYS and self.arguments is None and char in ("{", '"', "n", "["):
            return (yield from self._read_arguments(char))
        if char == "{" and self.name is None and self._is_tool_key(key):
            self.name, self.committed = key, True
            return (yield from self._read_arguments(char))
        return (yield from self._read_other(key, char))

    def _read_name(self) -> Steps[bool]:
        text, whole = yield from self._read_value()
        if not whole:
            return self._break_off()
        if self._set_name(_decoded(text)):
            return True
        self.broken_off = (yield from self._cursor.skip_space()) not in (",", "}", "")
        return False

    def _read_other(self, key: str, char: str) -> Steps[bool]:
        """Read the value of a key that names neither a tool nor its arguments."""
        text, whole = yield from self._read_value()
        if not whole:
            return self._break_off()
        self.bad_arguments = self.bad_arguments or key in ARGUMENT_KEYS
        if key == "description" and self.call is None and not self.marked:
            return False  # A tool is being described.
        if key == "error" and _decoded(text) in text_protocol.RESULT_ERRORS and not self.committed:
            self.invented = True
            self._context.note_result()
            return True
        if key == "type":
            kind = _decoded(text).lower()
            self.final = kind in text_protocol.FINAL_TYPES
            if kind in text_protocol.RESULT_TYPES and self.call is None and not self.made:
                self.invented = True
                self._context.note_result()
                return True
            is_protocol = self.final or kind in text_protocol.CALL_TYPES
            self.committed = self.committed or is_protocol
            return self.committed or kind == "function"
        if key in ("text", "content") and char == '"' and self.held is None:
            self.held = _decoded(text)
        elif key not in _ID_KEYS and not self.committed and self.name is None:
            return False
        return self.committed or sum(map(len, self.raw)) <= _MAX_HELD_CHARS

    def _read_arguments(self, char: str) -> Steps[bool]:
        if not self.committed and self.name is not None:
            known = self._calls.tools.named(self.name) is not None
            if not known and (self._strict or char != "{"):
                return False
            self.committed = True
        if self.committed:
            self._open()
        text, whole = yield from self._read_value()
        if not whole:
            return self._break_off()
        self.arguments = text
        return True

    def _read_list(self, char: str) -> Steps[bool]:
        cursor = self._cursor
        if char != "[":
            yield from self._read_value()
            return True
        cursor.advance_by(1)
        while True:
            char = yield from cursor.skip_space()
            if char == "{":
                made = yield from self._read_nested()
                if not made and not self.committed:
                    return False
                self.committed = True
            elif char == ",":
                cursor.advance_by(1)
            elif char == "]":
                cursor.advance_by(1)
                self.made = self.made or not self.marked
                self.committed = True
                return True
            else:
                return self.committed

    def _read_nested(self) -> Steps[bool]:
        """Read an object inside this one, which may be the call itself."""
        inner = _ObjectReader(self._context, self.committed, self._strict, self._closers)
        made = yield from inner.read()
        self.broken_off = self.broken_off or inner.broken_off
        self.has_other_key = self.has_other_key or inner.has_other_key
        self.made = self.made or made
        return made

    def _is_spoken(self, key: str) -> bool:
        """Return whether the string under `key` is to be spoken."""
        if self.marked or self.name is not None:
            return False
        first = len(self.raw) <= 3
        return (self.final and key in text_protocol.SPOKEN_KEYS) or (
            key in text_protocol.SPOKEN_WITHOUT_TYPE and (self.committed or first)
        )

    # -- the name -----------------------------------------------------------------------------

    def _set_name(self, name: str) -> bool:
        """Note the name that was given. False: the object is no call."""
        self.name = name
        if self.committed:
            self._open()
            return True
        possible = self._calls.tools.named(name) is not None or not self._strict
        if self.arguments is not None and possible:
            self.committed = True
        return possible

    def _open(self) -> None:
        if self.call is None and self.name is not None and self.arguments is None:
            self.call = self._calls.open(self.name)

    def _is_tool_key(self, key: str) -> bool:
        """Return whether `key` may be the tool's name, as in `{"set_timer": {...}}`."""
        first = len(self.raw) <= 3
        if self.marked:
            return first and key not in ARGUMENT_KEYS
        return first and not self.committed and key in self._calls.tools.by_name

    def _may_be_tool(self) -> bool:
        """Return whether the name that was given may be a tool's."""
        tools = self._calls.tools
        return self.committed or tools.accepts_any_name or tools.named(self.name or "") is not None


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
        _end_with_parts(calls.open(parts[0]), parts[1])
        return True
    named = [key for key in fields if key not in _OTHER_KEYS]
    if len(named) == 1 and isinstance(fields[named[0]], Mapping):
        calls.open(named[0]).end(fields[named[0]])
        return True
    return False


def _end_with_parts(call: OpenCall, arguments: Any) -> None:
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


def _end_broken(
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
        MarkerScrubber(context.events).say_all(raw[min(found, default=len(raw)) :])
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
        value = parser.literal()
    except UnreadableLiteral:
        return None
    is_calls = not parser.cut and all(call_parts(entry) is not None for entry in value)
    return value if is_calls else None


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


def _decoded(text: str) -> str:
    try:
        value: Any = load_json(text)
    except ValueError:
        return text.strip('"')
    return value if isinstance(value, str) else ""
