"""Finds tools by globs and by words.

A pattern with `*`, `?` or `[` is a glob over the exposed name and the tool's own. Its words and
those of the request rank the names that match; its own are looked for as well, behind these.
Anything else is words, ranked by `tool_index.py`; a tool's exact name stands before everything.
Dates, times, places and sums of money in a request count as the words for them too (`value_kinds`).
Several patterns are several needs: the answer takes from each in turn, so that none hides the
others. Upper and lower case are the same.

Where vectors of the tools and of the words are given, words are ranked both by what they are and by
what they mean (`mcp_bridge/embedding`), and a tool that is near in meaning matches without a word
in common. Globs and exact names say what they want, and are looked for by their words alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.discovery.tool_fit import (
    LEAST_BY_MEANING,
    LEAST_BY_WORDS,
    MAX_TOLD,
    fitting,
    parts_of,
    taken_in_turn,
)
from mcp_bridge.discovery.tool_index import ToolIndex
from mcp_bridge.discovery.vocabulary import Vocabulary
from mcp_bridge.embedding.semantic_index import SemanticQuery

MAX_PATTERNS: Final = 8
MAX_PATTERN_CHARS: Final = 4_096
"""The caps on what may be asked at once. A sentence is under 200 characters; a whole request of a
person, which a host may pass as it is, is rarely over 2,000."""
MAX_GLOB_CHARS: Final = 200
"""This is longer than any name."""
MAX_SPLIT_CHARS: Final = 600
"""Longer words than a minute of speech are not split into requests, and values are looked for in
their beginning alone."""
_EXACT_SCORE: Final = 1e9
"""The score of a name that matches as a whole, far above any words."""
_GLOB_SCORE: Final = 1e6
"""What is added for a name that a glob matches: its words then rank these among themselves."""
_GLOB_MARKS: Final = re.compile(r"[*?\[\]!]+")
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_ORDINAL: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tonight|tomorrow|yesterday"
_DATE: Final = re.compile(
    rf"\b(?:\d{{4}}[-/.]\d{{1,2}}(?:[-/.]\d{{1,2}})?|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}"
    rf"|{_MONTH}\s+{_ORDINAL}|{_ORDINAL}(?:\s+of)?\s+{_MONTH}|{_DAY})(?!\w)",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"\b(?:\d{1,2}(?::\d{2})?\s?[ap]\.?m\b|\d{1,2}:\d{2}\b|\d{1,2}\s?o['’]clock\b|noon\b)",
    re.IGNORECASE,
)
_MONEY: Final = re.compile(r"[$€£¥]|\b(?:dollars?|euros?|pounds|usd|eur|gbp)\b", re.IGNORECASE)
_PLACE: Final = re.compile(
    r"\b(?:in|at|near|from|to)\s+[A-Z][a-z]+\b|\b[A-Z][a-z]+,\s?[A-Z][a-zA-Z]+\b"
)
"""A capital behind such a word, or "Portland, OR"."""
_VALUE_KINDS: Final = (("date", _DATE), ("time", _TIME), ("amount", _MONEY), ("city", _PLACE))


def discover(patterns: str | Sequence[str], tools: Iterable[ToolInfo]) -> tuple[ToolInfo, ...]:
    """Gives the tools that match any pattern, best first; equals stand in the order given."""
    return ToolFinder(tuple(tools)).find(patterns)


class ToolFinder:
    """Answers many searches over one set of tools."""

    def __init__(self, tools: Sequence[ToolInfo], vocabulary: Vocabulary | None = None) -> None:
        self._vocabulary: Final = vocabulary or Vocabulary()
        self._index: Final = ToolIndex(tools, self._vocabulary)
        self._names: Final = [(tool.name.lower(), tool.tool.lower()) for tool in self._index.tools]
        """For each tool its exposed name, and its name at the server."""
        self._by_whole_name: Final[dict[str, list[int]]] = {}
        for number, names in enumerate(self._names):
            for name in dict.fromkeys(names):
                self._by_whole_name.setdefault(name, []).append(number)

    def patterns_of_words(self, patterns: str | Sequence[str]) -> list[str]:
        """Gives those of the patterns that may be found by what they mean."""
        return [
            pattern
            for pattern in _asked(patterns)
            if not _is_glob(pattern) and pattern.lower() not in self._by_whole_name
        ]

    def find(
        self,
        patterns: str | Sequence[str],
        meaning: SemanticQuery | None = None,
        *,
        request: str = "",
    ) -> tuple[ToolInfo, ...]:
        """Gives the tools that match any pattern, best first; equals stand in the order given.

        Args:
            meaning: The vectors of these tools, and of `patterns_of_words`; None searches by words
                alone.
            request: What a person said. Its words rank the names that a glob matches.
        """
        answers = [self._find_one(pattern, meaning, request) for pattern in _asked(patterns)]
        return tuple(self._index.tools[number] for number in taken_in_turn(answers))

    def parts_of(self, words: str) -> tuple[str, ...]:
        """Gives what tools are looked for by: what a person said, and its parts before it, if any.

        There is nothing where it asks for nothing.
        """
        asked = words.strip()
        if self._vocabulary.asks_nothing(asked):
            return ()
        if len(asked) > MAX_SPLIT_CHARS:
            return (asked,)
        return (*parts_of(self._vocabulary.pieces(asked), self._shares), asked)

    def fitting(
        self, parts: Sequence[str], meaning: SemanticQuery | None = None, *, caution: float = 1.0
    ) -> tuple[ToolInfo, ...]:
        """Gives the few tools that fit what a person said, best first; none where none does.

        Args:
            parts: `parts_of` the person's words.
            meaning: The vectors of these tools and of `parts`; None goes by words alone.
            caution: How much better than usual the best tool must fit. It is more than 1 for words
                that likely need no tool.
        """
        found: list[list[int]] = []
        for part in parts:
            shares, least = self._shares(part), LEAST_BY_WORDS
            if meaning is not None and (vector := meaning.requests.get(part)) is not None:
                shares, _ = meaning.tools.hybrid_scores(shares, 1.0, vector)
                least = LEAST_BY_MEANING
            found.append(fitting(shares, caution * least))
        return tuple(self._index.tools[number] for number in taken_in_turn(found)[:MAX_TOLD])

    def _shares(self, words: str) -> NDArray[np.float64]:
        """Gives the tools' scores by words, as shares of the most that one word can bring."""
        asked = words[:MAX_PATTERN_CHARS]
        kinds = value_kinds(asked[:MAX_SPLIT_CHARS])
        return self._index.scores(" ".join((asked, *kinds))) / self._index.most_by_one_term

    def _find_one(self, pattern: str, meaning: SemanticQuery | None, request: str) -> list[int]:
        """Gives the numbers of the tools that match, best first."""
        words = pattern[:MAX_PATTERN_CHARS]
        first: list[int] = []
        if _is_glob(pattern):
            first += self._matching_glob(pattern[:MAX_GLOB_CHARS].lower())
            words = _GLOB_MARKS.sub(" ", words)
            scores = self._index.scores(words)
            asked_for = self._index.scores(f"{words} {request[:MAX_SPLIT_CHARS]}")
            scores[first] = asked_for[first]
        else:
            scores = self._index.scores(" ".join((words, *value_kinds(words))))
        matches = scores > 0
        if meaning is not None and (asked := meaning.requests.get(pattern)) is not None:
            scores, matches = meaning.tools.hybrid_scores(
                scores, self._index.most_by_one_term, asked
            )
        exact = self._by_whole_name.get(pattern.lower(), [])
        scores[first] += _GLOB_SCORE
        scores[exact] = _EXACT_SCORE  # equals: they keep the order given
        matches[[*exact, *first]] = True
        matching = np.flatnonzero(matches)
        order = matching[np.argsort(-scores[matching], kind="stable")]
        return [int(number) for number in order]

    def _matching_glob(self, glob: str) -> Iterator[int]:
        literal = max(_GLOB_MARKS.split(glob), key=len) if "[" not in glob else ""
        matches = re.compile(translate(glob)).match
        for number, names in enumerate(self._names):
            # Most names fall to the cheap test.
            if (literal in names[0] or literal in names[1]) and (
                matches(names[0]) or matches(names[1])
            ):
                yield number


def _asked(patterns: str | Sequence[str]) -> list[str]:
    """Gives each pattern once, within the cap, without what is empty."""
    asked = [patterns] if isinstance(patterns, str) else list(patterns)[:MAX_PATTERNS]
    return [pattern for pattern in dict.fromkeys(raw.strip() for raw in asked) if pattern]


def _is_glob(pattern: str) -> bool:
    # A question ends in "?" and is no glob.
    return "*" in pattern or "[" in pattern or ("?" in pattern and " " not in pattern)


def value_kinds(request: str) -> list[str]:
    """Gives the word for each kind of value in `request`. 4,096 characters take 6 ms at worst.

    Tools name a kind (`date`, `city`), people say a value ("on March 4th", "in Oslo"), so the two
    share no word. Dates in digits, times and signs of money are found in every language, the rest
    in English. Kinds that were tried and found nothing more are left out: durations, numbers of
    people, distances, identifiers, paths and addresses (`tests/bench/discovery.py`).
    """
    return [word for word, value in _VALUE_KINDS if value.search(request)]
