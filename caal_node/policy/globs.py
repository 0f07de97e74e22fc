"""Globs as a shell's: `*` is any text, `?` any character, `[abc]` one of them; case counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final

_TOKEN: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.S)


def any_of(globs: Iterable[str]) -> re.Pattern[str]:
    """Return one pattern that matches a whole text where at least one of the globs does."""
    return re.compile("|".join(f"(?:{translate(glob)})" for glob in globs))


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
    wanted, given = _TOKEN.findall(wide), _TOKEN.findall(narrow)
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


def _one_covers(wide: str, narrow: str) -> bool:
    if narrow == "*":
        return False
    if wide in ("?", narrow):
        return True
    is_character = len(narrow) == 1 and narrow != "?"
    return is_character and len(wide) > 1 and any_of([wide]).match(narrow) is not None
