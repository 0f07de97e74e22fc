"""How a bench prints its figures."""

from __future__ import annotations

import os
from collections.abc import Sequence


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Words to the left, figures to the right; floats with one decimal."""
    words = [all(isinstance(row[at], str) for row in rows) for at in range(len(columns))]
    cells = [list(columns), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    print(f"{title}  [load now {os.getloadavg()[0]:.1f}]")
    for row in cells:
        aligned = (
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, words, strict=True)
        )
        print("  ".join(aligned).rstrip(), flush=True)


def _text(cell: object) -> str:
    return f"{cell:,.1f}" if isinstance(cell, float) else f"{cell:,}" if _whole(cell) else str(cell)


def _whole(cell: object) -> bool:
    return isinstance(cell, int) and not isinstance(cell, bool)
