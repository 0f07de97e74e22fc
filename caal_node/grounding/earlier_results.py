"""What earlier calls gave: lists of things and single records, in the order they were read out."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, Final, TypeAlias, cast

from caal_node.context.one_line_json import JsonTexts, noted_items
from caal_node.context.tool_data import ToolData
from caal_node.context.window import DATA_ID, SHORTENED
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem
from caal_node.core.prompt_files import read

# The words of `prompts/references.toml`, and how a request and a field's name become words.

REQUEST_CHARS: Final = 400
"""Characters of a request that are read for references: half a minute of speech. Whoever dictates
more than that refers to nothing by it."""
_TOKEN: Final = re.compile(r"\d+(?:[:.]\d+)+|[^\W_]+(?:['’][^\W_]+)*|[.,;:!?]")
_NAME_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FILE: Final[dict[str, Any]] = tomllib.loads(read("references.toml"))


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a request, or one mark of punctuation."""

    word: str
    """In lower case, with a plain apostrophe."""
    start: int
    end: int
    """Where it stands in the request, in characters."""
    capital: bool = False

    @property
    def is_mark(self) -> bool:
        return not self.word[0].isalnum()


@dataclass(frozen=True, slots=True)
class Rank:
    """One end of a scale: "the cheapest"."""

    most: frozenset[str]
    more: frozenset[str]
    with_most: frozenset[str]
    with_least: frozenset[str]
    fields: frozenset[str]
    highest: bool


@dataclass(frozen=True, slots=True)
class AskedFields:
    """What a question asks for: "where" for a place."""

    said: tuple[str, ...]
    """Words of the request, or several that follow each other."""
    fields: frozenset[str]
    """Words of the names of such fields."""


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Words of the names of fields, by what such a field holds, the likeliest word first."""

    labels: tuple[str, ...]
    ids: tuple[str, ...]
    places: tuple[str, ...]
    journey_to: tuple[str, ...]
    journey_from: tuple[str, ...]
    days: tuple[str, ...]
    people: tuple[str, ...]
    personal: tuple[str, ...]
    teams: tuple[str, ...]
    outcomes: tuple[str, ...]
    things: tuple[str, ...]
    no_nouns: tuple[str, ...]
    alike: tuple[str, ...]
    no_thing: tuple[str, ...]


class ReferenceWords(dict[str, frozenset[str]]):
    """The words of one language: each list of the file by its name, `words["articles"]`."""

    def __init__(self, table: dict[str, Any]) -> None:
        super().__init__(
            {name: frozenset[str](value) for name, value in table.items() if _is_words(value)}
        )
        self.ordinals: Final[dict[str, int]] = table["ordinals"]
        self.cardinals: Final[dict[str, int]] = table["cardinals"]
        self.ranks: Final = tuple(
            Rank(
                *(frozenset[str](rank.get(key, ())) for key in _RANK_KEYS),
                highest=bool(rank["highest"]),
            )
            for rank in table["ranks"]
        )
        self.asked: Final = tuple(
            AskedFields(tuple(row["said"]), frozenset(row["fields"]))
            for row in table.get("asked", ())
        )
        self.triggers: Final = frozenset[str]().union(
            *(self[name] for name in _TRIGGERS),
            self.ordinals,
            *(rank.most | rank.more for rank in self.ranks),
        )
        """A request without any of these refers to nothing."""


_RANK_KEYS: Final = ("most", "more", "with_most", "with_least", "fields")
_TRIGGERS: Final = (
    *("ones", "several", "numberings", "last", "middle", "most", "least", "there", "day_pointers"),
    *("it", "them", "they", "he", "him", "pair"),
)
_NAMES: Final[dict[str, list[str]]] = _FILE["fields"]
FIELDS: Final = FieldNames(**{name: tuple(value) for name, value in _NAMES.items()})


@cache
def languages() -> tuple[ReferenceWords, ...]:
    """Return the words of every language that the file has."""
    return tuple(ReferenceWords(table) for name, table in _FILE.items() if name != "fields")


def tokens(request: str) -> tuple[Token, ...]:
    """Return the words and marks of the first `REQUEST_CHARS` characters of a request."""
    return tuple(
        Token(m[0].casefold().replace("’", "'"), m.start(), m.end(), m[0][0].isupper())
        for m in _TOKEN.finditer(request[:REQUEST_CHARS])
    )


@lru_cache(1024)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a name or a text: `priceEur` and `price_eur` are two each."""
    return tuple(word.casefold() for word in _NAME_WORD.findall(_HUMP.sub(" ", name)))


def singular(word: str) -> str:
    """Return an English noun's singular, near enough that two forms of one word are equal."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in cast("list[Any]", value))


# What is known already: "when does the first one arrive" asks for its `arrives`, which an earlier
# result has, so that no call is needed for it.

FACTS_MAX: Final = 2
"""Facts that a question is told. Where more fit, it asks for something else."""
VALUE_CHARS: Final = 60
"""Characters of one fact. A longer text is read in the result itself."""
KEY_CHARS: Final = 40
"""Characters of a field's name, as a tool has it. A longer one is no name."""
FIELDS_MAX: Final = 64
"""Fields of a record that are looked at, the first ones."""
_FACT_WORD_CHARS: Final = 4
"""Letters of a word that names a field; shorter ones, such as "on" and "id", do by chance."""


def asked_facts(
    said: Sequence[Token], words: ReferenceWords, thing: Thing
) -> tuple[tuple[str, str], ...]:
    """Return what a question asks of `thing`, as names of fields with their values.

    Args:
        said: The words of the request without those that refer to the thing.
        words: Those of its language.
        thing: What it is about; a text has no fields.

    Returns:
        None where the request is no question, asks nothing that is there, or asks for more than
        `FACTS_MAX` fields. A field that the question names goes before what its first word asks.
    """
    if isinstance(thing, str) or not said or said[0].word not in words["questions"]:
        return ()
    told = [token.word for token in said]
    line = f" {' '.join(told)} "
    named = {singular(word) for word in told if len(word) >= _FACT_WORD_CHARS}
    fields = list(itertools.islice(thing, FIELDS_MAX))
    keys = [key for key in fields if not named.isdisjoint(map(singular, name_words(key)))]
    for asked in words.asked if not keys else ():
        if any(f" {each} " in line for each in asked.said):
            keys = [key for key in fields if not asked.fields.isdisjoint(name_words(key))]
        if keys:
            break
    facts = tuple((key, text) for key in keys if (text := _text(thing, key)))
    return facts if len(facts) == len(keys) <= FACTS_MAX else ()


def _text(thing: Mapping[str, Any], key: str) -> str:
    """Return a field's value in a few words; "" where it or its name has more."""
    value = thing[key]
    if len(key) > KEY_CHARS or not key.isprintable():
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
    return text if len(text) <= VALUE_CHARS else ""


def is_told(facts: Sequence[tuple[str, str]], arguments: Mapping[str, Any]) -> bool:
    """Return whether a call goes on with a figure: it converts the price that was asked for."""
    values = {str(value).casefold() for value in arguments.values()}
    return any(text.casefold() in values for _, text in facts if text[:1].isdecimal())


def is_same_lookup(arguments: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a call asks for nothing that an earlier call of its tool has not asked for."""
    return all(
        key in earlier and str(earlier[key]).casefold() == str(value).casefold()
        for key, value in arguments.items()
    )


# In which order the things of a list are counted: as they were read out, where they were.
#
# The model that read a list out may have left some out and begun with another one. What it said is
# compared with the things' names, word by word.

_NAME_CHARS: Final = 120
"""Characters of a value that can be recognised in what was read out."""
_WORD_CHARS: Final = 3
"""Characters of a word that tells one name from another."""
_SPOKEN_CHARS: Final = 2_000
"""Characters of an answer in which the things of a list are looked for."""


def mentioned(result: EarlierResult, spoken: str) -> list[Thing]:
    """Return the things of a list that `spoken` names, in the order in which it does.

    A name is recognised by half of its words, those left out that other things' names have too:
    "the ferry strike has ended" names "Ferry strike ends".
    """
    heard = _spoken_words(spoken[:_SPOKEN_CHARS])
    places = {word: at for at, word in reversed(list(enumerate(heard)))}
    names = [[_spoken_words(value) for value in _named_by(thing)] for thing in result.things]
    common = Counter(word for own in names for word in {one for name in own for one in name})
    found: list[tuple[int, int]] = []
    for at, own in enumerate(names):
        telling = [[word for word in name if common[word] == 1] for name in own]
        said = [[places[word] for word in name if word in places] for name in telling]
        first = [
            min(here)
            for name, here in zip(telling, said, strict=True)
            if here and len(here) >= len(name) / 2
        ]
        if first:
            found.append((min(first), at))
    return [result.things[at] for _, at in sorted(found)]


def _named_by(thing: Thing) -> Iterable[str]:
    values = (thing,) if isinstance(thing, str) else thing.values()
    return (value for value in values if isinstance(value, str) and _is_name(value))


def _is_name(value: str) -> bool:
    return len(value) <= _NAME_CHARS and any(map(str.isalpha, value)) and not is_time(value)


def _spoken_words(text: str) -> list[str]:
    """Return the words of a text in the singular, but for the short ones, which tell little."""
    return [singular(word) for word in name_words(text) if len(word) >= _WORD_CHARS]


def as_read_out(result: EarlierResult) -> list[Thing]:
    """Return the things in the order in which they are counted; none where it is open."""
    told = mentioned(result, result.answer)
    if not told:
        return list(result.things)
    if len(told) == 1:  # "The best is Roma": the list may be counted or not
        return list(result.things) if told[0] == result.things[0] else []
    return told


def is_end_known(result: EarlierResult) -> bool:
    """Whether it is clear which thing is the last one."""
    told = len(mentioned(result, result.answer))
    return result.is_whole and told in (0, len(result.things))


def thing_at(result: EarlierResult, index: int) -> Thing | None:
    """Return the thing at a place, counted from 0, or from the end below it; None where there is
    none, or where it is open which one that is."""
    ordered = as_read_out(result)
    if index < 0 and not is_end_known(result):
        return None
    inside = -len(ordered) <= index < len(ordered)
    return ordered[index] if inside else None


def only_mentioned(result: EarlierResult, spoken: str) -> Thing | None:
    """Return the thing of a list that `spoken` names, by its whole name, if it names no other."""
    told = mentioned(result, spoken)
    if len(told) != 1:
        return None
    name = frozenset(_spoken_words(label_of(told[0])))
    heard = _spoken_words(spoken[:_SPOKEN_CHARS])
    return told[0] if name and name.issubset(heard) else None


TURNS_BACK: Final = 6
"""Turns that a person refers back over. What was read out before that is not said by "the second
one" any more."""
RESULTS_MAX: Final = 12
"""Results that are looked at, the newest first."""
THINGS_MAX: Final = 50
"""Things of one list that are looked at. Nobody says "the fifty-first one"."""
_DEPTH_MAX: Final = 3
"""Objects in which a list may lie: `{"data": {"results": [...]}}`."""
_NOUN_CHARS: Final = 3
"""Characters of a noun; what is shorter is a word such as "on", which an argument may be."""
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ][\d:.]++\S*+)?|\d{1,2}:\d{2}(?::\d{2})?")
"""A date, a time, or both, and nothing else."""

Thing: TypeAlias = str | Mapping[str, Any]
"""A thing of a list: a text, or a record."""


@dataclass(frozen=True)
class EarlierResult:
    """What one call gave."""

    tool: str
    arguments: Mapping[str, Any] = field(repr=False)
    value: Any = field(repr=False)
    """The result as JSON; text that is none stays text."""
    turns_ago: int
    """1 for the turn before the person's newest words."""
    answer: str = field(default="", repr=False)
    """What was said in that turn after it."""

    @cached_property
    def things(self) -> tuple[Thing, ...]:
        """The things of the list that the result is; none where it is no list, or several."""
        return tuple(self._listed[1][:THINGS_MAX])

    @cached_property
    def is_whole(self) -> bool:
        """Whether all things of the list are known: it was not shortened."""
        return not self._listed[2]

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """The one record that the result is; empty where it is none."""
        if len(self.things) == 1 and isinstance(self.things[0], Mapping):
            return self.things[0]
        return _record(self.value) if not self.things else {}

    @cached_property
    def nouns(self) -> frozenset[str]:
        """What a thing of the list may be called, in the singular."""
        found = [*name_words(self._listed[0]), *name_words(self.tool)]
        for value in self.arguments.values():
            found += name_words(value) if isinstance(value, str) else ()
        for thing in self.things:
            if isinstance(thing, Mapping) and (key := label_key(thing)):
                found += name_words(key)
        nouns = {singular(word) for word in found if len(word) >= _NOUN_CHARS}
        return frozenset(nouns.difference(FIELDS.no_nouns))

    @cached_property
    def _listed(self) -> tuple[str, list[Thing], bool]:
        name, values = _list_of(self.value, 0)
        shortened = bool(values) and noted_items(values) is not None
        things = [one for one in (values[:-1] if shortened else values) if _is_thing(one)]
        return name, cast("list[Thing]", things), shortened or len(things) > THINGS_MAX


def earlier_results(
    items: Sequence[Item], kept: Iterable[ToolData] = ()
) -> tuple[EarlierResult, ...]:
    """Return what the calls in front of the person's newest words gave, the newest first.

    `kept` is the tool data of the conversation: what the window has dropped or shortened is read
    from it. Calls that failed, and those that were only played through, gave nothing. What a call
    has brought twice is there once.
    """
    texts = JsonTexts()
    found: list[EarlierResult] = []
    data = {entry.call_id: entry for entry in kept}
    seen: set[tuple[str, str, str]] = set()
    calls = {item.call_id: item for item in items if isinstance(item, CallItem)}
    turns_ago, answer = 0, ""
    for item in reversed(items):
        if isinstance(item, UserItem) and not item.id.startswith(DATA_ID):
            turns_ago, answer = turns_ago + 1, ""
        elif isinstance(item, AssistantItem):
            answer = f"{item.text} {answer}".strip()
        elif isinstance(item, ResultItem) and turns_ago and not item.is_error:
            call = calls.get(item.call_id)
            entry = data.get(item.call_id) if item.output.startswith(SHORTENED) else None
            output = item.output if entry is None else entry.line
            value = texts.read(output)
            same = (item.name, call.arguments if call else "", output)
            is_dry = isinstance(value, dict) and value.get("dry_run") is True
            if same not in seen and not is_dry:
                seen.add(same)
                arguments = _members(texts.read(call.arguments) if call else None)
                found.append(EarlierResult(item.name, arguments, value, turns_ago, answer))
        if turns_ago > TURNS_BACK or len(found) == RESULTS_MAX:
            return tuple(found)
    for entry in reversed([entry for entry in data.values() if entry.call_id not in calls]):
        if len(found) == RESULTS_MAX:
            break
        arguments = _members(texts.read(entry.arguments))
        found.append(EarlierResult(entry.tool, arguments, texts.read(entry.line), turns_ago + 1))
    return tuple(found)


def label_key(record: Mapping[str, Any]) -> str:
    """Return the key under which a record has its name; "" where it has none.

    That is a key such as "name" or "title", else the first whose value is a text and no time.
    """
    for label in FIELDS.labels:
        if isinstance(record.get(label), str):
            return label
    for key, value in record.items():
        is_name = not {*FIELDS.ids, *FIELDS.outcomes}.intersection(name_words(key))
        if is_name and isinstance(value, str) and value and not is_time(value):
            return key
    return ""


def is_time(text: str) -> bool:
    """Whether a text is a date or a time, and nothing else."""
    return _TIME.fullmatch(text) is not None


def label_of(thing: Thing) -> str:
    """Return what a thing is called; "" where nothing says it."""
    return thing if isinstance(thing, str) else str(thing.get(label_key(thing), ""))


def _record(value: Any, depth: int = 0) -> Mapping[str, Any]:
    members = _members(value)
    inner = _inner(members)
    if len(inner) == 1 and depth < _DEPTH_MAX and not label_key(members):
        return _record(inner[0][1], depth + 1)
    return members


def _list_of(value: Any, depth: int) -> tuple[str, list[Any]]:
    """Return the only list in `value` with the key that it stands under; an empty one where there
    is none, or more than one."""
    if isinstance(value, list):
        return "", cast("list[Any]", value)
    members = _members(value)
    lists = [(key, _values(one)) for key, one in members.items() if _values(one)]
    if not lists and depth < _DEPTH_MAX:
        lists = [_list_of(one, depth + 1) for _, one in _inner(members)]
        lists = [(key, one) for key, one in lists if one]
    if len(lists) > 1:  # a list of texts may be one field of many
        lists = [(key, one) for key, one in lists if isinstance(one[0], Mapping)]
    return lists[0] if len(lists) == 1 else ("", [])


def _values(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _inner(members: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(key, _members(one)) for key, one in members.items() if isinstance(one, Mapping)]


def _members(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _is_thing(value: Any) -> bool:
    return bool(value) and isinstance(value, str | Mapping)
