"""The words with a meaning in notes, in every language of words.toml.

Kinds of words begin a line (`parameters`, `examples`, `speaks`, `takes`, `accepts`), describe a
parameter (`required`, `optional`, `default`, `minimum`, `maximum`, `range`, `to`, `one_of`, `or`,
`types.*`), head a column of a table (`columns.*`), or stand in a value (`none`, `yes`, `no`, `and`,
`field`, `up_to`, `results`, `units.*`).
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any, Final

LIKENESS: Final = 0.8
"""How alike a word and the one it is taken for are at least: `Parametres` and `parameters` are 0.9,
`documents` and `arguments` 0.67."""


def _kinds(language: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for key, value in language.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", words) for inner, words in value.items())  # pyright: ignore[reportUnknownVariableType] -- our own file
        else:
            yield key, value


def _load() -> Mapping[str, tuple[str, ...]]:
    text = (resources.files("n8n.notes") / "words.toml").read_text("utf-8")
    merged: dict[str, dict[str, None]] = {}
    for language in tomllib.loads(text).values():
        for kind, words in _kinds(language):
            merged.setdefault(kind, {}).update(dict.fromkeys(words))
    return {kind: tuple(words) for kind, words in merged.items()}


_WORDS: Final = _load()


def words(*kinds: str) -> tuple[str, ...]:
    """Return the words of these kinds in all languages; `types.*` stands for all kinds of types."""
    return tuple(word for each in kinds for kind in _matching(each) for word in _WORDS[kind])


def kind_of(word: str, *kinds: str) -> str | None:
    """Return the first of these kinds that has the word, whatever its case."""
    word = " ".join(word.lower().split())
    return next((k for each in kinds for k in _matching(each) if word in _WORDS[k]), None)


def pattern(*kinds: str) -> str:
    """Return a regular expression for any word of these kinds, for use without regard to case."""
    return alternatives(words(*kinds))


def alternatives(texts: Iterable[str]) -> str:
    """Return a regular expression for any of the texts; where two fit, the longer one is taken."""
    longest_first = sorted(set(texts), key=lambda text: (-len(text), text))
    return "(?:" + "|".join(re.escape(text).replace(r"\ ", r"\s+") for text in longest_first) + ")"


def meant(word: str, *kinds: str) -> str | None:
    """Return the word of these kinds that `word` is a misspelling of; None for any other word.

    A misspelling begins as the word does, so that few words have to be compared.
    """
    word, all_known = word.lower(), words(*kinds)
    if word in all_known:
        return None
    known = [
        each
        for each in all_known
        if len(each) >= 5 and each[0] == word[:1] and abs(len(each) - len(word)) <= 2
    ]
    likeness = {each: difflib.SequenceMatcher(None, word, each).ratio() for each in known}
    best = max(known, key=lambda each: likeness[each], default="")
    return best if likeness.get(best, 0.0) >= LIKENESS else None


def _matching(kind: str) -> list[str]:
    if kind.endswith("*"):
        return [known for known in _WORDS if known.startswith(kind[:-1])]
    return [kind]
