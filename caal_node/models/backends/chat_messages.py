"""A conversation as chat messages: the layout that Ollama's and OpenAI's APIs share.

Adjacent calls are one assistant message, together with the words spoken right before them. Each
result is a `tool` message of its own. The two APIs differ in how a call and a result are written,
which the callers say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem

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
