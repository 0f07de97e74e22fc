"""Globs as a shell's: `*` is any text, `?` any character, `[abc]` one of them; case counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final

_MAGIC: Final = re.compile(r"[*?\[]")
_TOKEN: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.S)


class AnyOf:
    """Fits a text where at least one of some globs does.

    Most globs are whole names or end with their only `*`, and those need no regular expression.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        names: list[str] = []
        beginnings: list[str] = []
        others: list[str] = []
        for glob in globs:
            if not _MAGIC.search(glob):
                names.append(glob)
            elif glob.endswith("*") and not _MAGIC.search(glob[:-1]):
                beginnings.append(glob[:-1])
            else:
                others.append(translate(glob))
        self._names: Final = frozenset(names)
        self._beginnings: Final = tuple(beginnings)
        self._pattern: Final = re.compile("|".join(f"(?:{each})" for each in others))
        self._has_pattern: Final = bool(others)

    def fits(self, text: str) -> bool:
        """Say whether the whole text is one that a glob stands for."""
        if text in self._names or text.startswith(self._beginnings):
            return True
        return self._has_pattern and self._pattern.match(text) is not None


def all_covered(narrow: Sequence[str], wide: Sequence[str]) -> bool:
    """Say whether each text that fits one of `narrow` surely fits one of `wide`."""
    return all(any(covers(each, glob) for each in wide) for glob in narrow)


@lru_cache(maxsize=4096)
def covers(wide: str, narrow: str) -> bool:
    """Say whether each text that `narrow` fits is one that `wide` fits.

    True is certain. False also stands for a few pairs whose order of `*` and `?` differs, such as
    `?*` and `*?`.
    """
    if wide in ("*", narrow):
        return True
    wanted, given = _tokens(wide), _tokens(narrow)
    at = star = mark = 0
    has_star = False
    position = 0
    while position < len(given):
        if at < len(wanted) and wanted[at] == "*":
            has_star, star, mark = True, at, position
            at += 1
        elif at < len(wanted) and _one_covers(wanted[at], given[position]):
            at += 1
            position += 1
        elif has_star:
            mark += 1
            at, position = star + 1, mark
        else:
            return False
    return all(each == "*" for each in wanted[at:])


@lru_cache(maxsize=4096)
def _tokens(glob: str) -> tuple[str, ...]:
    end = glob.rfind("]") + 1  # behind it no "[" has an end to be looked for
    return (*_TOKEN.findall(glob[:end]), *glob[end:])


def _one_covers(wide: str, narrow: str) -> bool:
    if narrow == "*":
        return False
    if wide in ("?", narrow):
        return True
    is_character = len(narrow) == 1 and narrow != "?"
    return is_character and len(wide) > 1 and AnyOf([wide]).fits(narrow)
