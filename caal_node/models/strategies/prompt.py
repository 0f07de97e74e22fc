"""The prompt in which calls are text: rules, tools and examples in front, then the conversation.

The prefix depends on the tools and their examples alone, and every item of the conversation is
written without regard to what follows it. So one request's prompt is the beginning of the next
one's, and a server reads only what is new.
"""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from caal_node.context.one_line_json import MIN_CHARS, to_line
from caal_node.context.schemas import catalogue, told_catalogue
from caal_node.context.token_estimate import PromptTools, item_tokens
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
from caal_node.core.prompt_files import fill, read
from caal_node.models.question import Question
from caal_node.reply_parser.escaping import escape_markers, escaped_value
from mcp_bridge.discovery.tool_search import DISCOVER

# How calls, speech and results are written down in the text protocol.
#
# There is one class for each style. A style writes what the prompt shows; the reply parser reads
# replies of every style, whichever was asked for.

# What a model reads of the tools that a conversation tells it of: a turn of the user's.
#
# It is no late instruction, as templates move those to the prompt's front, and everything behind
# would be read again.

CARRIER: Final = "use_tool"
"""The one tool that carries calls of told tools, where a server drops calls of tools that are not
in the request. It never changes, and nobody but the model's server knows it."""
_CARRIED: Final = f"Call them with {CARRIER}."
_BY_NAME: Final = "They can be called as well."


def told_natively(told: ToolsItem) -> UserItem:
    """Return what a model reads of `told` whose calls of them are carried."""
    return UserItem(fill("told_tools.md", how=_CARRIED, catalogue=told_catalogue(told)), told.id)


def told_by_text(told: ToolsItem, style: ProtocolStyle) -> UserItem:
    """Return what a model reads of `told` that calls them by their names.

    Behind the tools stands what a person may say for them, each with its call.
    """
    lines = [told_catalogue(told)]
    for name, example in told.examples.items():
        said = escape_markers(example.utterance)
        lines.append(f'"{said}" -> {style.calls([(name, escaped_value(example.arguments))])}')
    return UserItem(fill("told_tools.md", how=_BY_NAME, catalogue="\n".join(lines)), told.id)


StyleName: TypeAlias = Literal["jsonl", "xml", "markdown-json"]
WrittenCall: TypeAlias = tuple[str, Any]
"""A call: its name and its arguments."""


class ProtocolStyle(ABC):
    """Writes the three things that a conversation with tools holds."""

    rules: str
    """The file of `prompts/` that explains the style to the model."""

    @abstractmethod
    def calls(self, calls: Sequence[WrittenCall]) -> str:
        """Write all calls of one reply."""

    def speech(self, text: str) -> str:
        """Write a reply that is spoken."""
        return text

    @abstractmethod
    def observation(self, name: str, kind: str, value: Any) -> str:
        """Write what the tool `name` gave. `kind` is `result` or `error`."""


class JsonlStyle(ProtocolStyle):
    """Writes one object a line. It is the only style whose reply a JSON schema can hold."""

    rules = "protocol.md"

    def calls(self, calls: Sequence[WrittenCall]) -> str:
        rows = ({"type": "tool_call", "name": name, "arguments": args} for name, args in calls)
        return "\n".join(map(dump, rows))

    def speech(self, text: str) -> str:
        return dump({"type": "final_answer", "text": text})

    def observation(self, name: str, kind: str, value: Any) -> str:
        return dump({"type": "tool_observation", "name": name, kind: value})


class OneObjectStyle(JsonlStyle):
    """Writes all calls of a reply, or its speech, as one object. Its first key says which it is."""

    rules = "protocol_json_reply.md"

    def calls(self, calls: Sequence[WrittenCall]) -> str:
        return dump({"calls": [{"name": name, "arguments": args} for name, args in calls]})

    def speech(self, text: str) -> str:
        return dump({"say": text})


class XmlStyle(ProtocolStyle):
    """Writes calls in elements and speech as it is, as Hermes and Qwen models were trained on."""

    rules = "protocol_xml.md"

    def calls(self, calls: Sequence[WrittenCall]) -> str:
        return "\n".join(f"<tool_call>\n{_call(call)}\n</tool_call>" for call in calls)

    def observation(self, name: str, kind: str, value: Any) -> str:
        return f'<tool_observation name="{name}" kind="{kind}">\n{dump(value)}\n</tool_observation>'


class MarkdownJsonStyle(ProtocolStyle):
    """Writes calls in code fences and speech as it is, as coding models do by themselves."""

    rules = "protocol_markdown_json.md"

    def calls(self, calls: Sequence[WrittenCall]) -> str:
        return "\n".join(f"```json\n{_call(call)}\n```" for call in calls)

    def observation(self, name: str, kind: str, value: Any) -> str:
        return f"Tool observation ({kind} of {name}):\n```json\n{dump(value)}\n```"


STYLES: Final[Mapping[StyleName, ProtocolStyle]] = MappingProxyType(
    {"jsonl": JsonlStyle(), "xml": XmlStyle(), "markdown-json": MarkdownJsonStyle()}
)


def dump(value: Any) -> str:
    """Write JSON with the blanks that models write themselves, so examples look like replies."""
    return json.dumps(value, ensure_ascii=False)


def _call(call: WrittenCall) -> str:
    return dump({"name": call[0], "arguments": call[1]})


# The outline of a large result: how many items there are, which fields, their ids, the first one.
#
# A list that is cut after its first items would hide the rest. With the ids the model can still ask
# for any one of them, and say how many there are.

_IDS: Final = ("id", "uid", "uuid", "key", "name", "title", "path", "url")
"""Fields that tell one record from another, the best first."""
_ID_CHARS: Final = 120
"""Characters of one id."""
_SHARES: Final = (0.8, 0.6, 0.4)
"""Parts of the room that are tried in turn for a text that JSON writes longer than it is."""
_ROOM_MIN: Final = 200
"""Characters that an outline without ids needs."""


def outline(value: Any, max_chars: int) -> Any:
    """Return `value` if it fits in `max_chars` characters of JSON, else its outline, which does.

    The same value always gives the same outline.
    """
    if len(json.dumps(value, ensure_ascii=False, default=str)) <= max_chars:
        return value
    room = max(_ROOM_MIN, max_chars)
    if isinstance(value, list):
        return _list(cast("list[Any]", value), room)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        share = max(_ROOM_MIN, room // max(1, len(members)))
        outlined = {str(key): outline(member, share) for key, member in members.items()}
        if len(json.dumps(outlined, ensure_ascii=False, default=str)) <= room:
            return outlined
    return _line(cast("object", value), room)


def _list(items: list[Any], room: int) -> Any:
    first = items[0]
    outlined: dict[str, Any] = {"count": len(items)}
    if isinstance(first, Mapping):
        fields = list(dict.fromkeys(str(key) for item in items[:50] for key in _keys(item)))
        outlined["fields"] = fields[:24]
        if key := next((key for key in _IDS if key in fields), None):
            left = room // 2
            outlined[f"{key}s"] = _fitting([item.get(key) for item in items if _keys(item)], left)
    outlined["first"] = _line(cast("object", first), max(_ROOM_MIN, room // 4))
    if len(json.dumps(outlined, ensure_ascii=False, default=str)) <= room:
        return outlined
    return _line(items, room)


def _line(value: object, room: int) -> str:
    """Return the value as text. JSON writes that longer, as each quote in it is two characters."""
    outlined = to_line(value, max_chars=room)
    for share in _SHARES:
        if len(json.dumps(outlined, ensure_ascii=False)) <= room:
            break
        outlined = to_line(value, max_chars=max(MIN_CHARS, int(room * share)))
        # Control characters are six each there, and say nothing in a preview.
        outlined = "".join(char if char.isprintable() else " " for char in outlined)
    return outlined


def _keys(item: Any) -> Sequence[str]:
    return list(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else ()


def _fitting(ids: list[Any], room: int) -> list[Any]:
    shown: list[Any] = []
    for one in ids:
        text = str(one)[:_ID_CHARS]
        room -= len(text) + 4
        if room < 0:
            return [*shown, f"({len(ids) - len(shown)} more)"]
        shown.append(one if isinstance(one, int) else text)
    return shown


EXAMPLE_TOKENS: Final = 2_400
"""Estimated tokens of the example turns in the prefix: three turns for each of 14 tools, which are
read once when the room opens. With more tools each has two turns, or one."""
EXAMPLES_PER_TOOL: Final = 3
TABLES_MAX: Final = 8
"""Tables of tools of which what was made is kept. The rooms of one process share a table, and a
reload makes another."""
_FIXED_EXAMPLES: Final[Mapping[str, Any]] = json.loads(read("protocol_examples.json"))


def protocol_prompt(
    question: Question,
    style: ProtocolStyle,
    *,
    may_call: bool,
    with_dialogues: bool,
) -> tuple[Item, ...]:
    """Return the whole prompt.

    `with_dialogues` shows whole dialogues whose tools are in no table. They keep the smallest
    models from apologising for an answer, but may only be shown where a schema keeps those tools
    from being called.
    """
    shown = question.shown_items
    systems = [*itertools.takewhile(lambda item: isinstance(item, SystemItem), shown)]
    own = [item.text for item in systems if isinstance(item, SystemItem) and item.text]
    rules = fill(style.rules, catalogue=_catalogue_of(question.front))
    return (
        SystemItem("\n\n".join([*own, rules])),
        *_examples(question.front, style, with_dialogues),
        *_conversation(shown[len(systems) :], style, question.limits.observation),
        # It is a person's turn, since templates move late instructions to the prompt's prefix.
        *(() if may_call else (UserItem(read("last_round.md")),)),
        *((UserItem(read("must_call.md")),) if question.must_call else ()),
    )


def _conversation(items: Sequence[WindowItem], style: ProtocolStyle, chars: int) -> Iterator[Item]:
    """Yield `items` with calls and results as text. Calls of one reply are one message.

    Of a result with more than `chars` characters there is an outline.
    """
    for kind, group in itertools.groupby(items, key=type):
        if kind is CallItem:
            calls = [(c.name, _parsed(c.arguments)) for c in group if isinstance(c, CallItem)]
            yield AssistantItem(style.calls(calls))
        elif kind is ResultItem:
            results = [item for item in group if isinstance(item, ResultItem)]
            yield UserItem("\n".join(_observation(result, style, chars) for result in results))
        else:
            for item in group:
                if isinstance(item, ToolsItem):
                    yield told_by_text(item, style)
                    continue
                spoken = isinstance(item, AssistantItem)
                yield AssistantItem(style.speech(item.text)) if spoken else item


def _observation(result: ResultItem, style: ProtocolStyle, chars: int) -> str:
    kind = "error" if result.is_error else "result"
    value = _parsed(result.output)
    if result.name != DISCOVER:  # What a search has found is callable only as it stands there.
        value = outline(value, chars)
    return style.observation(result.name, kind, value)


@lru_cache(TABLES_MAX)
def _examples(tools: PromptTools, style: ProtocolStyle, with_dialogues: bool) -> tuple[Item, ...]:
    return tuple(_example_turns(tools, style, with_dialogues))


def _example_turns(
    tools: PromptTools, style: ProtocolStyle, with_dialogues: bool
) -> Iterator[Item]:
    """Yield chat turns: what needs no tool, then a round of each tool before the next round."""
    for row in _FIXED_EXAMPLES["speech"]:
        yield UserItem(row["say"])
        yield AssistantItem(style.speech(row["answer"]))
    for row in _FIXED_EXAMPLES["dialogues"] if with_dialogues else ():
        calls = [(call["name"], call["arguments"]) for call in row["calls"]]
        names = [name for name, _ in calls]
        yield UserItem(row["say"])
        yield AssistantItem(style.calls(calls))
        results = zip(names, row["results"], strict=True)
        shown = (style.observation(name, "result", value) for name, value in results)
        yield UserItem("\n".join(shown))
        yield AssistantItem(style.speech(row["answer"]))
    tokens_left = EXAMPLE_TOKENS
    for number, name in itertools.product(range(EXAMPLES_PER_TOOL), tools.names):
        if number >= len(tools.examples.get(name, ())):
            continue
        example = tools.examples[name][number]
        turn = (
            UserItem(escape_markers(example.utterance)),
            AssistantItem(style.calls([(name, escaped_value(example.arguments))])),
        )
        tokens_left -= sum(map(item_tokens, turn))
        if tokens_left < 0:
            return
        yield from turn


def _parsed(text: str) -> Any:
    """Return JSON as its value, so that no quotes inside quotes reach the model; else the text."""
    try:
        return escaped_value(json.loads(text))  # JSON may have written a marker as `\\u003c`.
    except (ValueError, RecursionError):
        return text


@lru_cache(TABLES_MAX)
def _catalogue_of(tools: PromptTools) -> str:
    return catalogue(tools.schemas)
