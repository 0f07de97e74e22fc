"""A Markdown table, said row by row."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from caal_node.tts_text.spoken_forms import Wording

LINE_CHARS: Final = 1000
"""A row longer than this is no row to listen to: it is read as text."""
ROWS_SAID: Final = 5
"""A listener keeps no more in mind; of the others the number is told."""
_CELLS: Final = re.compile(r"(?<!\\)\|")
_SEPARATOR: Final = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*")
_YES: Final = frozenset("✓✔✅☑")
_NO: Final = frozenset("✗✘❌☒")


class Table:
    """Takes lines that begin with a bar; `row` and `end` give what is said for them."""

    def __init__(self, aside: Callable[[str], str], wording: Wording) -> None:
        self._aside = aside
        self._wording = wording
        self._first: list[str] | None = None
        """The first row, until the next tells whether it is a header."""
        self._header: list[str] | None = None
        self._rows = 0

    def row(self, line: str) -> list[str]:
        """What is said now that `line`, without its newline, has come: sentences."""
        if _SEPARATOR.fullmatch(line):
            self._header, self._first = self._first, None
            return []
        cells = [self._cell(cell) for cell in _CELLS.split(line.strip().strip("|"))]
        if self._header is not None:
            self._rows += 1
            return [self._told(cells)] if self._rows <= ROWS_SAID else []
        before, self._first = self._first, cells
        return [] if before is None else [_joined(before)]

    def end(self) -> list[str]:
        """What is said once no more lines come."""
        if self._first is not None:
            return [_joined(self._first)]
        if self._header is not None and not self._rows:
            return [self._wording.phrase("columns", columns=", ".join(filter(None, self._header)))]
        more = self._rows - ROWS_SAID
        if more <= 0:
            return []
        key = "rows_one_more" if more == 1 else "rows_more"
        return [self._wording.phrase(key, more=str(more), rows=str(self._rows))]

    def _cell(self, cell: str) -> str:
        cell = cell.replace("\\|", "|").strip()
        mark = cell.rstrip("️")
        if mark in _YES | _NO and mark:
            return self._wording.phrases["yes" if mark in _YES else "no"]
        return self._aside(cell).strip().rstrip(".")

    def _told(self, cells: list[str]) -> str:
        assert self._header is not None
        headers = self._header + [""] * (len(cells) - len(self._header))
        told = [
            self._wording.phrase("cell", header=header, value=cell) if header else cell
            for header, cell in zip(headers, cells, strict=False)
            if cell
        ]
        return _joined(told)


def _joined(cells: list[str]) -> str:
    said = ", ".join(filter(None, cells))
    return said + "." if said else ""
