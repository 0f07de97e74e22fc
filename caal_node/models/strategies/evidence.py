"""Whether a call's arguments were said by anybody. The rules hold for any model.

Small models fill in what nobody said: a unit, a date, the city of an example. So an optional
argument without evidence is dropped, and an enum's value that was said word for word is taken. A
call whose required number was never said, or whose words were copied from an example, is not made:
the person is asked instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from caal_node.core.items import AssistantItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.core.turn import Turn
from caal_node.models.strategies.word_lists import (
    ARTICLES,
    COMMON,
    MEASURES,
    NUMBERS,
    STEM_CHARS,
    TIMES,
    stems,
    words,
)

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
