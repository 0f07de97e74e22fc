"""Parameters in a Markdown table: a row for each, a column for its name, type, need and so on."""

from __future__ import annotations

import re
from typing import Final

from n8n.notes.parameter import Parameter
from n8n.notes.parameter_text import from_row
from n8n.notes.words import kind_of, pattern

MAX_CELLS: Final = 12
"""Cells of a row that are read; tables in notes have three or four."""
_RULE: Final = re.compile(r"\|?(?:\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?")
_BETWEEN_CELLS: Final = re.compile(r"(?<!\\)\|")
_RESULTS: Final = re.compile(rf"^[\s#>*_]*+(?:\w++\s++)?{pattern('results')}[\s*_:]*+$", re.I)
_MARKS: Final = {"": None, "-": False, "–": False, "✗": False, "x": True, "✓": True, "✔": True}
"""What a cell says of a need without a word."""


def is_table(lines: list[str], at: int) -> bool:
    """Return whether a table begins with the line at `at`: its head, and the rule below it."""
    below = lines[at + 1] if at + 1 < len(lines) else ""
    return "|" in lines[at] and "|" in below and _RULE.fullmatch(below.strip()) is not None


def read_table(
    lines: list[str], at: int, *, is_announced: bool
) -> tuple[int, dict[str, Parameter]] | None:
    """Read the table that begins with the line at `at`; None where it is none of parameters.

    `is_announced`: a heading such as `Parameters:` stands over it. Otherwise it has to have a
    column of names, and one of types or of needs. Returns the index of the line after it as well.
    """
    head = [cell.strip("*_`").strip().lower() for cell in _cells(lines[at])]
    kinds = [kind_of(title, "columns.*") for title in head]
    if is_announced:
        kinds = kinds if "columns.name" in kinds else ["columns.name", *kinds[1:]]
    elif "columns.name" not in kinds or not {"columns.type", "columns.need"} & set(kinds):
        return None
    if not is_announced and _RESULTS.match(
        next((x for x in reversed(lines[:at]) if x.strip()), "")
    ):
        return None
    found: dict[str, Parameter] = {}
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        row = dict(enumerate(_cells(lines[end])))
        of_kind = {kind: row.get(i, "") for i, kind in reversed(list(enumerate(kinds)))}
        need_title = head[kinds.index("columns.need")] if "columns.need" in kinds else ""
        found |= from_row(
            of_kind["columns.name"],
            [
                text
                for i, text in row.items()
                if i >= len(kinds) or kinds[i] in (None, "columns.type")
            ],
            needed=_needed(of_kind.get("columns.need", ""), need_title),
            default=of_kind.get("columns.default", "").strip("`\"' -") or None,
        )
        end += 1
    return end, found


def _cells(line: str) -> list[str]:
    text = line.strip().removeprefix("|")
    text = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    return [cell.replace("\\|", "|").strip() for cell in _BETWEEN_CELLS.split(text)[:MAX_CELLS]]


def _needed(text: str, title: str) -> bool | None:
    """Read a cell of the column of needs; None where it says nothing."""
    text = text.strip("*_` ").lower()
    if text in _MARKS:
        said = _MARKS[text]
    else:
        said = {"yes": True, "required": True, "no": False, "optional": False}.get(
            kind_of(text, "optional", "required", "yes", "no") or ""
        )
        if kind_of(text, "optional", "required"):
            return said
    if said is not None and kind_of(title, "optional"):
        return not said
    return said
