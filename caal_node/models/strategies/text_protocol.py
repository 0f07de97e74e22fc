"""The strategies in which calls are text: the text protocol, and the JSON reply.

In both the prompt lists the tools, and each reply is either calls or speech. The text protocol is
for servers without tool calls, whatever they speak, and for servers that cannot hold a reply
to a schema; where they can, `JsonReplyStrategy` does better. Examples written as chat turns are
what helped small models most: a 1.5B rose from 17 to 37 of 40 requests right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, cast

from caal_node.context.schemas import takes_any
from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import CallItem, Item, ResultItem, ToolsItem, UserItem
from caal_node.core.tool_spec import ToolSchema
from caal_node.grounding.meanings import answer_in
from caal_node.models.backends.base import BackendRequest, Chunk, GeneratedToken, TextChunk
from caal_node.models.question import Question
from caal_node.models.reply_limits import calls_left
from caal_node.models.strategies.base import (
    LimitedReader,
    ReplyReader,
    StrategyName,
    asked_for_speech,
    may_call,
    only_speech,
)
from caal_node.models.strategies.prompt import (
    STYLES,
    TABLES_MAX,
    OneObjectStyle,
    StyleName,
    protocol_prompt,
)
from caal_node.models.strategies.tool_relevance import wishes
from caal_node.reply_parser import Event

# The plain strategy: no tools, so the model may only speak.
#
# It is used where a conversation has no tools, and it is the last one that is tried.


class PlainStrategy:
    """Asks for speech. `as_text` writes results as words, for models whose chat template has no
    place for calls and their results."""

    name: StrategyName = "plain"

    def __init__(self, *, as_text: bool = False) -> None:
        self._as_text = as_text

    def request(self, question: Question) -> BackendRequest:
        shown = [item for item in question.shown_items if not isinstance(item, ToolsItem)]
        items = tuple(_results_as_text(shown) if self._as_text else shown)
        return BackendRequest(items, stream=question.stream, max_tokens=question.max_tokens)

    def reader(self, question: Question) -> ReplyReader:
        return _PlainReader(question, in_thinking=question.in_thinking)


class _PlainReader(ReplyReader):
    def _allowed(self, events: list[Event]) -> list[Event]:
        return only_speech(events)


def _results_as_text(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, ResultItem):
            yield UserItem(f"({item.name}: {item.output})", item.id)
        elif not isinstance(item, CallItem):
            yield item


class TextProtocolStrategy:
    """Asks for calls in one of the written styles.

    `constrain` holds the reply to a schema, which fits one line of the JSONL style only.
    """

    name: StrategyName = "text_protocol"

    def __init__(self, style: StyleName = "jsonl", *, constrain: bool = False) -> None:
        self.style: StyleName = style
        self.constrain = constrain and style == "jsonl"

    def request(self, question: Question) -> BackendRequest:
        allowed = may_call(question)
        style = STYLES[self.style]
        items = protocol_prompt(question, style, may_call=allowed, with_dialogues=self.constrain)
        if question.speech_only:
            items = asked_for_speech(items, question.references)
        tools = question.tools.schemas if allowed and not question.speech_only else ()
        return BackendRequest(
            items,
            # So that it ends at its call, whatever the model would write behind it.
            stream=True,
            schema=line_schema(tools, must_call=question.must_call) if self.constrain else None,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> ReplyReader:
        # A reply that is held to a schema has no place for thinking.
        in_thinking = question.in_thinking and not self.constrain
        return LimitedReader(question, speech_only=question.speech_only, in_thinking=in_thinking)


# The JSON reply: one object that a schema holds to `{"calls": [...]}` or `{"say": "..."}`.
#
# It is for models whose own calls come out broken; tests/bench/small_models.py has the figures. The
# prompt's prefix is fixed. The grammar allows every tool that the prompt shows, as no words of a
# request say for certain that a tool is not meant; of a request for two things it asks two calls.
# The reply's first key decides between tool and speech, so speech is known from the first tokens
# on, and streams.

# The JSON schema that a reply is held to, made from what grammar compilers agree on.
#
# llama.cpp and Ollama turn a schema into a grammar. What they cannot turn (formats, patterns,
# references, bounds) makes some versions refuse the request, so only the shape is kept. The
# arguments are checked against the tool's whole schema before it runs.

_KEPT: Final = ("type", "enum", "const")
_NESTING_MAX: Final = 6
"""Levels of nesting that are held to the schema; deeper, any value is allowed. Grammars grow with
every level."""
_ARGUMENTS_CHARS_MAX: Final = 8_000
"""Characters of the shape of one tool's arguments. A larger one makes a grammar that takes the
model's server seconds, so any object is allowed in its place."""


def line_schema(tools: Sequence[ToolSchema], *, must_call: bool = False) -> dict[str, Any]:
    """Return the schema of one line of the JSONL style: a call of one of `tools`, or speech.

    With `must_call` it cannot be speech.
    """
    speech = _object({"type": {"const": "final_answer"}, "text": {"type": "string"}})
    if not tools:
        return speech
    calls = (_object({"type": {"const": "tool_call"}, **_call(tool["function"])}) for tool in tools)
    return {"anyOf": [*calls] if must_call else [*calls, speech]}


def reply_schema(
    tools: Sequence[ToolSchema], *, least: int = 1, most: int = 6, must_call: bool = False
) -> dict[str, Any]:
    """Return the schema of one object: `least` to `most` calls of `tools`, or speech.

    Without tools only speech is allowed, and with `must_call` only calls.
    """
    if not tools:
        return _speech()
    calls = {"type": "array", "items": _one_of(tools), "minItems": least, "maxItems": most}
    return _object({"calls": calls}) if must_call else _either(calls)


def _either(calls: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [_object({"calls": calls}), _speech()]}


def _speech() -> dict[str, Any]:
    return _object({"say": {"type": "string"}})


def _one_of(tools: Sequence[ToolSchema]) -> dict[str, Any]:
    return {"anyOf": [_object(_call(tool["function"])) for tool in tools]}


def _call(function: Mapping[str, Any]) -> dict[str, Any]:
    arguments = _shape(function.get("parameters") or {}, 0)
    if arguments.get("type") != "object" or len(json.dumps(arguments)) > _ARGUMENTS_CHARS_MAX:
        arguments = {"type": "object"}
    return {"name": {"const": function["name"]}, "arguments": arguments}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _shape(schema: Any, depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > _NESTING_MAX:
        return {}
    given = cast("Mapping[str, Any]", schema)
    kept: dict[str, Any] = {key: given[key] for key in _KEPT if key in given}
    if takes_any(given):
        return {"type": "object"}  # grammars made of an empty `properties` allow only `{}`
    if isinstance(given.get("properties"), Mapping):
        properties = cast("Mapping[str, Any]", given["properties"])
        kept["type"] = "object"
        kept["properties"] = {name: _shape(sub, depth + 1) for name, sub in properties.items()}
        kept["required"] = [name for name in given.get("required", ()) if name in properties]
        if not given.get("additionalProperties"):
            kept["additionalProperties"] = False
    if isinstance(given.get("items"), Mapping):
        kept["items"] = _shape(given["items"], depth + 1)
    for key in ("anyOf", "oneOf"):
        if isinstance(given.get(key), list):
            options = cast("list[Any]", given[key])
            kept["anyOf"] = [_shape(option, depth + 1) for option in options]
    return kept


TOP_CANDIDATES: Final = 10
"""Candidates that are asked for each token. Both keys are nearly always among them."""
_CALLS: Final = '{"calls"'
_SAY: Final = '{"say"'

KEY_CHARS: Final = len('{"s')
"""Characters that tell the two keys apart."""
SCHEMA_CALLS_MAX: Final = 6
"""Calls that the schema has room for: a small model fills what room there is."""
_STYLE: Final = OneObjectStyle()


class LogprobGate:
    """Reads how sure a model is that a request needs a tool off the odds of its reply's first key.

    It takes the tokens as they come, and decides at the one that tells `{"calls"` from `{"say"`.
    Their log probabilities, as the model had them before the grammar, part requests with a tool
    from those without at AUC 0.95 on a 0.5B.
    """

    def __init__(self) -> None:
        self.margin: float | None = None
        """log P("calls") - log P("say"). None until the key is seen, or without odds."""
        self.decided: Literal["calls", "say"] | None = None
        """The key that the reply has. None until it is seen."""
        self._text = ""
        self._open = True

    def see(self, tokens: Iterable[GeneratedToken]) -> None:
        """Take the next tokens of the reply."""
        for token in tokens:
            if not self._open:
                return
            self._decide(token)
            self._text = _without_blanks(self._text + token.text)

    def _decide(self, token: GeneratedToken) -> None:
        whole = _without_blanks(self._text + token.text)
        if len(whole) <= 2:  # `{"` is common to both keys
            return
        self._open = False
        self.decided = "calls" if whole[2:3] == "c" else "say"
        calls = _logprobs_of(self._text, token, _CALLS)
        say = _logprobs_of(self._text, token, _SAY)
        if token.top and (calls or say):
            floor = min(logprob for _, logprob in token.top)
            self.margin = _sum(calls, floor) - _sum(say, floor)


def _without_blanks(text: str) -> str:
    return text.replace(" ", "").replace("\n", "")


def _logprobs_of(before: str, token: GeneratedToken, key: str) -> list[float]:
    """Return the log probabilities of the candidates that begin, or go on with, `key`."""
    found: list[float] = []
    for text, logprob in token.top:
        whole = _without_blanks(before + text)
        if len(whole) > 2 and (key.startswith(whole) or whole.startswith(key)):
            found.append(logprob)
    return found


def _sum(logprobs: Sequence[float], floor: float) -> float:
    """Return the logarithm of the summed probabilities; `floor` where there is none."""
    if not logprobs:
        return floor
    best = max(logprobs)
    return best + math.log(sum(math.exp(one - best) for one in logprobs))


class JsonReplyStrategy:
    """Asks for one JSON object.

    `call_threshold` is the least log P("calls") - log P("say") at which a call is believed. At zero
    the model's own choice stands. A higher threshold keeps a small model from calling for nothing,
    but it is one model's on one set of tools: with 7, which suits a 0.5B on fourteen tools, it says
    of half the requests to four other tools that they are done, and has called nothing. So it is
    measured anew for each table, by `caal_node.models.model_preparation.calibrate`.

    `speech_only` allows no call: it asks again after a call that the model was unsure of. `without`
    are tools that the grammar leaves out: it asks again after a call that only repeats another one.
    """

    name: StrategyName = "json_reply"

    def __init__(
        self,
        *,
        speech_only: bool = False,
        call_threshold: float = 0.0,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.speech_only = speech_only
        self._without = without
        self.call_threshold = call_threshold

    def request(self, question: Question) -> BackendRequest:
        allowed = may_call(question)
        items = protocol_prompt(question, _STYLE, may_call=allowed, with_dialogues=True)
        if self.speech_only and answer_in(question.references):
            items = asked_for_speech(items, question.references)
        allowed = allowed and not self.speech_only
        most = max(1, min(SCHEMA_CALLS_MAX, calls_left(question.turn, question.limits)))
        if question.parallel is False:
            most = 1
        if not allowed:
            schema = reply_schema(())
        else:
            tools = self._allowed_of(question.tools)
            least = 1 if question.must_call or self._without else min(most, wishes(question))
            schema = _schema_of(tools, least, most, must_call=question.must_call)
        return BackendRequest(
            items,
            # The first tokens tell whether it is speech, and whether it is to be believed.
            stream=True,
            schema=schema,
            max_tokens=question.max_tokens,
            top_logprobs=TOP_CANDIDATES if allowed and not question.must_call else 0,
        )

    def _allowed_of(self, tools: PromptTools) -> PromptTools:
        """Return `tools` without those left out, and all where none would be left."""
        left = frozenset(tools.names) - self._without
        return tools.only(left) if self._without and left else tools

    def reader(self, question: Question) -> ReplyReader:
        return _JsonReplyReader(question, self)


@lru_cache(TABLES_MAX)
def _schema_of(tools: PromptTools, least: int, most: int, *, must_call: bool) -> dict[str, Any]:
    return reply_schema(tools.schemas, least=least, most=most, must_call=must_call)


class _JsonReplyReader(LimitedReader):
    def __init__(self, question: Question, strategy: JsonReplyStrategy) -> None:
        super().__init__(question, speech_only=strategy.speech_only, as_said=True)
        self._threshold = strategy.call_threshold
        self._gate = LogprobGate() if self._may_call and not question.must_call else None
        self._may_speak = not question.must_call
        self._head = ""

    def feed(self, chunk: Chunk) -> list[Event]:
        if isinstance(chunk, TextChunk) and len(self._head) < KEY_CHARS:
            self._head = _without_blanks(self._head + chunk.text)
            # Where the server did not hold the reply to the schema, it need not begin with a key.
            self.is_speech = self._may_speak and self._head.startswith(_SAY[:KEY_CHARS])
        if self._gate is not None and isinstance(chunk, TextChunk):
            self._gate.see(chunk.tokens)
            margin = self._gate.margin
            if self._gate.decided == "calls" and margin is not None and margin < self._threshold:
                self.doubt = self.doubt or "unsure"
        return super().feed(chunk)
