"""Finding tools by globs and by words.

A pattern with `*`, `?` or `[` is a glob over the exposed name and the tool's own name; its words
are looked for as well, behind the names that match. Anything else is words, ranked by
`ranking.py`, and a tool's exact name stands before everything. What a request holds of dates,
times, places and money counts as the words for them too (`kinds.py`). Several patterns are several
needs: the answer takes from each in turn, so that none hides the others. Upper and lower case are
one.

Where vectors of the tools and of the words are given, words are ranked by both what they are and
what they mean (`embedding/mix.py`), and what is near in meaning matches without a word in common.
Globs and exact names say what they want, and are looked for by their words alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from itertools import zip_longest
from typing import Final

import numpy as np

from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.discovery.tool_index import ToolIndex
from mcp_bridge.discovery.value_kinds import kinds
from mcp_bridge.embedding.meanings import Meaning

MAX_PATTERNS: Final = 8
MAX_PATTERN_CHARS: Final = 4_096
"""Caps on what may be asked at once. A sentence is under 200 characters; a whole request of a
person, which a host may pass as it is, is rarely over 2,000."""
MAX_GLOB_CHARS: Final = 200
"""Longer than any name."""
_FIRST: Final = 1e9
"""The score of a name that matches as a whole, far above any words."""
_MARKS: Final = re.compile(r"[*?\[\]!]+")


def discover(patterns: str | Sequence[str], tools: Iterable[ToolInfo]) -> tuple[ToolInfo, ...]:
    """The tools that match any pattern, best first; equals stand in the order given."""
    return ToolFinder(tuple(tools)).find(patterns)


class ToolFinder:
    """Many questions to one set of tools."""

    def __init__(self, tools: Sequence[ToolInfo]) -> None:
        self._index: Final = ToolIndex(tools)
        self._names: Final = [(tool.name.lower(), tool.tool.lower()) for tool in self._index.tools]
        """Of each tool the exposed name, and the server's own."""
        self._whole: Final[dict[str, list[int]]] = {}
        for number, names in enumerate(self._names):
            for name in dict.fromkeys(names):
                self._whole.setdefault(name, []).append(number)

    def worded(self, patterns: str | Sequence[str]) -> list[str]:
        """Those of the patterns that may be found by what they mean."""
        return [
            pattern
            for pattern in _asked(patterns)
            if not _is_glob(pattern) and pattern.lower() not in self._whole
        ]

    def find(
        self, patterns: str | Sequence[str], meaning: Meaning | None = None
    ) -> tuple[ToolInfo, ...]:
        """The tools that match any pattern, best first; equals stand in the order given.

        Args:
            meaning: Vectors of these tools, and of what `worded` gives; None goes by words.
        """
        answers = [self._one(pattern, meaning) for pattern in _asked(patterns)]
        turns = zip_longest(*answers, fillvalue=-1)
        numbers = dict.fromkeys(number for turn in turns for number in turn)
        numbers.pop(-1, None)
        return tuple(self._index.tools[number] for number in numbers)

    def _one(self, pattern: str, meaning: Meaning | None) -> list[int]:
        """Numbers of the tools that match, best first."""
        words = pattern[:MAX_PATTERN_CHARS]
        first: list[int] = []
        if _is_glob(pattern):
            first += self._globbed(pattern[:MAX_GLOB_CHARS].lower())
            scores = self._index.scores(_MARKS.sub(" ", words))
        else:
            scores = self._index.scores(" ".join((words, *kinds(words))))
        matches = scores > 0
        if meaning is not None and (asked := meaning.asked.get(pattern)) is not None:
            scores, matches = meaning.space.mixed(scores, self._index.most, asked)
        named = [*self._whole.get(pattern.lower(), []), *first]
        scores[named] = _FIRST  # equals: they keep the order given
        matches[named] = True
        matching = np.flatnonzero(matches)
        order = matching[np.argsort(-scores[matching], kind="stable")]
        return [int(number) for number in order]

    def _globbed(self, glob: str) -> Iterator[int]:
        literal = max(_MARKS.split(glob), key=len) if "[" not in glob else ""
        matches = re.compile(translate(glob)).match
        for number, names in enumerate(self._names):
            # Most names fall to the cheap test.
            if (literal in names[0] or literal in names[1]) and (
                matches(names[0]) or matches(names[1])
            ):
                yield number


def _asked(patterns: str | Sequence[str]) -> list[str]:
    """Each once, within the cap, without what is empty."""
    asked = [patterns] if isinstance(patterns, str) else list(patterns)[:MAX_PATTERNS]
    return [pattern for pattern in dict.fromkeys(raw.strip() for raw in asked) if pattern]


def _is_glob(pattern: str) -> bool:
    # A question ends in "?" and is no glob.
    return "*" in pattern or "[" in pattern or ("?" in pattern and " " not in pattern)
