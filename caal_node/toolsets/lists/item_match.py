"""Which things on a list a person means: "milk" is "2 litres of oat milk" if no other is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from caal_node.policy.heard_words import COMMON, plain, stem, words
from caal_node.toolsets.lists.markdown_list import ListItem, compared

ALIKE: Final = 0.8
"""How like two words have to be for one to be a mishearing of the other: "wholemeal bred" is."""
COMPARED_MAX: Final = 300
"""Things that are compared letter by letter: 10 ms."""


@dataclass(frozen=True, slots=True)
class Match:
    """The things that words may mean: none, one, or several, of which a person has to choose."""

    items: tuple[ListItem, ...]

    @property
    def is_sure(self) -> bool:
        return len({compared(item.name) for item in self.items}) == 1


def match_item(wanted: str, items: Sequence[ListItem]) -> Match:
    """Return which of `items` is meant, by the same name, by its words, or by its sound."""
    name, asked = compared(wanted), _content(wanted)
    exact = tuple(item for item in items if compared(item.name) == name)
    if exact or not asked:
        return Match(exact)
    known = [(item, _content(item.name)) for item in items]
    if found := tuple(item for item, content in known if asked <= content):
        return Match(tuple(item for item in found if _head(item.name) == _head(wanted)) or found)
    # "Two loaves of rye bread" may be "rye bread", but "milk chocolate" is no milk.
    narrower = (item for item, content in known if content and content <= asked)
    if found := tuple(item for item in narrower if _head(item.name) == _head(wanted)):
        return Match(found)
    wanted = plain(wanted)
    scored = [
        (SequenceMatcher(None, wanted, plain(item.name)).ratio(), item)
        for item, _ in known[:COMPARED_MAX]
    ]
    best = max((score for score, _ in scored), default=0.0)
    return Match(tuple(item for score, item in scored if score == best and score >= ALIKE))


def is_named_whole(said: str, items: Sequence[ListItem]) -> bool:
    """Say whether all words of `said` are those of one thing, as of "call Tom and Ann"."""
    asked = _content(said)
    return sum(asked <= _content(item.name) for item in items) == 1


def _head(name: str) -> str:
    """Return the stem of the last word, which says what a thing is in English."""
    return stem((words(name) or [""])[-1])


def _content(name: str) -> frozenset[str]:
    found = frozenset(map(stem, words(name)))
    return (found - COMMON) or found
