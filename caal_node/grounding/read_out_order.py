"""In which order the things of a list are counted: as they were read out, where they were.

The model that read a list out may have left some out and begun with another one. What it said is
compared with the things' names, word by word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from caal_node.grounding.earlier_results import EarlierResult, Thing, is_time, label_of
from caal_node.grounding.reference_words import name_words, singular

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
