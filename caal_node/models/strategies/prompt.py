"""The prompt in which calls are text: rules, tools and examples in front, then the conversation.

The prefix depends on the tools and their examples alone, and every item of the conversation is
written without regard to what follows it. So one request's prompt is the beginning of the next
one's, and a server reads only what is new.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from caal_node.context.prompt_tools import PromptTools
from caal_node.context.schemas import first_sentences
from caal_node.context.token_estimate import item_tokens
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.prompt_files import fill, read
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.question import Question
from caal_node.models.strategies.result_outline import outline
from caal_node.models.strategies.styles import ProtocolStyle
from caal_node.reply_parser.escaping import escape_markers, escaped_value

EXAMPLE_TOKENS: Final = 2_400
"""Estimated tokens of the example turns in the prefix: three turns for each of 14 tools, which are
read once when the room opens. With more tools each has two turns, or one."""
EXAMPLES_PER_TOOL: Final = 3
DESCRIPTION_CHARS: Final = 160
"""Characters of a tool's description: two lines. More says how a tool works, not when to use it."""
PARAMETER_CHARS: Final = 80
"""Characters of one parameter's description."""
TABLES_MAX: Final = 8
"""Tables of tools of which what was made is kept. The rooms of one process share a table, and a
reload makes another."""
_NESTING_MAX: Final = 4
"""Levels of nesting that are written out; whatever lies deeper is `object`."""
_WORD: Final = re.compile(r"[\w.$-]+")
"""A name that can be no sentence, and no line of its own."""
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
    rules = fill(style.rules, catalogue=_catalogue_of(question.tools))
    return (
        SystemItem("\n\n".join([*own, rules])),
        *_examples(question.tools, style, with_dialogues),
        *_conversation(shown[len(systems) :], style, question.limits.observation),
        # It is a person's turn, since templates move late instructions to the prompt's prefix.
        *(() if may_call else (UserItem(read("last_round.md")),)),
        *((UserItem(read("must_call.md")),) if question.must_call else ()),
    )


def _conversation(items: Sequence[Item], style: ProtocolStyle, chars: int) -> Iterator[Item]:
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
                spoken = isinstance(item, AssistantItem)
                yield AssistantItem(style.speech(item.text)) if spoken else item


def _observation(result: ResultItem, style: ProtocolStyle, chars: int) -> str:
    kind = "error" if result.is_error else "result"
    value = outline(_parsed(result.output), chars)
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


def catalogue(tools: Sequence[ToolSchema]) -> str:
    """Write tools as text: the name, at most two lines of what it is for, and its arguments.

    The arguments are written the way types are written in code, `{city: string, days?: integer
    (1 to 7)}`. That takes a third of the tokens of JSON schema and loses nothing a call needs.
    """
    return "\n".join(map(_catalogue_entry, tools))


def _catalogue_entry(tool: ToolSchema) -> str:
    function = tool["function"]
    about = first_sentences(function.get("description") or "", DESCRIPTION_CHARS)
    shape = _object_type(cast("Mapping[str, Any]", function.get("parameters") or {}), 0)
    return f"- {function['name']}: {about}\n  {shape}" if about else f"- {function['name']} {shape}"


def _object_type(schema: Mapping[str, Any], depth: int) -> str:
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    if depth > _NESTING_MAX or (depth and not properties):
        return "object"
    required = cast("Sequence[str]", schema.get("required") or ())
    shown = (_member(name, sub, name in required, depth) for name, sub in properties.items())
    return "{" + ", ".join(shown) + "}"


def _member(name: str, schema: Any, required: bool, depth: int) -> str:
    name = name if _WORD.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    text = f"{name}{'' if required else '?'}: {_type(schema, depth)}"
    about: object = None
    if isinstance(schema, Mapping):
        about = cast("Mapping[str, Any]", schema).get("description")
    return f"{text} ({first_sentences(about, PARAMETER_CHARS)})" if about else text


def _type(schema: Any, depth: int) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    given = cast("Mapping[str, Any]", schema)
    if "const" in given:
        return json.dumps(given["const"], ensure_ascii=False)
    if isinstance(given.get("enum"), list):
        return "|".join(json.dumps(v, ensure_ascii=False) for v in given["enum"])
    for key in ("anyOf", "oneOf"):
        if isinstance(options := given.get(key), list):
            return "|".join(dict.fromkeys(_type(o, depth) for o in cast("list[Any]", options)))
    kind = given.get("type")
    if isinstance(kind, list):
        return "|".join(map(_type_name, cast("list[object]", kind)))
    if kind == "array":
        return f"[{_type(given.get('items', {}), depth + 1)}]"
    if kind == "object" or "properties" in given:
        return _object_type(given, depth + 1)
    return _type_name(kind)


def _type_name(kind: object) -> str:
    return kind if isinstance(kind, str) and _WORD.fullmatch(kind) else "any"
