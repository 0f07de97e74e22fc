"""Whether a call stands on anything that was said: whether its tool was meant, and its names given.

Two things are found in a call of a turn's first reply. It is needless where the person's words ask
for a plain answer, or for something that the tool does not do. A name is unsaid where a place or a
person that the tool needs stands nowhere in the conversation.

Missing words alone say nothing: people use synonyms, answer with one word, and speak other
languages than a tool's author. So a call is judged only where the person speaks the language in
which the tools are described, means nothing that was said before, and shares hardly a word with
the tool. A model that calls well is believed further than a small one, see `CallSigns.trusted`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final, cast

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, Turn
from caal_node.core.tool_spec import Example, ToolSchema, name_reads
from caal_node.grounding.fact_check import StatedNames
from caal_node.grounding.quantities import Stated, stated_in
from caal_node.grounding.request_words import (
    ARTICLES,
    REQUEST_CHARS,
    answers_anything,
    is_placeholder,
    language_of,
    names_nobody,
    names_something,
    on_topic,
    plain_words,
    points_elsewhere,
    unlike_verb,
)
from caal_node.grounding.spoken_numbers import UNITS, WORDS, numbers
from caal_node.grounding.spoken_numbers import numbers as numbers_in
from caal_node.grounding.spoken_times import Day, Time, hours_of
from caal_node.language.requests import intent_of, plain_answer, surely_only_asks
from caal_node.policy.heard_words import COMMON, REFERENCES, stem, stems, words

# Whether a text that a tool would write down states what nobody has said: a date, a time, a figure
# or a name.
#
# What is written is there to be believed later: a note of "Anna's birthday is on March 15th" where
# only her birthday was spoken of. Only what cannot have been derived is held against a text. A date
# can follow from any word of time ("tomorrow", "in two weeks"), and a figure from any other figure
# (a sum, another unit), so that where there is one, it is not judged.

RESULT_CHARS: Final = 16_384
"""Characters of a conversation in which something is looked for, within 15 ms. In a longer one
everything is taken for known."""
_NOTE_WORDS: Final = range(3, 13)
"""Words of an argument that is a short text for a person to read. Fewer are a name, a code or a
unit; more are a letter, with capital letters of its own."""
_FIGURE: Final = re.compile(r"\d+")
_MOMENT: Final = re.compile(r"\d[:./-]\d|\d{4}-\d\d")
_TURNS: Final = 16
"""Things said or found, the newest, in which times without any word for one are looked for."""
_LEAST_UNIT: Final = 3
"""Letters of a unit of time that is no ending of another word."""
_TIME_WORDS: Final = frozenset(
    word
    for word, unit in UNITS.items()
    if unit.dimension == "duration" and len(word) >= _LEAST_UNIT
) | {name for full in (*WORDS["months"], *WORDS["weekdays"]) for name in (full, full[:3])}
_NAME_LETTERS: Final = 3


class WrittenFacts:
    """The facts of a conversation that a text may state.

    Args:
        items: The conversation, oldest first. Instructions may be repeated, but nothing follows
            from them: they often have the date.
        also: Other text that may be repeated, such as the tool's schema.
        times: Lower-case words for times.
        counts: The same for times and numbers.
        is_like: Says whether a name may be another spelling of one that was said.
        language: The key of the person's language, in which alone names are judged; "" for none.
    """

    def __init__(
        self,
        items: Sequence[Item],
        also: str,
        times: frozenset[str],
        counts: frozenset[str],
        is_like: Callable[[str], bool],
        language: str,
    ) -> None:
        spoken = [text_of(item) for item in items if not isinstance(item, SystemItem)]
        every = [*map(text_of, items), also]
        self._is_long: Final = sum(map(len, every)) > RESULT_CHARS
        self._is_like: Final = is_like
        self._language: Final = language
        if self._is_long:
            return
        said = "\n".join(spoken).casefold()
        known = "\n".join(every)
        found = [each for each in numbers(said) if not each.is_bare_one]
        spelt = frozenset(words(said))
        self._has_moment: Final = (
            _MOMENT.search(said) is not None
            or not ((times | _TIME_WORDS) - ARTICLES).isdisjoint(spelt)
            or any(stated_in(text[:REQUEST_CHARS]).times for text in spoken[-_TURNS:])
        )
        self._has_number: Final = (
            self._has_moment
            or bool(found)
            or _FIGURE.search(said) is not None
            or not (counts - ARTICLES).isdisjoint(spelt)
        )
        self._figures: Final = {int(one[:15]) for one in _FIGURE.findall(known)} | {
            int(each.value) for each in found
        }
        self._stems: Final = stems(known)

    def has_unsaid(self, text: str) -> bool:
        """Return whether `text` states what can have come from nowhere."""
        if self._is_long or len(text) > RESULT_CHARS:
            return False
        stated = stated_in(text)
        if not self._has_moment and self._unsaid_moment(stated):
            return True
        if len(plain_words(text)) < _NOTE_WORDS.start:
            return False
        figures = {int(one[:15]) for one in _FIGURE.findall(text)}
        if figures and not self._has_number and figures.isdisjoint(self._figures):
            return True
        return self._unsaid_name(text)

    def _unsaid_moment(self, stated: Stated) -> bool:
        return any(not self._knows_day(day) for day in stated.days) or any(
            time.is_sure and self._figures.isdisjoint(_written(time)) for time in stated.times
        )

    def _knows_day(self, day: Day) -> bool:
        if day.day:
            return day.day in self._figures
        return day.weekday is None or WORDS["weekdays"][day.weekday] in self._stems

    def _unsaid_name(self, text: str) -> bool:
        if not self._language or len(plain_words(text)) not in _NOTE_WORDS:
            return False
        if language_of([text]) not in ("", self._language):
            return False
        return any(
            len(name := text[begin:end]) >= _NAME_LETTERS
            and name.isalpha()
            # Behind another capital or a comma it may complete what was said: "Oslo, Norway".
            and (before := text[:begin].split()[-1:])
            and before[0].isalpha()
            and before[0].islower()
            and before[0] not in ARTICLES  # "Ask the Doctor" names nobody.
            and not self._is_like(name)
            for begin, end in StatedNames(self._stems).unknown_in(text)
        )


def _written(time: Time) -> frozenset[int]:
    """Return the numbers by which the hour of a time is told: 7, 19 and 730 of half past seven."""
    hour, minute = divmod(time.minute, 60)
    hours = hours_of(hour)
    return frozenset(hours | {each * 100 + minute for each in hours})


def text_of(item: Item) -> str:
    """Return the words of an item: what was said, a call's arguments, or a result."""
    if isinstance(item, CallItem):
        return item.arguments
    return item.output if isinstance(item, ResultItem) else item.text


FIT: Final = 1.2
"""Shared words from which a tool is believed to be meant, see `unique_words`: one word that only
this tool has may mean anything, and a second one hardly does."""
ONE_WORD: Final = 0.9
"""Shared words below which not even one that only this tool has was said: in "call a cab", the cab
is what only the taxi's examples speak of."""
NO_WORD: Final = 0.3
"""Shared words below which only one was said that most tools have."""
SIMILAR: Final = 0.65
"""Likeness (0 to 1) from which two spellings are one name: Mum and Mom have 0.67."""
NEARLY_SAME: Final = 0.85
"""Likeness from which a value is an example's: "Chaz Nous" and "Chez Nous" have 0.89."""
NAME_CHARS: Final = 80
"""Characters of a value that may be an example's with a letter misread."""
_CLOCK: Final = re.compile(r"(\d{1,2}):\d\d")
_NO_WORDS: Final = re.compile(r"(?<![\w\"])(?:true|false|null)(?![\w\"])")
_LETTERS_MIN: Final = 4
_FIGURES: Final = frozenset({"number", "integer"})
KNOWN_CHARS: Final = 32_768
"""Characters of a conversation in which a name is looked for, within a few milliseconds. In a
longer one each is taken for known."""
TEXTS_MAX: Final = 16
"""Texts of one argument that are judged."""


@dataclass(frozen=True, slots=True)
class CallSigns:
    """What is known of one call beside the conversation."""

    tool: ToolSchema
    arguments: Mapping[str, Any]
    trusted: bool
    """Whether the model is one that calls well: it is not small, and the call came as one."""


def unique_words(score: float, tools: int) -> float:
    """Return a BM25 score as a number of words that only one of `tools` has.

    A word's weight grows with the number of tools, so that no bound would hold for two tables.
    """
    return score / math.log(1 + (tools - 0.5) / 1.5) if tools > 0 else 0.0


class CallGrounds:
    """The conversation of one question, as far as a call may stand on it.

    Args:
        items: The conversation, oldest first.
        language: That of the tools' descriptions, see `language_of_tools`.
        times: Lower-case words for times, which are no places.
        numbers: The same for numbers.
        fit_of: Tells how many words the request shares with the tool of a name, in `unique_words`.
            It is asked only where it matters, since to rate a large table takes milliseconds.
    """

    def __init__(
        self,
        items: Sequence[Item],
        language: str,
        times: frozenset[str],
        numbers: frozenset[str],
        fit_of: Callable[[str], float],
    ) -> None:
        turn = Turn(items)
        self._request: Final = turn.request if turn.is_new else ""
        self._language: Final = language
        spoken = language_of([self._request])
        self._is_known: Final = (
            bool(self._request.strip() and self._language)
            and spoken in ("", self._language)
            and not _answers(items)
        )
        self._refers: Final = self._request != "" and _refers(turn)
        self._judged: Final = self._is_known and not self._refers
        self._same_language: Final = spoken == self._language
        self._times: Final = times | numbers
        self._moments: Final = times
        self._fit_of: Final = fit_of
        self._items: Final = items
        self._known: frozenset[str] | None = None

    def is_needless(self, call: CallSigns) -> bool:
        """Return whether the person's words ask for something else than this call."""
        if not self._judged:
            if call.trusted or not self._is_known:
                return False
            asks_elsewhere = self.asks and self._stands_on_nothing(call)
            return asks_elsewhere or self._does_otherwise(call)
        why, own = plain_answer(self._request), _words_of(call.tool)
        if not why and (call.trusted or not unlike_verb(self._request, own, self._language)):
            return not call.trusted and self._stands_on_nothing(call)
        if on_topic(self._request, own, self._language):
            return False
        if answers_anything(own, self._language):
            return why == "talk" and not call.trusted
        fit = self._fit_of(call.tool["function"]["name"])
        if call.trusted:
            # A call without any value may mean what the words only hint at: "who is at home".
            values = _stems_of(call.arguments)
            unsaid = bool(values) and values.isdisjoint(stems(self._request))
            return why in ("knowledge", "talk") and fit == 0 and unsaid
        if why == "statement":
            amount = any(word.isdecimal() for word in stems(self._request))
            return fit < ONE_WORD and not amount
        return fit < (FIT if why else ONE_WORD)

    def unsaid(self, call: CallSigns) -> tuple[str, ...]:
        """Return the required parameters whose place or person nobody has named."""
        if not self._is_known or not self._same_language:
            return ()
        schema: Mapping[str, Any] = call.tool["function"].get("parameters") or {}
        required: Sequence[str] = schema.get("required") or ()
        named = {
            name: value
            for name in required
            if isinstance(value := call.arguments.get(name), str)
            and names_something(name, self._language)
            and "enum" not in _mapping(_mapping(schema.get("properties")).get(name))
        }
        if nobody := tuple(n for n, v in named.items() if names_nobody(v, self._language)):
            return nobody
        if not self._judged or points_elsewhere(self._request, self._language, self._times):
            return ()
        return tuple(name for name, value in named.items() if self._is_unsaid(value, call))

    def has_words_of(self, call: CallSigns) -> bool:
        """Return whether the request has a word of the tool and one of the arguments, if any, or an
        amount for a tool that takes one."""
        said = stems(self._request) - COMMON
        schema = _mapping(_mapping(call.tool["function"].get("parameters")).get("properties"))
        takes_figure = any(
            _mapping(schema.get(name)).get("type") in _FIGURES for name in call.arguments
        )
        if takes_figure and numbers_in(self._request.lower()):
            return True
        values = _stems_of(call.arguments)
        on_values = not values or not values.isdisjoint(said)
        return on_values and not said.isdisjoint(_words_of(call.tool))

    @property
    def asks(self) -> bool:
        """Whether the person's words most likely want something told."""
        return intent_of(self._request) == "tell"

    @property
    def surely_only_asks(self) -> bool:
        """Whether they surely want nothing changed. Words that answer a question, or may mean what
        was said before ("what about seven?"), may want anything."""
        return self._judged and surely_only_asks(self._request)

    def invented(self, call: CallSigns) -> tuple[str, ...]:
        """Return the parameters of a call that writes whose text states what nobody has said."""
        if name_reads(call.tool["function"]["name"]):
            return ()
        schema = _mapping(_mapping(call.tool["function"].get("parameters")).get("properties"))
        facts: WrittenFacts | None = None
        found: list[str] = []
        for name, value in call.arguments.items():
            about = _mapping(schema.get(name))
            if "enum" in about or value == about.get("default"):
                continue
            if texts := [text for text in _as_list(value) if _may_state(text)]:
                facts = facts or self._facts(call)
                found += [name] * any(map(facts.has_unsaid, texts))
        return tuple(found)

    def copied(self, call: CallSigns, examples: Sequence[Example]) -> tuple[str, ...]:
        """Return the parameters whose values a small model has out of an example of the tool.

        They are two at least of one example, of which nothing was said, and a name or a time is
        among them: one alone may be a sensible guess, such as half the brightness.
        """
        conversation = None if call.trusted else self._conversation()
        if conversation is None:
            return ()
        figures = {number.value for number in numbers_in(self._request.lower())}
        tells_time = bool(stated_in(self._request[:REQUEST_CHARS]).times)
        for example in examples:
            found = [
                name
                for name, value in call.arguments.items()
                if _is_same_value(value, example.arguments.get(name))
                and _stems_of({name: value}).isdisjoint(conversation)
                and not (isinstance(value, int | float) and value in figures)
                and not _is_time_of(value, figures, tells_time)
            ]
            if len(found) > 1 and any(_may_state(call.arguments[name]) for name in found):
                return tuple(found)
        return ()

    def _facts(self, call: CallSigns) -> WrittenFacts:
        return WrittenFacts(
            self._items,
            json.dumps(call.tool["function"], ensure_ascii=False),
            self._moments,
            self._times,
            lambda name: _is_like(name, self._request),
            self._language if self._same_language else "",
        )

    def is_meant(self, call: CallSigns, unsaid: Sequence[str]) -> bool:
        """Return whether a call that lacks the `unsaid` arguments is worth a question for them.

        A question that asks for a figure gives none to a tool: "what's the temperature in Gdansk"
        sets no heating, whatever words they share. What shares none is needless already.
        """
        schema = _mapping(_mapping(call.tool["function"].get("parameters")).get("properties"))
        lacks_figure = any(_mapping(schema.get(n)).get("type") in _FIGURES for n in unsaid)
        return not (self._judged and lacks_figure and self.asks)

    def _is_unsaid(self, value: str, call: CallSigns) -> bool:
        named = set(plain_words(value)) - self._times
        if not call.trusted and (not named or is_placeholder(value, self._language)):
            return True
        if not any(word[:1].isupper() and word[1:2].islower() for word in value.split()):
            return False  # A code such as EUR, or the model's own word for what was said.
        if call.trusted and self._names_within():
            return False  # It may stand for what was named.
        conversation = self._conversation()
        if conversation is None:
            return False
        known = conversation | stems(json.dumps(call.tool["function"], ensure_ascii=False))
        found = frozenset(map(stem, words(value)))
        return found.isdisjoint(known) and not _is_like(value, self._request)

    def _stands_on_nothing(self, call: CallSigns) -> bool:
        """Return whether neither the tool nor any of its arguments has a word of the request.

        A place that is missing is asked for instead.
        """
        conversation = self._conversation()
        values = _stems_of(call.arguments)
        if not self._same_language or not values or conversation is None:
            return False
        if not values.isdisjoint(conversation):
            return False
        has_amount = any(char.isdecimal() for char in str([*call.arguments.values()]))
        if has_amount and not self._times.isdisjoint(plain_words(self._request)):
            return False
        return self._fit_of(call.tool["function"]["name"]) < NO_WORD and not self.unsaid(call)

    def _does_otherwise(self, call: CallSigns) -> bool:
        """Return whether words that mean something said before ("order them") begin with something
        to do that the tool does not."""
        own = _words_of(call.tool)
        if not unlike_verb(self._request, own, self._language):
            return False
        fit = self._fit_of(call.tool["function"]["name"])
        return fit < ONE_WORD and not answers_anything(own, self._language)

    def _names_within(self) -> bool:
        """Return whether a word inside of the request is written as a name is."""
        inside = [word for word in self._request.split()[1:] if word not in _PRONOUNS]
        return any(
            word[:1].isupper() and self._times.isdisjoint(plain_words(word)) for word in inside
        )

    def _conversation(self) -> frozenset[str] | None:
        """Return the stems of all words of the conversation; None where there are too many."""
        if self._known is None:
            texts = list(map(text_of, self._items))
            if sum(map(len, texts)) > KNOWN_CHARS:
                return None
            self._known = frozenset[str]().union(*map(stems, texts))
        return self._known


def _stems_of(arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the stems of the words and numbers in a call's values; true and false are neither."""
    values = json.dumps([*arguments.values()], ensure_ascii=False, default=str)
    return stems(_NO_WORDS.sub(" ", values)) - COMMON


def _answers(items: Sequence[Item]) -> bool:
    """Return whether the newest words may answer what the agent has just asked."""
    spoken = [item.text for item in items[:-1] if isinstance(item, AssistantItem)]
    return bool(spoken) and spoken[-1].rstrip().endswith(("?", "？"))


def _refers(turn: Turn[Item]) -> bool:
    """Return whether the newest words may mean what was said before them."""
    earlier = next(turn.earlier_words(), None)
    return earlier is not None and not stems(turn.request).isdisjoint(REFERENCES)


def language_of_tools(tools: Sequence[ToolSchema]) -> str:
    """Return the language in which `tools` are described; "" where that cannot be told."""
    return language_of(_described(tool) for tool in tools)


def _described(tool: ToolSchema) -> str:
    function = tool["function"]
    properties = _mapping(_mapping(function.get("parameters")).get("properties"))
    told = (str(_mapping(schema).get("description") or "") for schema in properties.values())
    return " ".join([str(function.get("description") or ""), *told])


def _words_of(tool: ToolSchema) -> frozenset[str]:
    """Return the words that a tool's author wrote about it, and their stems."""
    own = words(f"{tool['function']['name']} {_described(tool)}")
    return frozenset(own) | frozenset(map(stem, own))


_PRONOUNS: Final = frozenset({"I", "I'm", "I'd", "I'll", "I've", "I’m", "I’d", "I’ll", "I’ve"})


def _is_like(value: str, request: str) -> bool:
    own = plain_words(value)
    least = _LETTERS_MIN if len(own) > 1 else 1  # "New York" is not named by "now".
    return any(
        SequenceMatcher(None, one, word).ratio() >= SIMILAR
        for one in own
        for word in plain_words(request)
        if abs(len(one) - len(word)) <= 2 and len(one) >= least
    )


def _is_same_value(value: object, shown: object) -> bool:
    """Return whether a value is an example's, perhaps with a letter that was misread."""
    if not isinstance(value, str) or not isinstance(shown, str):
        return not isinstance(value, bool) and value == shown
    if max(len(value), len(shown)) > NAME_CHARS:  # to compare two pages would hold the loop
        return value == shown
    return SequenceMatcher(None, value.casefold(), shown.casefold()).ratio() >= NEARLY_SAME


def _is_time_of(value: object, figures: set[float], tells_time: bool) -> bool:
    """Return whether a value is a time of day, and one was said, or its hour."""
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    return found is not None and (tells_time or not figures.isdisjoint(hours_of(int(found[1]))))


def _may_state(value: object) -> bool:
    """Return whether a value is a text that has a figure, or a capital letter as a name has it."""
    return isinstance(value, str) and any(one.isdigit() or one.isupper() for one in value)


def _as_list(value: object) -> Sequence[Any]:
    return cast("list[Any]", value)[:TEXTS_MAX] if isinstance(value, list) else (value,)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
