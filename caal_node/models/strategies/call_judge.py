"""Leaves out the calls of a reply that stand on nothing, for every way of asking.

Where a schema holds a reply, arguments that nobody said go as well, as it makes a model write
some. What a server sends as a call keeps its arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, cast

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import AssistantItem, Item, ResultItem, SystemItem, Turn, UserItem
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Example, ToolSchema, name_writes
from caal_node.grounding.call_grounds import (
    FIT,
    CallGrounds,
    CallSigns,
    language_of_tools,
    unique_words,
)
from caal_node.grounding.earlier_results import is_same_lookup, is_told
from caal_node.grounding.meanings import meant_for
from caal_node.grounding.request_words import is_question
from caal_node.models.question import Question
from caal_node.models.strategies.prompt import TABLES_MAX
from caal_node.models.strategies.tool_relevance import (
    ARTICLES,
    COMMON,
    MEASURES,
    NUMBERS,
    STEM_CHARS,
    TIMES,
    fits,
    stems,
    words,
)
from caal_node.reply_parser import Event, TextDelta, ToolCallEnd, ToolCallStart

# Whether a call's arguments were said by anybody. The rules hold for any model.
#
# Small models fill in what nobody said: a unit, a date, the city of an example. So an optional
# argument without evidence is dropped, and an enum's value that was said word for word is taken. A
# call whose required number was never said, or whose words were copied from an example, is not
# made: the person is asked instead.

_NUMERIC: Final = frozenset({"number", "integer"})
_TIME_VALUE: Final = re.compile(r"\d{4}-\d{2}|\d{1,2}:\d{2}")
_TIME_NAMES: Final = frozenset(
    {"date", "time", "day", "days", "when", "until", "since", "start", "end", "at"}
)
_NAMES: Final = re.compile(r"(?<![.!?:]\s)(?<!^)(?<!\n)\b[A-Z][\w'’-]*|\d+", re.MULTILINE)
"""What may be about the person in instructions: names inside a sentence, and numbers."""
_DIGIT: Final = re.compile(r"\d")
_CJK_NUMBER: Final = re.compile(r"[一二三四五六七八九十百千半两]")


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """What is left of a call's arguments."""

    arguments: dict[str, Any]
    """The arguments with evidence, with an enum's value as it was said."""
    unsaid: tuple[str, ...] = ()
    """Required arguments that nobody said. Where there are any, the call must not be made."""


class Evidence:
    """What was said in a conversation. `request` is the newest thing that the person said."""

    def __init__(self, items: Sequence[Item]) -> None:
        spoken = [_text(item) for item in items if not isinstance(item, SystemItem)]
        self.request = Turn(items).request
        named = [
            name for i in items if isinstance(i, SystemItem) for name in _NAMES.findall(i.text)
        ]
        self._stems = stems(" ".join([*spoken, *named])) - _COMMON_STEMS
        self._numbers = sum(map(numbers_said, spoken))
        self._now = numbers_said(self.request)
        self._said = " ".join(["", *words(self.request), ""])

    def judge(
        self, tool: ToolSchema, arguments: Mapping[str, Any], examples: Sequence[Example] = ()
    ) -> JudgedCall:
        """Return the `arguments` of a call of `tool` without those that have no evidence."""
        schema: Mapping[str, Any] = tool["function"].get("parameters") or {}
        properties: Mapping[str, Any] = schema.get("properties") or {}
        required: Sequence[str] = schema.get("required") or ()
        kept: dict[str, Any] = {}
        unsaid: list[str] = []
        # Numbers beyond those that were said are made up. Required arguments take theirs first.
        spare = self._now - sum(_is_numeric(properties.get(name)) for name in required)
        needed = [arguments[name] for name in required if name in arguments]
        for name, value in arguments.items():
            about = _schema_of(properties.get(name))
            value = self._as_said(about, value)
            if name in required:
                if self._is_made_up(name, about, value, examples):
                    unsaid.append(name)
            elif _is_numeric(about):
                if spare <= 0 and not self._in_results(value):
                    continue
                spare -= 1
            elif _repeats(value, needed) or not self._has_evidence(name, about, value):
                continue
            kept[name] = value
        return JudgedCall(kept, tuple(unsaid))

    def share(self, tool: ToolSchema, arguments: Mapping[str, Any]) -> float:
        """Return the share of `arguments` with evidence, required ones too; 1 without any."""
        schema: Mapping[str, Any] = tool["function"].get("parameters") or {}
        properties: Mapping[str, Any] = schema.get("properties") or {}
        found = [
            self._has_evidence(name, _schema_of(properties.get(name)), value)
            for name, value in arguments.items()
        ]
        return sum(found) / len(found) if found else 1.0

    def _as_said(self, schema: Mapping[str, Any], value: Any) -> Any:
        """Return the one value of an enum that was said, if the model chose one that was not."""
        options = schema.get("enum")
        if not isinstance(options, list) or self._is_said(value):
            return value
        said = [one for one in cast("list[Any]", options) if self._is_said(one)]
        return said[0] if len(said) == 1 else value

    def _is_said(self, value: Any) -> bool:
        return isinstance(value, str) and f" {' '.join(words(value))} " in self._said

    def _is_made_up(
        self, name: str, schema: Mapping[str, Any], value: Any, examples: Sequence[Example]
    ) -> bool:
        if _is_numeric(schema):
            return self._numbers == 0
        if not isinstance(value, str) or "enum" in schema:
            return False
        copied = any(example.arguments.get(name) == value for example in examples)
        return copied and not self._has_evidence(name, schema, value)

    def _has_evidence(self, name: str, schema: Mapping[str, Any], value: Any) -> bool:
        if value is None or value in ("", [], {}):
            return False
        if isinstance(value, bool):
            about = f"{name} {schema.get('description', '')}"
            return bool((stems(about) - _COMMON_STEMS) & self._stems)
        if isinstance(value, int | float):
            return self._numbers > 0
        if isinstance(value, str):
            is_time = _TIME_VALUE.search(value) or _TIME_NAMES.intersection(words(name))
            if is_time and "enum" not in schema:
                return self._says_time(value)
            found = stems(value) - _COMMON_STEMS
            return bool(found & self._stems) or not found
        members = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
        return any(self._has_evidence(name, {}, one) for one in cast("Iterable[Any]", members))

    def _says_time(self, value: str) -> bool:
        """Return whether a time was said at all: it is written otherwise than it was said."""
        is_time = bool(_DIGIT.search(value) or stems(value) & _TIME_STEMS)
        return is_time and bool(self._now or stems(self.request) & _TIME_STEMS)

    def _in_results(self, value: Any) -> bool:
        return self._now == 0 and json.dumps(value)[:4] in self._stems


_COMMON_STEMS: Final = frozenset(word[:STEM_CHARS] for word in COMMON)
_TIME_STEMS: Final = frozenset(
    word[:STEM_CHARS] for word in TIMES | NUMBERS if len(word) >= STEM_CHARS
)


def numbers_said(text: str) -> int:
    """Count the numbers that a text says, in digits or words; "an" counts before a measure only."""
    found = 0
    all_words = words(text)
    before = False
    for at, word in enumerate(all_words):
        if word in ARTICLES:
            following = all_words[at + 1] if at + 1 < len(all_words) else ""
            is_number = following in MEASURES
        else:
            is_number = bool(_DIGIT.search(word) or word in NUMBERS or _CJK_NUMBER.search(word))
        # "Forty two" is one number, "half an hour" too.
        found += is_number and not before
        before = is_number
    return found


def _repeats(value: Any, needed: Sequence[Any]) -> bool:
    return isinstance(value, str) and value in needed


def _schema_of(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _is_numeric(schema: Any) -> bool:
    return str(_schema_of(schema).get("type")) in _NUMERIC


def _text(item: Item) -> str:
    if isinstance(item, UserItem | AssistantItem):
        return item.text
    return item.output if isinstance(item, ResultItem) else ""


SPOKEN_CHARS: Final = 40
"""A parameter's description up to this length is said to a person; instead of a longer one, the
parameter's name is."""


class CallJudge:
    """Judges the calls of one reply to `question`.

    `as_said` has arguments that nobody said left out; `trusted` says that the model calls well.
    """

    def __init__(self, question: Question, *, as_said: bool, trusted: bool) -> None:
        self.doubt: Literal["needless", "repeated", "missing_argument", "unwanted"] | None = None
        """Why the last call that was left out was left out."""
        self.unwanted: Final[set[str]] = set()
        """The tools of calls that were not meant: they change something, or lack an argument, where
        the person asks for something."""
        self._question: Final = question
        self._as_said: Final = as_said
        self._trusted: Final = trusted
        self._evidence: Evidence | None = None
        self._grounds: CallGrounds | None = None
        self._missing: list[str] = []
        self._left_to_model: list[str] = []
        """What is missing as well, but what the model is to ask for by itself."""
        self._called = False
        self._insisted: list[ToolCallEnd] = []
        """Needless calls of a model that was asked for speech, with words that were said."""

    def judged(self, events: Sequence[Event]) -> list[Event]:
        """Return `events` without `ToolCallStart` and without the calls that are not to be made."""
        if self._question.must_call:
            return list(events)
        kept: list[Event] = []
        for event in events:
            if isinstance(event, ToolCallEnd):
                kept += self._made(event)
            elif not isinstance(event, ToolCallStart):
                kept.append(event)
        return kept

    def closing(self) -> list[Event]:
        """Return what is said in place of calls for which something is still to be known.

        The node asks the person for it: smaller models would say that it is done.
        """
        if not self._missing or self._called:
            return []
        return [_asking_for(self._missing)]

    def instead(self) -> list[Event]:
        """Return what is heard where a reply that was to be speech holds calls alone.

        A model that calls again for a place that nobody named has not asked for it, so it is asked
        for here. One that calls again with words that were said is believed: "kill the lights".
        """
        if missing := [*self._missing, *self._left_to_model]:
            return [_asking_for(missing)]
        if self._insisted:
            return [self._insisted[0]]
        return [TextDelta(sentence("no_tool_for_that"))]

    def _made(self, call: ToolCallEnd) -> list[Event]:
        tools = self._question.tools
        tool = next((one for one in tools.schemas if one["function"]["name"] == call.name), None)
        arguments = call.arguments
        if tool is not None:
            unsaid: tuple[str, ...] = ()
            if self._question.judges_calls:
                if name_writes(call.name) and self._grounds_of_question().surely_only_asks:
                    return self._without_unwanted(call)
                if (known := self._known_already(call)) is not None:
                    self.doubt = self.doubt or known
                    return []
                signs = CallSigns(tool, arguments, trusted=self._trusted)
                grounds = self._grounds_of_question()
                unsaid = grounds.unsaid(signs)
                # A model that calls well asks for a name better than a fixed sentence does.
                is_needless = grounds.is_needless(signs)
                if is_needless or (unsaid and self._trusted):
                    self.doubt = self.doubt or "needless"
                    if is_needless and not unsaid and grounds.has_words_of(signs):
                        self._insisted.append(call)
                    if not is_needless:
                        self._left_to_model += [_spoken_name(tool, name) for name in unsaid]
                    return []
                examples = tools.examples.get(call.name, ())
                copied = grounds.copied(signs, examples)
                invented = tuple(dict.fromkeys((*grounds.invented(signs), *copied)))
                # What need not be given is left out, and what is needed asked for.
                arguments = {k: v for k, v in arguments.items() if k not in invented}
                if invented := [name for name in invented if name in _required(tool)]:
                    if grounds.asks:
                        return self._without_unwanted(call)
                    self.doubt = "missing_argument"
                    self._missing += [_spoken_name(tool, name) for name in invented]
                    return []
            if self._as_said:
                if self._evidence is None:
                    self._evidence = Evidence(self._question.conversation)
                examples = tools.examples.get(call.name, ())
                said = self._evidence.judge(tool, arguments, examples)
                arguments = said.arguments
                unsaid = (*said.unsaid, *unsaid)
            for name in unsaid:
                # A model that takes a value out of its examples for "the second one" is told.
                about = _about(tool, name)
                if (text := meant_for(name, about, self._question.references)) is not None:
                    arguments = {**arguments, name: text}
                    unsaid = tuple(one for one in unsaid if one != name)
            if unsaid and not self._is_meant(tool, arguments, unsaid):
                return self._without_unwanted(call)
            if unsaid:
                self.doubt = "missing_argument"
                self._missing += [_spoken_name(tool, name) for name in dict.fromkeys(unsaid)]
                return []
        self._called = True
        return [ToolCallEnd(call.id, call.name, arguments)]

    def _without_unwanted(self, call: ToolCallEnd) -> list[Event]:
        self.doubt = self.doubt or "unwanted"
        self.unwanted.add(call.name)
        return []

    def _is_meant(
        self, tool: ToolSchema, arguments: Mapping[str, Any], unsaid: Sequence[str]
    ) -> bool:
        signs = CallSigns(tool, arguments, trusted=self._trusted)
        return not self._question.judges_calls or self._grounds_of_question().is_meant(
            signs, unsaid
        )

    def _known_already(self, call: ToolCallEnd) -> Literal["needless", "repeated"] | None:
        """Return why a call of a small model finds out nothing that an earlier result has not told.

        It is needless where a question about a thing asks for what stands in the thing's record,
        unless its words speak of the tool. It is repeated where it lists once more what the person
        has chosen from.
        """
        references = self._question.references
        if self._trusted or not self._question.turn.is_new:
            return None
        for each in references if len(references) == 1 else ():
            if each.facts and not is_told(each.facts, call.arguments):
                return "needless" if self._fit_of(call.name) < FIT else None
        for each in references if self._as_said else ():
            if each.tool == call.name and each.listed_by is not None:
                return "repeated" if is_same_lookup(call.arguments, each.listed_by) else None
        return None

    def _grounds_of_question(self) -> CallGrounds:
        if self._grounds is None:
            items, language = self._question.conversation, _language_of(self._question.tools)
            self._grounds = CallGrounds(items, language, TIMES, NUMBERS, self._fit_of)
        return self._grounds

    def _fit_of(self, name: str) -> float:
        return unique_words(fits(self._question).get(name, 0.0), len(self._question.tools.schemas))


@lru_cache(TABLES_MAX)
def _language_of(tools: PromptTools) -> str:
    return language_of_tools(tools.schemas)


def _asking_for(missing: Sequence[str]) -> TextDelta:
    missing = list(dict.fromkeys(missing))
    key = "still_needed_answer" if all(map(is_question, missing)) else "still_needed"
    return TextDelta(sentence(key).replace("{what}", ", ".join(missing)))


def _required(tool: ToolSchema) -> Sequence[str]:
    parameters: Mapping[str, Any] = tool["function"].get("parameters") or {}
    return parameters.get("required") or ()


def _about(tool: ToolSchema, name: str) -> Mapping[str, Any]:
    """Return a parameter's schema."""
    schema: Any = tool["function"]["parameters"]["properties"].get(name)
    return cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}


def _spoken_name(tool: ToolSchema, name: str) -> str:
    properties: Mapping[str, Any] = tool["function"]["parameters"].get("properties") or {}
    schema: Mapping[str, Any] = properties.get(name) or {}
    about = str(schema.get("description") or "")
    return about if 0 < len(about) <= SPOKEN_CHARS else name.replace("_", " ")
