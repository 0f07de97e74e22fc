"""Calls of told tools, carried by the one tool that stands in every request.

Servers drop calls of tools that are not in the request, and to put a told tool there would have
the server read all again. So a model calls `use_tool` with a name and arguments. Here such a call
is the told tool's before anybody else sees it: its arguments are repaired and judged by that tool's
schema. Models write it in several ways; the told name itself, called directly, is understood too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, cast

from caal_node.context.token_estimate import TOOLS_TOKENS, PromptTools, tools_tokens
from caal_node.core.items import CallItem, Item, ResultItem, ToolsItem, WindowItem
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.backends.tool_calls import arguments_text
from caal_node.models.reply_limits import NAME_CHARS_MAX
from caal_node.models.strategies.prompt import CARRIER, told_natively
from caal_node.reply_parser import BrokenCall, Event, ToolCallEnd, ToolCallStart, UnknownCall
from caal_node.reply_parser.arguments import ARGUMENT_KEYS, load_json
from caal_node.reply_parser.events import CallBuilder, OpenCall
from caal_node.reply_parser.tool_index import ToolIndex, properties_of

CARRIER_SCHEMA: Final[ToolSchema] = {
    "type": "function",
    "function": {
        "name": CARRIER,
        "description": "Call a tool that stands in the conversation, by its name.",
        "parameters": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "the tool's name"},
                "arguments": {"type": "object", "description": "the tool's own arguments"},
            },
            "required": ["name", "arguments"],
        },
    },
}
CARRIER_TOKENS: Final = tools_tokens([CARRIER_SCHEMA]) - TOOLS_TOKENS
"""Estimated tokens of the carrier in a request."""
_NAME_KEYS: Final = ("name", "tool", "tool_name", "function", "function_name")
_NAME: Final = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,64})"')
_LAYERS_MAX: Final = 3
"""Calls of the carrier in one another that are opened. Models have written two."""
_HEADS_KEPT: Final = 16
_ITEMS_KEPT: Final = 256
"""Items whose form in a request is kept, so that it costs what its newest turn does."""

_carrier_index: Final = ToolIndex([CARRIER_SCHEMA])


@lru_cache(_HEADS_KEPT)
def with_carrier(head: PromptTools) -> tuple[ToolSchema, ...]:
    """Return the schemas of a request with `head`: the same object each time."""
    return (*head.schemas, CARRIER_SCHEMA)


def carried(items: Iterable[WindowItem], head: PromptTools | None) -> tuple[Item, ...]:
    """Return `items` as a server reads and has generated them.

    Calls of tools outside `head`, and their results, are the carrier's; without a `head` every
    call is its tool's own.
    """
    names = None if head is None else frozenset(head.names)
    return tuple(_carried(item, names) for item in items)


@lru_cache(_ITEMS_KEPT)
def _carried(item: WindowItem, names: frozenset[str] | None) -> Item:
    if isinstance(item, ToolsItem):
        return told_natively(item)
    if names is None or not isinstance(item, CallItem | ResultItem) or item.name in names:
        return item
    if isinstance(item, ResultItem):
        return replace(item, name=CARRIER)
    name = json.dumps(item.name, ensure_ascii=False)
    arguments = f'{{"name":{name},"arguments":{arguments_text(item)}}}'
    return replace(item, name=CARRIER, arguments=arguments)


def is_carrier(name: str) -> bool:
    """Say whether a model means the carrier by `name`."""
    return _carrier_index.named(name) is not None


class CarriedCalls:
    """Makes calls of one reply's carrier into calls of the tools that they carry.

    `tools` are all that can be called, without the carrier.
    """

    def __init__(self, tools: Sequence[ToolSchema]) -> None:
        self._index: Final = ToolIndex.from_schemas(tools)
        self._events: list[Event] = []
        self._calls: Final = CallBuilder(self._index, self._events.append, "carried_")

    def read(self, arguments: str) -> list[Event]:
        """Return the events of a structured call of the carrier; `arguments` is what came of it."""
        read: list[Event] = []
        OpenCall(CallBuilder(_carrier_index, read.append, "carrier_"), CARRIER).end_json(arguments)
        found = _NAME.search(arguments)
        return self.unwrapped(read, found[1] if found is not None else "")

    def unwrapped(self, events: Sequence[Event], name: str = "") -> list[Event]:
        """Return `events` in which nothing is the carrier's any more, without `ToolCallStart`.

        A call that cannot be read is told of by `name`, if that is a tool's.
        """
        found: list[Event] = []
        for event in events:
            match event:
                case ToolCallEnd(name=called) if called == CARRIER:
                    found += self._inside(event.arguments)
                case BrokenCall(name=called) if called == CARRIER:
                    meant = self._index.named(name) if name else None
                    found.append(replace(event, name=meant.name if meant is not None else ""))
                case UnknownCall() if CARRIER in event.nearest:
                    valid = tuple(each for each in event.nearest if each != CARRIER)
                    found.append(replace(event, nearest=valid))
                case _:
                    found.append(event)
        return [event for event in found if not isinstance(event, ToolCallStart)]

    def _inside(self, given: dict[str, Any]) -> list[Event]:
        name, arguments = _opened(given, self._index)
        if not name.strip() or is_carrier(name):
            return [BrokenCall("", "", "The call does not name a tool.")]
        OpenCall(self._calls, name[: 2 * NAME_CHARS_MAX]).end(arguments)
        events = list(self._events)
        self._events.clear()
        return events


def _opened(given: Mapping[str, Any], index: ToolIndex) -> tuple[str, Any]:
    """Return name and arguments of the call that the carrier's arguments hold; "" without a name.

    The arguments are an object, JSON as text, or stand beside the name.
    """
    for _ in range(_LAYERS_MAX):
        key = _names(given)
        if key is None:
            named = [name for name in given if index.named(name) is not None]
            if len(given) == len(named) == 1:
                return named[0], given[named[0]]
            calls = [each for each in map(_object_of, given.values()) if each and _names(each)]
            if len(calls) != 1:
                return "", {}
            given = calls[0]
            continue
        name, rest = cast("str", given[key]), {k: v for k, v in given.items() if k != key}
        tool = index.find(name)
        own = properties_of(tool)
        wrapping = next((k for k in ARGUMENT_KEYS if k in rest and _wraps(k, rest[k], own)), None)
        arguments: Any = rest
        if wrapping is not None:
            inner, beside = rest.pop(wrapping), rest
            arguments = {**found, **beside} if (found := _object_of(inner)) is not None else inner
        if tool is not None or not is_carrier(name):
            return name, arguments
        inside = _object_of(arguments)
        if inside is None:
            return name, arguments
        given = inside
    return "", {}


def _names(given: Mapping[str, Any]) -> str | None:
    """Return the key under which a call names its tool."""
    return next((key for key in _NAME_KEYS if isinstance(given.get(key), str)), None)


def _wraps(key: str, value: Any, own: Mapping[str, Any]) -> bool:
    """Say whether a call's arguments stand under `key`, and not a parameter that is called so."""
    inside = _object_of(value)
    if key in own:
        return key == ARGUMENT_KEYS[0] and inside is not None and own.keys() >= inside.keys()
    return key == ARGUMENT_KEYS[0] or inside is not None


def _object_of(value: Any) -> dict[str, Any] | None:
    """Return `value` if it is an object, or JSON text of one."""
    if isinstance(value, str):
        try:
            value = load_json(value)
        except ValueError:
            return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
