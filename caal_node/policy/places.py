"""Where the keys of a TOML file stand, since `tomllib` keeps no positions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value, such as `("tools", "rules", 2, "then")`."""

_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED: Final = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER: Final = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]\]?[ \t]*(?:\#.*)?$")
_ASSIGNMENT: Final = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")
_PART: Final = re.compile(_KEY)
_TEXT_MARKS: Final = ('"""', "'''")


class Places:
    """Names the places of a file's keys in words.

    Args:
        name: What the file is called in messages.
        text: What it holds. Without it every place is `name` alone, as for a table made in code.
    """

    def __init__(self, name: str, text: str = "") -> None:
        self._name: Final = name
        self._text: Final = text

    def where(self, *path: str | int) -> str:
        """Return `caal.toml, line 12` for a key, or for the innermost part that has a line."""
        if not self._text:
            return self._name
        return f"{self._name}, line {self.line(*path)}"

    def line(self, *path: str | int) -> int:
        """Return the number of the line, from 1, that sets the key or what it lies in."""
        lines = self._lines
        return next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), 1)

    @cached_property
    def _lines(self) -> dict[Path, int]:
        found: dict[Path, int] = {}
        for path, line in _scan(self._text):
            found.setdefault(path, line)
        return found


def _scan(text: str) -> Iterator[tuple[Path, int]]:
    """Yield every key and table with its line, in order."""
    table: Path = ()
    opened: Counter[Path] = Counter()
    inside_text = ""
    for number, line in enumerate(text.split("\n"), 1):
        if inside_text:
            if inside_text in line:
                inside_text = ""
            continue
        if header := _HEADER.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                opened[table] += 1
                yield table, number
                table = (*table, opened[table] - 1)
            elif (array := table[:-1]) in opened and len(table) > 1:
                # `[tools.rules.attributes]` belongs to the last `[[tools.rules]]`.
                table = (*array, opened[array] - 1, table[-1])
            yield table, number
        elif key := _ASSIGNMENT.match(line):
            yield (*table, *_parts(key[1])), number
            inside_text = next((mark for mark in _TEXT_MARKS if line.count(mark) % 2), "")


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))
