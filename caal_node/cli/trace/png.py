"""Draws turns as one PNG, a panel for each, all with the same scale of seconds. It needs Pillow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from caal_node.cli.trace.picture import LEGEND, Lane, LaneKind, Picture, tick_label, ticks
from caal_node.core.errors import ConfigError

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

# All in pixels.
WIDTH: Final = 1_600
MARGIN: Final = 28
LABEL: Final = 270
"""Left of the bars: a lane's name."""
NOTE: Final = 360
"""Right of the bars: what is said of a lane."""
TITLE: Final = 46
LANE: Final = 36
BAR: Final = 22
AXIS: Final = 44
GAP: Final = 26
"""Between two panels."""
TEXT: Final = 21
SMALL: Final = 18
MARK: Final = 9
"""Half the width of a mark, which is a diamond."""

COLOUR_COUNT: Final = 256
"""Colours of the file: the bars' own, and the shades of the letters' edges."""
INK: Final = "#1f2328"
DIM: Final = "#6a737d"
GRID: Final = "#e3e6ea"
FIRST_WORD: Final = "#1a7f37"
COLOURS: Final[dict[LaneKind, tuple[str, str]]] = {
    "person": ("#8250df", "#8250df"),
    "words": ("#c9ced6", "#c9ced6"),
    "request": ("#b6d4fb", "#0969da"),
    "tool": ("#e16f24", "#e16f24"),
    "cue": ("#bf8700", "#bf8700"),
    "voice": ("#b4e3bf", "#2da44e"),
}
"""The light part of a bar, and its solid one."""


def write_png(path: Path, pictures: Sequence[Picture]) -> None:
    """Write the picture.

    Raises:
        ConfigError: Pillow is not installed, or the file cannot be written.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise ConfigError(
            "a PNG is drawn with Pillow, which is not installed. Run: pip install "
            "'caal-node[trace]', or leave out --png"
        ) from None
    heights = [TITLE + LANE * len(picture.lanes) + AXIS for picture in pictures]
    height = 2 * MARGIN + sum(heights) + GAP * (len(pictures) - 1) + LANE
    image = Image.new("RGB", (WIDTH, height), "white")
    fonts = [cast("FreeTypeFont", ImageFont.load_default(size)) for size in (TEXT, SMALL)]
    draw = _Drawing(
        ImageDraw.Draw(image),
        *fonts,
        begin_s=min(picture.begin_s for picture in pictures),
        end_s=max(picture.end_s for picture in pictures),
    )
    top = MARGIN
    for picture, panel in zip(pictures, heights, strict=True):
        draw.panel(picture, top)
        top += panel + GAP
    draw.legend(top)
    try:
        # A palette makes the file a third as large.
        image.quantize(COLOUR_COUNT, dither=Image.Dither.NONE).save(path, "PNG", optimize=True)
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror or error}. Name a file in a folder that can be written"
        ) from None


class _Drawing:
    """Draws panels whose bars share one scale, from `begin_s` to `end_s`."""

    def __init__(
        self,
        draw: ImageDraw,
        text: FreeTypeFont,
        small: FreeTypeFont,
        *,
        begin_s: float,
        end_s: float,
    ) -> None:
        self._draw: Final = draw
        self._text: Final = text
        self._small: Final = small
        self._begin_s: Final = begin_s
        self._end_s: Final = end_s
        self._across: Final = (WIDTH - LABEL - NOTE - 2 * MARGIN) / max(end_s - begin_s, 1e-3)

    def panel(self, picture: Picture, top: int) -> None:
        title = _fitted(picture.title, WIDTH - 2 * MARGIN, self._text.getlength)
        self._draw.text((MARGIN, top), title, INK, self._text)
        lanes_top = top + TITLE
        bottom = lanes_top + LANE * len(picture.lanes)
        self._axis(lanes_top, bottom)
        if picture.first_word_s is not None:
            x = self._x(picture.first_word_s)
            for y in range(lanes_top, bottom, 10):
                self._draw.line((x, y, x, min(y + 5, bottom)), FIRST_WORD, 2)
        for number, lane in enumerate(picture.lanes):
            self._lane(lane, lanes_top + LANE * number + LANE // 2)

    def legend(self, top: int) -> None:
        self._draw.text((MARGIN, top), LEGEND, DIM, self._small)

    def _x(self, at_s: float) -> float:
        return MARGIN + LABEL + (at_s - self._begin_s) * self._across

    def _axis(self, top: int, bottom: int) -> None:
        shown = ticks(self._begin_s, self._end_s)
        for tick in shown:
            x = self._x(tick)
            self._draw.line((x, top, x, bottom), GRID, 2)
            last = " s" if tick == shown[-1] else ""
            words = tick_label(tick, shown) + last
            self._draw.text((x, bottom + 6), words, DIM, self._small, anchor="ma")
        self._draw.line((self._x(self._begin_s), bottom, self._x(self._end_s), bottom), DIM, 2)

    def _lane(self, lane: Lane, middle: int) -> None:
        light, solid = COLOURS[lane.kind]
        label = _fitted(lane.label, LABEL - 16, self._text.getlength)
        self._draw.text((MARGIN, middle), label, INK, self._text, anchor="lm")
        for bar in lane.bars:
            top, bottom = middle - BAR // 2, middle + BAR // 2
            begin, turns_solid, end = map(self._x, (bar.begin_s, bar.solid_s, bar.end_s))
            self._draw.rectangle((begin, top, max(end, begin + 2), bottom), light)
            # What takes no time can be seen all the same.
            self._draw.rectangle((min(turns_solid, end - 3), top, end, bottom), solid)
        for mark_s in lane.marks_s:
            x = self._x(mark_s)
            corners = (x - MARK, middle), (x, middle - MARK), (x + MARK, middle), (x, middle + MARK)
            self._draw.polygon(corners, solid)
        note = _fitted(lane.note, NOTE - 16, self._small.getlength)
        self._draw.text((WIDTH - MARGIN - NOTE + 16, middle), note, DIM, self._small, anchor="lm")


def _fitted(text: str, width: float, length: Callable[[str], float]) -> str:
    if length(text) <= width:
        return text
    while text and length(f"{text}...") > width:
        text = text[:-1]
    return f"{text}..."
