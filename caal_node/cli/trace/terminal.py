"""Draws turns as lines of text: for a terminal of any width, without colour, and in ASCII."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from caal_node.cli.trace.picture import LaneKind, Picture, tick_label, ticks

LABEL: Final = 14
"""Columns of a lane's name; a longer one is cut."""
NOTE: Final = 27
"""Columns of what is said of a lane."""
BAR_MIN: Final = 16
BAR_MAX: Final = 100
STYLES: Final[dict[LaneKind, str]] = {
    "person": "cyan",
    "words": "dim",
    "request": "blue",
    "tool": "magenta",
    "cue": "yellow",
    "voice": "green",
}


@dataclass(frozen=True, slots=True)
class _Signs:
    light: str
    solid: str
    mark: str
    first_word: str


_UNICODE: Final = _Signs("░", "█", "◆", "│")
_ASCII: Final = _Signs(".", "#", "*", "|")


def print_pictures(out: Console, pictures: Iterable[Picture]) -> None:
    """Print each picture, with a line between two."""
    # In a file without an encoding of its own, as on a dumb terminal, letters must do.
    signs = _ASCII if out.options.ascii_only else _UNICODE
    columns = min(max(out.width - LABEL - NOTE - 2, BAR_MIN), BAR_MAX)
    for number, picture in enumerate(pictures):
        if number:
            out.print()
        for line in _lines(picture, columns, signs):
            out.print(line)


def _lines(picture: Picture, columns: int, signs: _Signs) -> Iterable[Text]:
    across = (columns - 1) / max(picture.end_s - picture.begin_s, 1e-3)

    def place(at_s: float) -> int:
        return min(max(round((at_s - picture.begin_s) * across), 0), columns - 1)

    yield Text(_printable(picture.title), style="bold")
    for lane in picture.lanes:
        cells = [" "] * columns
        if picture.first_word_s is not None:
            cells[place(picture.first_word_s)] = signs.first_word
        for bar in lane.bars:
            begin, solid, end = map(place, (bar.begin_s, bar.solid_s, bar.end_s))
            cells[begin : end + 1] = signs.light * (solid - begin) + signs.solid * (end + 1 - solid)
        for mark_s in lane.marks_s:
            cells[place(mark_s)] = signs.mark
        yield Text.assemble(
            f"{_fitted(lane.label, LABEL)} ",
            ("".join(cells), STYLES[lane.kind]),
            (f" {_fitted(lane.note, NOTE).rstrip()}", "dim"),
        )
    yield Text(" " * (LABEL + 1) + _axis(picture, columns, place), style="dim")


def _axis(picture: Picture, columns: int, place: Callable[[float], int]) -> str:
    """Return a line of seconds below their places; a number that does not fit is left out."""
    cells = [" "] * (columns + NOTE)
    shown = ticks(picture.begin_s, picture.end_s)
    free = 0
    for tick in shown:
        label = tick_label(tick, shown)
        at = max(place(tick) - len(label) // 2, 0)
        if at >= free:
            cells[at : at + len(label)] = label
            free = at + len(label) + 1
    return "".join(cells).rstrip() + " s"


def _fitted(text: str, columns: int) -> str:
    """Return `text` in so many columns; letters of some scripts take two."""
    text = _printable(text)
    if cell_len(text) > columns:
        text = f"{set_cell_size(text, columns - 1)}~"
    return set_cell_size(text, columns)


def _printable(text: str) -> str:
    """Return `text` without what a terminal would obey and a picture may not hold."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
