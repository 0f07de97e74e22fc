"""The words of `prompts/references.toml`, and how a request and a field's name become words."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, cast

from caal_node.core.prompt_files import read

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


class ReferenceWords:
    """The words of one language. A list of the file is an attribute: `words("articles")`."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._lists: Final = {
            name: frozenset[str](value) for name, value in table.items() if _is_words(value)
        }
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
            *(self._lists[name] for name in _TRIGGERS),
            self.ordinals,
            *(rank.most | rank.more for rank in self.ranks),
        )
        """A request without any of these refers to nothing."""

    def __call__(self, name: str) -> frozenset[str]:
        return self._lists[name]


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
