"""What Ollama's and OpenAI's APIs share: chat messages, and the fields of a reply.

Adjacent calls are one assistant message, together with the words spoken right before them. Each
result is a `tool` message of its own. The two APIs differ in how a call and a result are written,
which the callers say. What several servers send in several shapes has a pydantic type here, so that
no shape costs a reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, TypeAlias, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import GeneratedToken

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
