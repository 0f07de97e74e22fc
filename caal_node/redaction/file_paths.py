"""Finds absolute paths of files, and says what is left of one: `~/notes.txt`, `report.pdf`.

A path is known by its root: folders in which people's files and a system's own lie. An address
(`https://host/home/x`) and an API's route (`/api/tools`) are none. A name with spaces ends at the
first one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_PART: Final = r"[\w.+@%~=-]{0,254}[\w+@%~=-]"
"""A name of a folder or file. A full stop behind it is the sentence's."""
_POSIX: Final = re.compile(
    rf"(?<![\w./~\\-])(?P<home>/home/{_PART}|/Users/{_PART}|/root(?![\w.-]))?"
    r"(?(home)|/(?:etc|var|tmp|opt|srv|mnt|media|usr|private|Volumes|data|run|home|Users|workspace)"
    rf"(?![\w.-]))(?P<rest>(?:/{_PART}){{0,32}})"
)
_WINDOWS: Final = re.compile(
    rf"(?<![\w])[A-Za-z]:(?P<sep>\\\\?)(?P<home>Users(?P=sep){_PART}(?:(?P=sep)|(?![\w.\\-])))?"
    rf"(?P<rest>{_PART}(?:(?P=sep){_PART}){{0,32}})?"
)


def find_paths(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each path begins and ends, and what is shown of it."""
    if "/" in text:
        for found in _POSIX.finditer(text):
            if found["home"]:
                yield *found.span(), f"~{found['rest']}"
            elif found["rest"]:
                yield *found.span(), found["rest"].rpartition("/")[2]
    if ":\\" in text:
        for found in _WINDOWS.finditer(text):
            sep, rest = found["sep"], found["rest"] or ""
            if found["home"]:
                yield *found.span(), f"~{sep}{rest}" if rest else "~"
            elif sep in rest:
                yield *found.span(), rest.rpartition(sep)[2]
