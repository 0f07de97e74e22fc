"""By text: tools are listed in the prompt, and each reply is one JSON object.

For models without tool calls of their own, and for those whose own calls come out broken. The
head (rules, catalogue, example turns) depends on the tools alone, so it is read once and stays in
the server's cache. Examples as chat turns are what helped small models most: a 1.5B rose from 17
to 37 of 40 requests right. Held to a schema, no reply can be anything but a call or speech.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from caal_node.context.items import Assistant, Call, Item, Result, System, User
from caal_node.models.port import Chunk, Reasoning, Request, Text, ToolSchema
from caal_node.models.question import Question
from caal_node.models.ways.port import Reader, WayName
from caal_node.models.ways.reply_schema import reply_schema
from caal_node.models.ways.speech import only_speech
from caal_node.prompting import fill, read
from caal_node.replies import Event, ReasoningDelta, ReplyParser

EXAMPLE_TURNS: Final = 24
"""Example turns in the head at most: 60 tokens each, read once when the room opens."""


class Protocol:
    name: WayName = "protocol"

    def __init__(self, *, constrain: bool = True) -> None:
        self.constrain = constrain

    def request(self, question: Question) -> Request:
        return Request(
            tuple(self._items(question)),
            stream=question.stream,
            schema=reply_schema(question.tools, question.may_call) if self.constrain else None,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> Reader:
        return _Reader(question)

    def _items(self, question: Question) -> Iterator[Item]:
        systems = [*itertools.takewhile(lambda item: isinstance(item, System), question.items)]
        head = [item.text for item in systems if isinstance(item, System) and item.text]
        rules = fill("protocol.md", catalogue="\n".join(map(_line, question.tools)))
        yield System("\n\n".join([*head, rules]))
        yield from _example_turns(question, constrained=self.constrain)
        for item in question.items[len(systems) :]:
            yield _as_text(item)
        if not question.may_call:
            # A person's turn, since templates move late instructions to the head of the prompt.
            yield User(read("last_round.md"))


def _line(tool: ToolSchema) -> str:
    """One tool on one line: name, what it is for, and its parameters in a short form."""
    function = tool["function"]
    parameters: Mapping[str, Any] = function.get("parameters") or {}
    required: Sequence[str] = parameters.get("required", ())
    properties: Mapping[str, Any] = parameters.get("properties") or {}
    shown = ", ".join(
        _parameter(name, schema, name in required) for name, schema in properties.items()
    )
    return f"- {function['name']}({shown}): {' '.join((function.get('description') or '').split())}"


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> str:
    kind = (
        "|".join(map(json.dumps, schema["enum"])) if "enum" in schema else schema.get("type", "any")
    )
    text = f"{name}{'' if required else '?'}: {kind if isinstance(kind, str) else '|'.join(kind)}"
    about = schema.get("description")
    return f"{text} ({about})" if about else text


def _example_turns(question: Question, *, constrained: bool) -> Iterator[Item]:
    """First what needs no tool, then tool by tool, one round of each before the second of any."""
    written: Mapping[str, Any] = json.loads(read("protocol_examples.json"))
    for row in written["speech"]:
        yield User(row["say"])
        yield Assistant(_speech(row["answer"]))
    if constrained:
        # One dialogue with a result: without it the smallest models apologise for the answer. Its
        # tool is in no table, so it is only shown where a schema keeps it from being called.
        row = written["dialogue"]
        yield User(row["say"])
        yield Assistant(_call(row["call"], row["arguments"]))
        yield User(_observation(row["call"], "result", row["result"]))
        yield Assistant(_speech(row["answer"]))
    names = [tool["function"]["name"] for tool in question.tools]
    depth = max((len(question.examples.get(name, ())) for name in names), default=0)
    turns = [
        (question.examples[name][n], name)
        for n in range(depth)
        for name in names
        if n < len(question.examples.get(name, ()))
    ]
    for example, name in turns[:EXAMPLE_TURNS]:
        yield User(example.utterance)
        yield Assistant(_call(name, dict(example.arguments)))


def _as_text(item: Item) -> Item:
    if isinstance(item, Assistant):
        return Assistant(_speech(item.text), item.id)
    if isinstance(item, Call):
        return Assistant(_call(item.name, _value(item.arguments)), item.id)
    if isinstance(item, Result):
        kind = "error" if item.is_error else "result"
        return User(_observation(item.name, kind, _value(item.output)), item.id)
    return item


def _call(name: str, arguments: Any) -> str:
    return _dump({"type": "tool_call", "name": name, "arguments": arguments})


def _speech(text: str) -> str:
    return _dump({"type": "final_answer", "text": text})


def _observation(name: str, kind: str, value: Any) -> str:
    return _dump({"type": "tool_observation", "name": name, kind: value})


def _dump(value: Any) -> str:
    # With the blanks that models write by themselves, so that example and reply look alike.
    return json.dumps(value, ensure_ascii=False)


def _value(text: str) -> Any:
    """JSON where `text` is JSON, so that no quotes inside quotes reach the model."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class _Reader:
    def __init__(self, question: Question) -> None:
        self._parser = ReplyParser(question.tools)
        self._may_call = question.may_call

    def feed(self, chunk: Chunk) -> list[Event]:
        if isinstance(chunk, Reasoning):
            return [ReasoningDelta(chunk.text)]
        return self._allowed(self._parser.feed(chunk.text)) if isinstance(chunk, Text) else []

    def finish(self) -> list[Event]:
        return self._allowed(self._parser.finish())

    def _allowed(self, events: list[Event]) -> list[Event]:
        return events if self._may_call else only_speech(events)
