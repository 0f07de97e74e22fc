"""The picture of turns as a PNG: readable whatever stands in the trace, and small."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caal_node.cli.trace import png
from caal_node.cli.trace.picture import Bar, Lane, Picture, tick_label, ticks
from caal_node.cli.trace.png import write_png
from caal_node.core.errors import ConfigError

LONG = "W" * 60
LANES = (
    Lane("person", "person", "spoke for 2.00 s", (Bar(-1.0, -1.0, 0.0),)),
    Lane("request", "request", "first 0.30 s", (Bar(0.0, 1.0, 2.0),)),
    Lane("tool", LONG, LONG, (Bar(2.0, 2.0, 2.0),)),
    Lane("cue", "cue", "tool", (), (2.0,)),
)
TURN = Picture(LONG * 4, LANES, -1.0, 4.0, 3.0)
WHITE = (255, 255, 255)
BARS_LEFT = png.MARGIN + png.LABEL
BARS_RIGHT = png.WIDTH - png.MARGIN - png.NOTE


def drawn(path: Path, *pictures: Picture) -> Image.Image:
    write_png(path, pictures)
    with Image.open(path) as image:
        assert image.format == "PNG"
        return image.convert("RGB")


def colours(image: Image.Image, left: int, right: int, top: int, bottom: int) -> set[object]:
    found = image.crop((left, top, right, bottom)).getcolors(1 << 20)
    assert found is not None
    return {colour for _, colour in found}


def rgb(name: str) -> tuple[int, ...]:
    return tuple(int(name[at : at + 2], 16) for at in (1, 3, 5))


def middle_of(lane: int) -> int:
    return png.MARGIN + png.TITLE + png.LANE * lane + png.LANE // 2


def column_of(at_s: float) -> int:
    return round(BARS_LEFT + (at_s + 1.0) * (BARS_RIGHT - BARS_LEFT) / 5.0)


def test_a_bar_is_light_while_it_waits_and_solid_then(tmp_path: Path) -> None:
    image = drawn(tmp_path / "a.png", TURN)
    light, solid = map(rgb, png.COLOURS["request"])
    assert image.getpixel((column_of(0.5), middle_of(1))) == light
    assert image.getpixel((column_of(1.5), middle_of(1))) == solid
    assert image.getpixel((column_of(2.7), middle_of(1))) == WHITE


def test_what_takes_no_time_is_seen(tmp_path: Path) -> None:
    image = drawn(tmp_path / "a.png", TURN)
    at = column_of(2.0)
    assert rgb(png.COLOURS["tool"][1]) in colours(
        image, at - 4, at + 2, middle_of(2), middle_of(2) + 1
    )
    assert image.getpixel((at, middle_of(3))) == rgb(png.COLOURS["cue"][1])


def test_names_and_notes_run_neither_into_the_bars_nor_out_of_the_picture(tmp_path: Path) -> None:
    image = drawn(tmp_path / "a.png", TURN)
    lanes = png.MARGIN + png.TITLE, middle_of(len(LANES) - 1)
    assert colours(image, BARS_LEFT - 10, BARS_LEFT - 1, *lanes) == {WHITE}
    assert colours(image, BARS_RIGHT + 4, BARS_RIGHT + 15, *lanes) == {WHITE}
    assert colours(image, png.WIDTH - 10, png.WIDTH, 0, image.height) == {WHITE}


def test_turns_stand_below_each_other_with_one_scale(tmp_path: Path) -> None:
    short = Picture("short", LANES[:2], -1.0, 2.0, None)
    image = drawn(tmp_path / "a.png", TURN, short)
    below = png.TITLE + png.LANE * len(LANES) + png.AXIS + png.GAP
    solid = rgb(png.COLOURS["request"][1])
    assert image.getpixel((column_of(1.5), below + middle_of(1))) == solid
    assert image.height > drawn(tmp_path / "b.png", TURN).height


def test_the_numbers_of_the_axis_do_not_touch(tmp_path: Path) -> None:
    for end_s in (0.01, 0.7, 4.0, 99.0, 12_345.0):
        image = drawn(tmp_path / "a.png", Picture("a", LANES[:1], -end_s / 50, end_s, None))
        top = png.MARGIN + png.TITLE + png.LANE + 6
        strip = np.asarray(image)[top : top + png.SMALL + 4, BARS_LEFT - 60 : BARS_RIGHT + 60]
        text = "".join("x" if ink else " " for ink in (strip < 255).any(axis=(0, 2)))
        numbers = [each for each in text.split(" " * 14) if each.strip()]
        shown = ticks(-end_s / 50, end_s)
        assert len(numbers) == len(shown), (end_s, shown)


@pytest.mark.parametrize(
    ("begin_s", "end_s", "labels"),
    [
        (-1.0, 4.0, ["-1.0", "-0.5", "0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5", "4.0"]),
        (0.0, 0.09, ["0", "0.01", "0.02", "0.03", "0.04", "0.05", "0.06", "0.07", "0.08", "0.09"]),
        (0.0, 45.0, ["0", "5", "10", "15", "20", "25", "30", "35", "40", "45"]),
        (0.0, 1e9, [str(each * 10**8) if each else "0" for each in range(11)]),
    ],
)
def test_the_axis_has_round_seconds(begin_s: float, end_s: float, labels: list[str]) -> None:
    shown = ticks(begin_s, end_s)
    assert [tick_label(tick, shown) for tick in shown] == labels


def test_a_whole_picture_of_ten_turns_is_small(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    drawn(path, *[TURN] * 10)
    assert path.stat().st_size < 400_000


def test_without_pillow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ConfigError, match=r"pip install 'caal-node\[trace\]', or leave out --png"):
        write_png(tmp_path / "a.png", [TURN])


def test_a_picture_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a\.png: .*Name a file in a folder"):
        write_png(tmp_path / "none" / "a.png", [TURN])
