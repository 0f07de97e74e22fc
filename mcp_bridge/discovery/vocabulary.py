"""What a search knows of a language: everyday words for what tools are called, and more.

"It is freezing in here" shares no word with `set_thermostat`; a list says that one stands for the
other. "Dim the light and play some jazz" is for two tools, and each is found best by its own part.
"Thank you, that is much better" is for none.
The lists are the caller's, as they belong to a language and to tools of some kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from mcp_bridge.discovery.bm25 import split_terms, stem

Meanings: TypeAlias = Sequence[tuple[Sequence[str], Sequence[str]]]
"""Pairs of what is said, words or phrases, and the words of tools that it stands for. A `*` in a
phrase stands for one to three words."""
MAX_PIECES: Final = 8
"""Pieces of one request. Somebody who asks for more tells a story."""
MAX_REPLY_CHARS: Final = 200
"""Whoever says more than this says something."""
_MAX_GAP: Final = 3
_ANY: Final = "*"
_WORD: Final = re.compile(r"\*|[^\W_]+(?:'[^\W_]+)*")
_SENTENCE_END: Final = r"(?:(?<!\s)\s++)?[;.!?]\s+"


class Vocabulary:
    """The words of a language that say what a request is for. It is immutable.

    Args:
        meanings: Everyday words, and what tools for them are called.
        joiners: Words between two requests, such as "and then".
        replies: What people say that ask for nothing, such as "thank you".
    """

    def __init__(
        self,
        meanings: Meanings = (),
        joiners: Sequence[str] = (),
        replies: Sequence[str] = (),
    ) -> None:
        self._terms: Final = [
            tuple(dict.fromkeys(term for word in means for term in split_terms(word)))
            for _, means in meanings
        ]
        phrases: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for number, (said, _) in enumerate(meanings):
            for phrase in said:
                if stems := tuple(_stems(phrase)):
                    phrases.setdefault(stems[0], []).append((stems[1:], number))
        self._phrases: Final = phrases
        self._replies: Final = frozenset(tuple(_stems(reply)) for reply in replies)
        self._longest_reply: Final = max(map(len, self._replies), default=0)
        longest_first = sorted(map(re.escape, joiners), key=len, reverse=True)
        before = r"(?:(?:(?<!\s)\s++)?[,;.]\s*+|(?<!\s)\s++)"
        joined = rf"{before}(?:{'|'.join(longest_first)})\s+|" if joiners else ""
        self._joint: Final = re.compile(joined + _SENTENCE_END, re.IGNORECASE)

    def meant(self, request: str) -> list[tuple[str, ...]]:
        """Gives for each thing that may be meant the terms of tools, any of which stands for it."""
        stems = tuple(_stems(request))
        met = {
            number: None
            for at, first in enumerate(stems, 1)
            for rest, number in self._phrases.get(first, ())
            if _stands(rest, stems, at)
        }
        return [self._terms[number] for number in met]

    def asks_nothing(self, request: str) -> bool:
        """Says whether `request` is made of replies alone: "all right, thank you"."""
        stems = tuple(_stems(request[:MAX_REPLY_CHARS]))
        reached = {0}  # the places up to which there are replies alone
        for end in range(1, len(stems) + 1):
            starts = range(max(0, end - self._longest_reply), end)
            if any(start in reached and stems[start:end] in self._replies for start in starts):
                reached.add(end)
        return len(request) <= MAX_REPLY_CHARS and len(stems) in reached

    def pieces(self, request: str) -> list[str]:
        """Gives the pieces between sentences and joining words, at most `MAX_PIECES`."""
        pieces = self._joint.split(request.strip(), maxsplit=MAX_PIECES - 1)
        return [piece for piece in pieces if piece.strip()]


def _stands(phrase: Sequence[str], stems: Sequence[str], at: int) -> bool:
    """Says whether `phrase` stands in `stems` from the place `at` on."""
    for index, wanted in enumerate(phrase):
        if wanted == _ANY:
            behind = phrase[index + 1 :]
            return any(_stands(behind, stems, at + gap) for gap in range(1, _MAX_GAP + 1))
        if at >= len(stems) or stems[at] != wanted:
            return False
        at += 1
    return at <= len(stems)


def _stems(text: str) -> Iterator[str]:
    """Yields the stem of every word, also of those that say nothing by themselves."""
    for word in _WORD.findall(text.replace("’", "'").lower()):
        yield stem(word)
