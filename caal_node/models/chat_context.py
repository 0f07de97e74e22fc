"""LiveKit's types and this project's own: conversations, function tools, calls and errors.

A `CaalError` stays on as the cause of LiveKit's error, so that LiveKit's retries and error events
work, and `spoken_key` finds it again when something has to be said.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Iterable
from copy import copy
from http import HTTPStatus
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Final, cast

from livekit.agents import APIConnectionError, APIError, APIStatusError, APITimeoutError, llm
from livekit.agents.utils import shortuuid

from caal_node.context.schemas import compact_schema
from caal_node.core.errors import CaalError, ModelReplyError, ModelTimeout, ModelUnreachable
from caal_node.core.items import (
    AssistantItem,
    CallItem,
    Item,
    ResultItem,
    SystemItem,
    ToolsItem,
    UserItem,
    WindowItem,
)
from caal_node.core.tool_spec import ToolSchema, without_examples
from caal_node.language.disfluency import as_meant, is_taken_back
from caal_node.models.backends.tool_calls import arguments_text
from caal_node.reply_parser.escaping import escaped_value, unescape_markers

SAID_CHARS_MAX: Final = 32_768
"""Characters of a person's words in one turn: half an hour of speech. Whoever is in a room may also
type, and paste."""
_NUMBER: Final = re.compile(r"/fnc_(\d+)$")
"""How LiveKit ends the item id of a reply's calls."""
_TYPE_OF: Final = attrgetter("type")
_schemas: Final[weakref.WeakKeyDictionary[llm.Tool, ToolSchema]] = weakref.WeakKeyDictionary()
"""LiveKit builds a pydantic model for each method's schema: 0.4 ms a tool, every turn, for the
same answer. A tool never changes; a reload makes new ones."""


def to_items(chat_ctx: llm.ChatContext) -> tuple[Item, ...]:
    """The conversation, oldest first. Images, audio and hand-over marks are left out."""
    return ItemsOfContext().read(chat_ctx)


class ItemsOfContext:
    """Converts the contexts of one conversation, as `to_items` does.

    What is as it was in the last one is the same object again: that is quicker to make, and to
    compare. LiveKit's items can be edited, so each is compared with what was read of it.
    """

    def __init__(self) -> None:
        self._read: dict[str, tuple[object, object, Item]] = {}

    def read(self, chat_ctx: llm.ChatContext) -> tuple[Item, ...]:
        items: list[Item] = []
        known, self._read = self._read, {}
        for item in in_the_models_order(chat_ctx.items):
            # A day's conversation has thousands, of which all but the last few are as they were.
            # LiveKit's items are pydantic's, for whose classes `isinstance` takes longest here.
            if item.type == "message":
                kind, shown = (item.role, item.transcript_confidence), item.content
            elif item.type == "function_call":
                kind, shown = item.name, (item.call_id, item.arguments)
            elif item.type == "function_call_output":
                kind, shown = item.name, (item.call_id, item.output, item.is_error)
            else:
                continue
            read = known.get(item.id)
            if read is None or read[1] != shown or read[0] != kind:
                read = kind, copy(shown), _item(item)
            self._read[item.id] = read
            items.append(read[2])
        return tuple(items)


def _item(item: llm.ChatMessage | llm.FunctionCall | llm.FunctionCallOutput) -> Item:
    if isinstance(item, llm.FunctionCall):
        return CallItem(item.call_id, item.name, item.arguments, item.id)
    if isinstance(item, llm.FunctionCallOutput):
        return ResultItem(item.call_id, item.name, item.output, item.is_error, item.id)
    text = item.text_content or ""
    if item.role in ("system", "developer"):
        return SystemItem(text, item.id)
    if item.role == "user":
        if item.transcript_confidence is None:  # typed, and looked over by whoever typed it
            return UserItem(text[:SAID_CHARS_MAX], item.id)
        return UserItem(as_meant(text)[:SAID_CHARS_MAX], item.id, is_taken_back(text))
    return AssistantItem(text, item.id)


def to_chat_ctx(items: Iterable[WindowItem]) -> llm.ChatContext:
    """The same conversation for any LiveKit `llm.LLM`, which has the schemas of told tools."""
    said = (item for item in items if not isinstance(item, ToolsItem))
    return llm.ChatContext([_chat_item(item) for item in said])


def _chat_item(item: Item) -> llm.ChatItem:
    given: dict[str, Any] = {"id": item.id} if item.id else {}
    if isinstance(item, CallItem):
        return llm.FunctionCall(
            call_id=item.call_id, name=item.name, arguments=arguments_text(item), **given
        )
    if isinstance(item, ResultItem):
        return llm.FunctionCallOutput(
            call_id=item.call_id,
            name=item.name,
            output=item.output,
            is_error=item.is_error,
            **given,
        )
    role: Any = {SystemItem: "system", UserItem: "user", AssistantItem: "assistant"}[type(item)]
    return llm.ChatMessage(role=role, content=[item.text], **given)


def to_schemas(tools: Iterable[llm.Tool]) -> tuple[ToolSchema, ...]:
    """What the model reads of `tools`, in their order. Tools that run at a provider have none."""
    return tuple(
        _schema(tool) for tool in tools if isinstance(tool, (llm.FunctionTool, llm.RawFunctionTool))
    )


def _schema(tool: llm.FunctionTool[..., Any] | llm.RawFunctionTool[..., Any]) -> ToolSchema:
    if (known := _schemas.get(tool)) is None:
        raw = llm.ToolContext([tool]).parse_function_tools("openai", strict=False)[0]
        function = dict(raw["function"])
        function["description"] = without_examples(function.get("description") or "")
        known = {"type": "function", "function": escaped_value(compact_schema(function))}
        _schemas[tool] = known
    return known


def in_the_models_order(items: Iterable[llm.ChatItem]) -> list[llm.ChatItem]:
    """The same items, with calls and results in the order in which the model wrote the calls.

    Only calls that stand side by side, and results that do, change places. LiveKit notes them as
    the calls end, which differs from run to run, and in the turns after that by time of making. A
    model that asked for two things is answered in its own order here, and the prompt of the next
    turn begins as this one's did.
    """
    items, ordered = list(items), list[llm.ChatItem]()
    kinds = list(map(_TYPE_OF, items))
    neighbours = list(pairwise(kinds))
    if not any((kind, kind) in neighbours for kind in ("function_call", "function_call_output")):
        return items
    position: dict[str, int] = {}
    for _, run in groupby(items, key=_TYPE_OF):
        found = list(run)
        if isinstance(found[0], llm.FunctionCall):
            calls = cast("list[llm.FunctionCall]", found)
            if len(calls) > 1:
                calls.sort(key=_written_at)
            for call in calls:
                position.setdefault(call.call_id, len(position))
        elif isinstance(found[0], llm.FunctionCallOutput) and len(found) > 1:
            results = cast("list[llm.FunctionCallOutput]", found)
            results.sort(key=lambda result: position.get(result.call_id, len(position)))
        ordered += found
    return ordered


def _written_at(call: llm.FunctionCall) -> tuple[float, int]:
    number = _NUMBER.search(call.id)
    return call.created_at, int(number[1]) if number else 0


def call_delta(name: str, arguments: str) -> llm.ChoiceDelta:
    """Return a call, with `arguments` as JSON text, as a piece of a reply.

    What the prompt showed broken up goes to the tool as it was.
    """
    whole = unescape_markers(arguments)
    call = llm.FunctionToolCall(name=name, arguments=whole, call_id=shortuuid("call_"))
    return llm.ChoiceDelta(role="assistant", tool_calls=[call])


def as_api_error(error: CaalError, *, retry_timeout: bool = False) -> APIError:
    """Return LiveKit's error for `error`, which says whether to ask once more.

    After a time-out that is only done with `retry_timeout`: a model that took two minutes will not
    be quicker the second time round.
    """
    if isinstance(error, ModelTimeout):
        return APITimeoutError(str(error), retryable=retry_timeout)
    if isinstance(error, ModelUnreachable):
        return APIConnectionError(str(error), retryable=True)
    if isinstance(error, ModelReplyError) and error.status is not None:
        # Busy servers are asked again, as by LiveKit's plugins; 500 was asked in every way.
        again = error.status != HTTPStatus.INTERNAL_SERVER_ERROR
        return APIStatusError(str(error), status_code=error.status, body=None, retryable=again)
    # The retry policy has asked once more and by every other strategy by then.
    return APIError(str(error), body=None, retryable=False)


def spoken_key(error: BaseException | None) -> str:
    """Return the key of what to say about `error`, by the first CaalError among its causes."""
    return (known_failure(error) or CaalError).spoken


def known_failure(error: BaseException | None) -> CaalError | None:
    """Return the first CaalError among `error` and its causes."""
    while error is not None and not isinstance(error, CaalError):
        error = error.__cause__
    return error


# Keeps a conversation in order when the machine's clock is set back.
#
# LiveKit orders a conversation by the wall clock's time of each item. After a step back whatever is
# said would be put before what had been said already, until the clock is there again.

STEP_S: Final = 0.5
"""A smaller step is a clock that is being slewed, and is less than two turns are apart."""
_MARGIN_S: Final = 0.001
"""The two clocks are not read at once. So much further back than need be does no harm."""


class ClockSteps:
    """Follows the wall clock by one that is never set."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall: Final = wall
        self._steady: Final = steady
        self._offset = wall() - steady()
        self._seen: set[str] = set()

    def follow(self, *contexts: llm.ChatContext) -> None:
        """Move back, with the clock, what was said before it was set back; once for each item.

        Call it whenever a reply is asked for. What it has seen then, or what lies in the future,
        was said before.
        """
        now = self._wall()
        offset = now - self._steady()
        step, self._offset = offset - self._offset, offset
        if step < -STEP_S:
            items = {id(item): item for context in contexts for item in context.items}
            for item in items.values():
                if item.id in self._seen or item.created_at > now:
                    item.created_at += step - _MARGIN_S
            for context in contexts:
                if not context.readonly:
                    context.items.sort(key=lambda item: item.created_at)
        self._seen = {item.id for context in contexts for item in context.items}
