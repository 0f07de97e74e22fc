"""Draws the prompts of conversations, request by request: what a server has in its cache, and what
it has to read anew.

`python -m tests.bench.prompt_tokens --picture FILE.svg` draws its runs with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tests.bench.counting_engine import Counts, Read

WIDTH: Final = 900
LEFT: Final = 16
RIGHT: Final = 84
"""Points for what the lines across are called."""
TOKENS_A_POINT: Final = 40.0
LEGEND: Final = 34
TITLE: Final = 26
TURNS: Final = 30
"""Points of the row below a panel, which has the turns' numbers."""
LIMITS: Final = (4_096, 8_192)
"""Usual contexts, in tokens. A panel shows those that are near its longest prompt, or below."""
NEAR: Final = 2
_CACHED: Final = "#c9c9c9"
_TOOLS: Final = "#d9822b"
_REST: Final = "#4a7ab5"
_CUT: Final = "#b3261e"
_LEGEND: Final = {
    _CACHED: "in the server's cache",
    _TOOLS: "read anew: tools, shown or found",
    _REST: "read anew: everything else",
}


@dataclass(frozen=True, slots=True)
class Panel:
    """One conversation."""

    title: str
    counts: Counts

    @property
    def limits(self) -> list[int]:
        return [limit for limit in LIMITS if limit <= NEAR * self.longest]

    @property
    def longest(self) -> int:
        return max(read.length for read in self.counts.reads)

    @property
    def height(self) -> float:
        return max(self.longest, *self.limits, 0) / TOKENS_A_POINT


def draw(panels: Sequence[Panel]) -> str:
    """Return the panels as SVG, one below the other, all on one scale."""
    slot = (WIDTH - LEFT - RIGHT) / max(len(panel.counts.reads) for panel in panels)
    height = LEGEND + sum(TITLE + panel.height + TURNS for panel in panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>',
        *_legend(),
    ]
    top = LEGEND
    for panel in panels:
        parts.append(f'<text x="{LEFT}" y="{top + 14:.1f}" font-weight="bold">{panel.title}</text>')
        floor = top + TITLE + panel.height
        parts += _bars(panel.counts, floor, slot)
        parts += _lines(panel, floor)
        parts += _turns(panel.counts.reads, floor, slot)
        top = floor + TURNS
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> Iterator[str]:
    x = LEFT
    for colour, meaning in _LEGEND.items():
        yield f'<rect x="{x}" y="8" width="11" height="11" rx="2" fill="{colour}"/>'
        yield f'<text x="{x + 16}" y="18">{meaning}</text>'
        x += 220
    yield f'<path d="M{x + 5},6V21" stroke="{_CUT}" stroke-width="1.5" stroke-dasharray="4 2"/>'
    yield f'<text x="{x + 16}" y="18">the window was cut</text>'


def _lines(panel: Panel, floor: float) -> Iterator[str]:
    end = WIDTH - RIGHT
    yield f'<path d="M{LEFT},{floor:.1f}H{end}" stroke="#999"/>'
    for limit in panel.limits:
        y = floor - limit / TOKENS_A_POINT
        yield f'<path d="M{LEFT},{y:.1f}H{end}" stroke="#888" stroke-dasharray="2 3"/>'
        yield f'<text x="{end + 6}" y="{y + 4:.1f}">{limit:,} tokens</text>'


def _bars(counts: Counts, floor: float, slot: float) -> Iterator[str]:
    for at, read in enumerate(counts.reads):
        x, y = LEFT + at * slot, floor
        for tokens, colour in (
            (read.cached, _CACHED),
            (read.tools, _TOOLS),
            (read.tokens - read.tools, _REST),
        ):
            if tokens > 0:
                y -= (tall := tokens / TOKENS_A_POINT)
                yield (
                    f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{slot - 2:.1f}"'
                    f' height="{tall:.1f}" fill="{colour}"/>'
                )
        if at in counts.cuts:
            before = counts.reads[at - 1].length / TOKENS_A_POINT
            yield (
                f'<path d="M{x:.1f},{floor:.1f}v{-before - 12:.1f}" stroke="{_CUT}"'
                ' stroke-width="1.5" stroke-dasharray="4 2"/>'
            )
            yield (f'<text x="{x + 4:.1f}" y="{floor - before - 3:.1f}" fill="{_CUT}">cut</text>')


def _turns(reads: Sequence[Read], floor: float, slot: float) -> Iterator[str]:
    at = 0
    for turn, group in groupby(reads, key=lambda read: read.turn):
        count = len(list(group))
        x, wide = LEFT + at * slot, count * slot
        name = f"{'turn ' if turn == 1 else ''}{turn}" if turn else "start"
        yield f'<path d="M{x:.1f},{floor:.1f}v5" stroke="#999"/>'
        yield (
            f'<text x="{x + wide / 2:.1f}" y="{floor + 14:.1f}" text-anchor="middle">{name}</text>'
        )
        at += count
