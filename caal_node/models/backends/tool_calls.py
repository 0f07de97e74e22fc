"""Tool calls in a server's reply: those that arrive in pieces, and those that it runs itself.

Servers differ in everything: all calls at `index: 0`, no index, no id, the id in the first piece
or a fresh one in each, the name first and its arguments piece by piece (Granite), the name again
in each piece, arguments as an object. `CallJoiner` decides what tells one call from the next.

Some servers have tools of their own: they announce a call with `task_status: "working"`, run it,
send its `tool_results` in the same stream, and write on. Such a call is told like any other, and
never run again. Servers leave ids out, so `ServerRuns` pairs calls and results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias, cast

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import GeneratedToken, NativeCall, ServerCall, ServerResult
from caal_node.models.reply_limits import ARGUMENTS_CHARS_MAX, CALLS_MAX, NAME_CHARS_MAX

# What Ollama's and OpenAI's APIs share: chat messages, and the fields of a reply.
#
# Adjacent calls are one assistant message, together with the words spoken right before them. Each
# result is a `tool` message of its own. The two APIs differ in how a call and a result are written,
# which the callers say. What several servers send in several shapes has a pydantic type here, so
# that no shape costs a reply.

Message: TypeAlias = dict[str, Any]


def to_messages(
    items: Sequence[Item],
    write_call: Callable[[CallItem, int], Message],
    write_result: Callable[[ResultItem], Message],
) -> list[Message]:
    """Return `items` as messages. `write_call` also gets the call's place in its message."""
    messages: list[Message] = []
    for item in items:
        match item:
            case SystemItem():
                messages.append({"role": "system", "content": item.text})
            case UserItem():
                messages.append({"role": "user", "content": item.text})
            case AssistantItem():
                messages.append({"role": "assistant", "content": item.text})
            case ResultItem():
                messages.append(write_result(item))
            case CallItem():
                if not messages or messages[-1]["role"] != "assistant":
                    # It is empty, not null: chat templates print a null as "None".
                    messages.append({"role": "assistant", "content": ""})
                calls: list[Message] = messages[-1].setdefault("tool_calls", [])
                calls.append(write_call(item, len(calls)))
    return messages


def arguments_object(call: CallItem) -> dict[str, Any]:
    """Return the call's arguments, or an empty object if they are no JSON object.

    Models do write broken arguments, and both servers answer a history that holds one with an
    error, in every turn that follows. The call's result says what was wrong with it.
    """
    return _object(call.arguments) or {}


def arguments_text(call: CallItem) -> str:
    """Return the call's arguments as they were written, or `{}` if they are no JSON object."""
    return call.arguments if _object(call.arguments) is not None else "{}"


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: object = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _refuse(constant: str) -> None:
    # Python reads NaN and Infinity, which no other side accepts.
    raise ValueError(constant)


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


OR_NONE: Final = WrapValidator(_or_none)
"""For what the reply can do without. If it cannot be read, it is as if it had not been sent."""
CALLS_READ: Final = 256
"""Calls, or results, of one line that are read. What is made of a thousand of them takes 20 ms."""


def first_of(most: int) -> BeforeValidator:
    """For a list of which no more than the first `most` are read, whatever it holds."""

    def cut(value: Any) -> Any:
        return cast("list[Any]", value)[:most] if isinstance(value, list) else value

    return BeforeValidator(cut)


Count: TypeAlias = Annotated[int | None, OR_NONE]
"""A figure of a server's. Some servers write null until they know it."""
NULL_IS_EMPTY_LIST: Final = BeforeValidator(lambda value: [] if value is None else value)
NULL_IS_EMPTY_OBJECT: Final = BeforeValidator(lambda value: {} if value is None else value)


def _joined(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    parts = cast("list[Any]", value)
    return "".join(map(_text_of, parts))


def _text_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    members = cast("dict[str, Any]", part)
    text = members.get("text")
    return text if isinstance(text, str) and members.get("type", "text") == "text" else ""


JoinedText: TypeAlias = Annotated[str | None, BeforeValidator(_joined)]
"""A text, or a list of parts that hold it. In Mistral's API thinking is among the parts."""
Arguments: TypeAlias = str | dict[str, Any] | list[Any] | None
"""A call's arguments: JSON as text, or its value. Whether a tool takes them is decided later."""


class TokenCandidate(BaseModel):
    token: str
    logprob: float


class TokenOdds(TokenCandidate):
    """A token with its candidates, as Ollama and OpenAI's API both write them."""

    top_logprobs: list[TokenCandidate] | None = None

    def generated(self) -> GeneratedToken:
        return GeneratedToken(
            self.token, tuple((c.token, c.logprob) for c in self.top_logprobs or ())
        )


WORKING: Final = "working"
"""The status of a stream that goes on, whatever else says that it is done."""
_JOINED_MAX: Final = 4 * CALLS_MAX
"""Calls of one reply that are put together: more than may be made, as servers send some again."""


class FunctionDelta(BaseModel):
    index: int | None = None  # Ollama has it here.
    name: str | None = None
    arguments: Arguments = None


class CallDelta(BaseModel):
    """One element of `delta.tool_calls`. Servers leave out what has not changed."""

    index: int | None = None
    id: str | None = None
    function: Annotated[FunctionDelta, NULL_IS_EMPTY_OBJECT] = Field(default_factory=FunctionDelta)

    @property
    def place(self) -> int | None:
        """Which of the reply's calls this is a piece of, where the server says."""
        return self.function.index if self.index is None else self.index


@dataclass(slots=True)
class _PartialCall:
    index: int | None
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    length: int = 0
    has_value: bool = False
    """Whether arguments came as a value. An empty one may stand for what is to come."""
    complete: bool = False
    """Whether they came as a value that holds something, to which nothing can be added."""
    taken: bool = False
    """Whether it was returned as a call."""

    def add(self, text: str) -> None:
        """Add a piece of the arguments. What is far too long already grows no further."""
        if self.length <= ARGUMENTS_CHARS_MAX:
            self.arguments.append(text)
            self.length += len(text)

    @property
    def begun(self) -> bool:
        """Whether any of the arguments have come."""
        return self.length > 0 or self.has_value

    def whole(self) -> bool:
        """Whether the arguments that have come are complete."""
        if self.has_value and not self.length:
            return True
        text = "".join(self.arguments)
        self.arguments = [text]  # It may be asked at every piece.
        if not text.rstrip().endswith("}"):
            return False
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return False
        return True


class CallJoiner:
    """Makes calls of the pieces of one reply, in the order in which they began.

    Pieces belong together by index, and by id where a server gives no index; where it gives
    neither, a piece with a name begins a call and one without continues the last. One index for
    several calls is seen by a second id or a second name, or by a name behind arguments that are
    complete. An id alone begins nothing: some servers give each piece a fresh one. Pieces of a
    call that never got a name are dropped.
    """

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._seen: set[tuple[str, str, str]] = set()

    @property
    def begun(self) -> bool:
        """Whether a call has begun, so that what is said from now on stands behind it."""
        return bool(self._calls)

    @property
    def whole(self) -> bool:
        """Whether the arguments of the last call are complete."""
        return self.begun and self._calls[-1].whole()

    @property
    def full(self) -> bool:
        """Whether so many calls have begun that the rest need not be waited for."""
        return len(self._calls) >= _JOINED_MAX

    def add(self, deltas: Iterable[CallDelta]) -> None:
        """Take the next pieces."""
        for delta in deltas:
            name = (delta.function.name or "")[:NAME_CHARS_MAX]
            arguments = delta.function.arguments
            call = _continued(self._calls, delta, name)
            if call is None:
                if not name or self.full:
                    continue
                call = _PartialCall(delta.place, delta.id or "")
                self._calls.append(call)
            call.id = call.id or delta.id or ""
            if name != call.name and not call.begun:
                # A name may come in pieces. The whole name again is no piece.
                call.name = (call.name + name)[:NAME_CHARS_MAX]
            if isinstance(arguments, str):
                call.add(arguments)
            elif arguments is not None:
                call.has_value, call.complete = True, bool(arguments)
                if arguments:
                    call.add(json.dumps(arguments, ensure_ascii=False))

    def calls(self, *, ended: bool = True, cut: bool = False) -> tuple[NativeCall, ...]:
        """Return the calls that were not returned yet, none twice. Empty arguments become `{}`.

        Before the reply has `ended`, these are the ones whose arguments came as a value. If it was
        `cut`, the arguments of its last call may not have begun: they stay empty.
        """
        found: list[NativeCall] = []
        for call in self._calls:
            if call.taken or not (ended or call.complete):
                continue
            call.taken = True
            begins = cut and call is self._calls[-1] and not call.begun
            arguments = "".join(call.arguments) or ("" if begins else "{}")
            # Some servers send a call again: with the same id, or none, and the same content.
            key = (call.id, call.name, canonical(arguments))
            if key not in self._seen:
                self._seen.add(key)
                found.append(NativeCall(call.id, call.name, arguments))
        return tuple(found)


def canonical(arguments: str) -> str:
    """Return a text that is equal for equal JSON, however it is written."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _continued(calls: list[_PartialCall], delta: CallDelta, name: str) -> _PartialCall | None:
    """Return the call that `delta` continues; None if it begins one or belongs to none."""
    place = delta.place
    near = [c for c in calls if place is None or c.index == place]
    if delta.id and (same := [c for c in near if c.id == delta.id]):
        # Even the id may be the same for all. A name behind complete arguments is another call's.
        return None if name and same[-1].whole() else same[-1]
    if not near:
        return None
    last = near[-1]
    if not name:
        return last
    another = place is None or bool(delta.id and last.id)
    if another or (last.begun and (name != last.name or last.whole())):
        return None
    # Arguments as a value are never a piece.
    return None if last.begun and isinstance(delta.function.arguments, (dict, list)) else last


class ToolResult(BaseModel):
    """One element of `tool_results`."""

    id: str = Field("", validation_alias=AliasChoices("tool_call_id", "id"))
    name: str = Field("", validation_alias=AliasChoices("tool_name", "name"))
    error: Any = None
    is_error: bool = False

    @property
    def failed(self) -> bool:
        return self.is_error or bool(self.error)


class ServerRuns:
    """Tells the calls of one reply that its server runs, and pairs them with their results."""

    def __init__(self) -> None:
        self._open: list[ServerCall] = []
        self._count = 0

    def ran(self, calls: Iterable[NativeCall]) -> Iterator[ServerCall | ServerResult]:
        """Yield calls of which it turns out that the server has run them already."""
        for call in calls:
            for begun in self.started(call.id, call.name, call.arguments):
                self._open.remove(begun)
                yield begun
                yield ServerResult(begun.id, failed=False)

    def started(self, call_id: str, name: str, arguments: Any) -> Iterator[ServerCall]:
        """Yield the call, unless it is announced again or past the cap."""
        if any(call.id == call_id for call in self._open if call_id) or self._count >= CALLS_MAX:
            return
        self._count += 1
        known = call_id or f"server_{self._count}"
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        text = text if len(text) <= ARGUMENTS_CHARS_MAX else "{}"
        self._open.append(ServerCall(known, name[:NAME_CHARS_MAX], text))
        yield self._open[-1]

    def ended(self, results: Iterable[ToolResult]) -> Iterator[ServerCall | ServerResult]:
        """Yield the end of each call; first its beginning, if the server never announced it."""
        for result in results:
            call = self._of(result)
            if call is None:
                yield from self.started(result.id, result.name, {})
                call = self._of(result)
            if call is not None:
                self._open.remove(call)
                yield ServerResult(call.id, result.failed)

    def _of(self, result: ToolResult) -> ServerCall | None:
        """Find the call by id; without one by name; without either the longest-running one."""
        for call in self._open:
            if result.id:
                if call.id == result.id:
                    return call
            elif result.name in ("", call.name):
                return call
        return None
