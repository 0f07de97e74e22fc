"""Whether the names in a clause stand in the results or were said by the person."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from caal_node.grounding.fact_words import WORDS, listed
from caal_node.policy.heard_words import stem, words

_TOKEN: Final = re.compile(r"[^\W_](?:[^\W_]|['’.-](?=[^\W_]))*")
_BEGINS: Final = re.compile(
    r"(?:^|(?<!\b[A-Z])(?<!\b[DM]r)(?<!\bMrs)(?<!\bSt)[.!?:;…|]|\n)[\s\"'“”‘’*#•>_()\[\]-]*(?:\d+[.)]\s*)?[*_\"“]*$"
)
"""What stands before a word that has its capital letter for its place."""
_BEFORE_CHARS: Final = 16
_COUNTRIES: Final = listed("countries")
_NO_NAMES: Final = (
    listed("capitalised") | {*WORDS["months"], *WORDS["weekdays"]} | listed("greetings")
)
_ALIKE: Final = 4
"""Letters in which two words must begin alike to be one name: Lisbon and Lisboa."""
_HEADING_WORDS: Final = 3


def folded(word: str) -> str:
    """Return a word without accents, as speech recognition and models often drop them."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word)
    return "".join(one for one in decomposed if not unicodedata.combining(one))


class StatedNames:
    """Holds the names of clauses against the words that were read and heard."""

    def __init__(self, known: Iterable[str]) -> None:
        """`known` are the stems of all words of results, calls and people."""
        self._known = frozenset(map(folded, known))
        self._beginnings = {word[:_ALIKE] for word in self._known if len(word) >= _ALIKE}
        self._has_country = not _COUNTRIES.isdisjoint(self._known)

    def unknown_in(self, clause: str) -> list[tuple[int, int]]:
        """Return the characters of each name that is known from nowhere."""
        tokens = list(_TOKEN.finditer(clause))
        written = [token for token in tokens if token[0][0].isalpha()]
        if len(written) >= _HEADING_WORDS and all(token[0][0].isupper() for token in written):
            return []  # A heading has capital letters on whatever words.
        return [
            token.span()
            for token in tokens
            if _is_name(token[0])
            and (
                _is_code(token[0])
                or not _BEGINS.search(clause, max(0, token.start() - _BEFORE_CHARS), token.start())
            )
            and not self._is_known(token[0])
        ]

    def _is_known(self, name: str) -> bool:
        parts = [folded(part) for part in words(name) if part != "s"]
        if any(part in _COUNTRIES for part in parts) and not self._has_country:
            return True
        return all(
            len(part) < 2
            or part in _NO_NAMES
            or stem(part) in self._known
            or part in self._known
            or (len(part) >= _ALIKE and part[:_ALIKE] in self._beginnings)
            for part in parts
        )


def _is_code(token: str) -> bool:
    """Say whether a token has letters and digits, as "A17", so that it is no common word."""
    return token[0].isupper() and any(one.isdigit() for one in token)


def _is_name(token: str) -> bool:
    return token[0].isupper() or (token[0].isdigit() and any(c.isupper() for c in token[1:]))
