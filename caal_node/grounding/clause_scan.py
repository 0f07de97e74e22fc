"""What a clause holds that is asked for at each of its verbs: it is looked for once."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final

from caal_node.grounding.action_words import ActionWords

BREAK: Final = re.compile(r"\band\b|\bbut\b|[,;:]")
"""What parts a clause."""


class ClauseScan:
    """The plain text of one clause, with the verbs and marks of a language in it."""

    def __init__(self, text: str, words: ActionWords) -> None:
        self._text, self._words = text, words

    @cached_property
    def past_verbs(self) -> list[re.Match[str]]:
        return [*self._words.verbs.past.finditer(self._text)]

    @cached_property
    def ing_verbs(self) -> list[re.Match[str]]:
        return [*self._words.verbs.ing.finditer(self._text)]

    @cached_property
    def base_verbs(self) -> list[re.Match[str]]:
        return [*self._words.verbs.base.finditer(self._text)]

    @cached_property
    def is_past(self) -> bool:
        """Whether the clause names a time that is over."""
        return self._words.frames["past_times"].search(self._text) is not None

    @cached_property
    def condition_ends(self) -> int:
        """Where the first word ends that makes the clause depend on something; behind the text
        where there is none."""
        found = self._words.frames["conditions"].search(self._text)
        return len(self._text) + 1 if found is None else found.end()

    def part_begins(self, at: int) -> int:
        """Return where the part of the clause begins that holds the place `at`."""
        before = bisect_right(self._break_ends, at)
        return self._break_ends[before - 1] if before else 0

    @cached_property
    def _break_ends(self) -> list[int]:
        return [match.end() for match in BREAK.finditer(self._text)]
