"""The prompt of the text protocol: rules, catalogue and examples in front, then the conversation.

The head depends on the tools and their examples alone, and every item of the conversation is
written without regard to what follows it. So a request's prompt is the beginning of the next
one's, and a server reads only what is new.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from caal_node.context.token_estimate import item_tokens
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.prompt_files import fill, read
from caal_node.models.question import Question
from caal_node.models.strategies.limits import DEFAULT, ProtocolLimits, turn_is_over
from caal_node.models.strategies.result_outline import outline
from caal_node.models.strategies.styles import ProtocolStyle
from caal_node.models.strategies.tool_catalogue import catalogue

EXAMPLE_TOKENS: Final = 2_400
"""Estimated tokens of example turns in the head: three for each of 14 tools, read once when the
room opens. With more tools each has two, or one."""
EXAMPLES_PER_TOOL: Final = 3
_WRITTEN: Final[Mapping[str, Any]] = json.loads(read("protocol_examples.json"))


def prompt(
    question: Question,
    style: ProtocolStyle,
    *,
    may_call: bool,
    dialogues: bool,
    limits: ProtocolLimits = DEFAULT,
) -> tuple[Item, ...]:
    """The whole prompt. `dialogues`: show whole dialogues, whose tools are in no table.

    They keep the smallest models from apologising for an answer, but may only be shown where a
    schema keeps those tools from being called.
    """
    systems = [*itertools.takewhile(lambda item: isinstance(item, SystemItem), question.items)]
    own = [item.text for item in systems if isinstance(item, SystemItem) and item.text]
    rules = fill(style.rules, catalogue=catalogue(question.tools.schemas))
    return (
        SystemItem("\n\n".join([*own, rules])),
        *_examples(question, style, dialogues),
        *conversation(question.items[len(systems) :], style, limits),
        # A person's turn, since templates move late instructions to the head of the prompt.
        *(() if may_call else (UserItem(read("last_round.md")),)),
    )


def may_call(question: Question, limits: ProtocolLimits = DEFAULT) -> bool:
    return question.may_call and not turn_is_over(question.items, limits)


def conversation(
    items: Sequence[Item], style: ProtocolStyle, limits: ProtocolLimits = DEFAULT
) -> Iterator[Item]:
    """`items` with calls and results as text. Calls of one reply are one message."""
    for kind, group in itertools.groupby(items, key=type):
        if kind is CallItem:
            calls = [(c.name, _value(c.arguments)) for c in group if isinstance(c, CallItem)]
            yield AssistantItem(style.calls(calls))
        elif kind is ResultItem:
            results = [item for item in group if isinstance(item, ResultItem)]
            yield UserItem("\n".join(_observed(result, style, limits) for result in results))
        else:
            for item in group:
                yield (
                    AssistantItem(style.speech(item.text))
                    if isinstance(item, AssistantItem)
                    else item
                )


def _observed(result: ResultItem, style: ProtocolStyle, limits: ProtocolLimits) -> str:
    kind = "error" if result.is_error else "result"
    value = outline(_value(result.output), limits.observation_chars)
    return style.observation(result.name, kind, value)


def _examples(question: Question, style: ProtocolStyle, dialogues: bool) -> Iterator[Item]:
    """First what needs no tool, then tool by tool, one round of each before the second of any."""
    for row in _WRITTEN["speech"]:
        yield UserItem(row["say"])
        yield AssistantItem(style.speech(row["answer"]))
    for row in _WRITTEN["dialogues"] if dialogues else ():
        calls = [(call["name"], call["arguments"]) for call in row["calls"]]
        names = [name for name, _ in calls]
        yield UserItem(row["say"])
        yield AssistantItem(style.calls(calls))
        told = zip(names, row["results"], strict=True)
        yield UserItem("\n".join(style.observation(name, "result", value) for name, value in told))
        yield AssistantItem(style.speech(row["answer"]))
    room = EXAMPLE_TOKENS
    for n in range(EXAMPLES_PER_TOOL):
        for tool in question.tools.schemas:
            name = tool["function"]["name"]
            if n >= len(question.tools.examples.get(name, ())):
                continue
            example = question.tools.examples[name][n]
            shown = (
                UserItem(example.utterance),
                AssistantItem(style.calls([(name, dict(example.arguments))])),
            )
            room -= sum(map(item_tokens, shown))
            if room < 0:
                return
            yield from shown


def _value(text: str) -> Any:
    """JSON where `text` is JSON, so that no quotes inside quotes reach the model."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
