"""Reads what a person answers to a call that is read back: a yes, a no, or neither.

A yes has to be about nothing else: it holds words that say yes, words that mean nothing by
themselves, words of the question, and no others. "Yes, unlock it" is one; "yes, we are watching
the match" is not, and neither is "is it yes". A no may hold anything: what follows it is what the
person wants in its place, and makes it a correction.
The words are those of `prompts/confirmation.toml`; an answer is read in one language at a time.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from caal_node.core.prompt_files import read

Meaning: TypeAlias = Literal["yes", "no", "correction", "unclear"]

MAX_YES_WORDS: Final = 12
"""Words of the longest yes. Longer speech with the question's words in it is no answer to it."""
MAX_READ_CHARS: Final = 2_000
"""Characters that are read of an answer: two minutes of speech. A longer one is no yes."""
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_PLAIN: Final = re.compile(r"""[\w\s.,;:!'"()\-–—…]*""")
"""What a yes is written with: a symbol or a question mark may mean something else."""


@dataclass(frozen=True, slots=True)
class _Language:
    yes: tuple[tuple[str, ...], ...]
    no: tuple[tuple[str, ...], ...]
    instead: tuple[tuple[str, ...], ...]
    filler: frozenset[str]
    asks: frozenset[str]


def read_answer(words: str, question: str) -> Meaning:
    """Return what `words` mean as an answer to `question`, which was read to the person."""
    text = unicodedata.normalize("NFKC", words[:MAX_READ_CHARS]).replace("’", "'")
    said = _tokens(text)
    own = frozenset(_tokens(unicodedata.normalize("NFKC", question)))
    no = [each for each in _LANGUAGES if _holds(said, each.no) or _says_instead(said, each)]
    if no:
        plain = any(_is_made_of(said, (*each.no, *each.yes), each, own) for each in no)
        return "no" if plain else "correction"
    if len(said) > MAX_YES_WORDS or len(words) > MAX_READ_CHARS or not _PLAIN.fullmatch(text):
        return "unclear"
    if any(_is_made_of(said, each.yes, each, own) and not _asks(said, each) for each in _LANGUAGES):
        return "yes"
    return "unclear"


def _is_made_of(
    said: Sequence[str],
    phrases: Sequence[tuple[str, ...]],
    language: _Language,
    own: Collection[str],
) -> bool:
    """Say whether the words hold one of `phrases`, and else only fillers and the question's own."""
    found, at = False, 0
    while at < len(said):
        phrase = next((each for each in phrases if tuple(said[at : at + len(each)]) == each), None)
        if phrase is not None:
            found, at = True, at + len(phrase)
        elif said[at] in language.filler or said[at] in own:
            at += 1
        else:
            return False
    return found


def _asks(said: Sequence[str], language: _Language) -> bool:
    """Say whether the words begin as a question does: "do it" is none, and "do you" is one."""
    is_phrase = any(tuple(said[: len(each)]) == each for each in language.yes)
    return said[0] in language.asks and not is_phrase


def _says_instead(said: Sequence[str], language: _Language) -> bool:
    """Say whether the person corrects the call. A word such as "but" alone says nothing."""
    return len(said) > 1 and _holds(said, language.instead)


def _holds(said: Sequence[str], phrases: Sequence[tuple[str, ...]]) -> bool:
    return any(
        tuple(said[at : at + len(phrase)]) == phrase
        for phrase in phrases
        for at in range(len(said))
    )


def _tokens(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _language(table: Mapping[str, Any]) -> _Language:
    yes, no, instead = (
        tuple(sorted((tuple(_tokens(each)) for each in table[key]), key=len, reverse=True))
        for key in ("yes", "no", "instead")
    )
    return _Language(yes, no, instead, frozenset(table["filler"]), frozenset(table["asks"]))


_LANGUAGES: Final = tuple(
    _language(table)
    for name, table in tomllib.loads(read("confirmation.toml")).items()
    if name != "say"
)
