"""The picture of turns as an SVG: all of it, and nothing that is loaded from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.cli.trace_pictures import Bar, Lane, Picture, write_svg
from caal_node.core.errors import ConfigError

LANES = (
    Lane("person", "person", "spoke for 2.00 s", (Bar(-1.0, -1.0, 0.0),)),
    Lane("request", "request", "first 0.30 s", (Bar(0.0, 1.0, 2.0),)),
    Lane("tool", "get_weather", "ok", (Bar(2.0, 2.0, 2.0),)),
    Lane("cue", "cue", "tool", (), (2.0,)),
)


def drawn(path: Path, *pictures: Picture) -> str:
    write_svg(path, pictures)
    written = path.read_text(encoding="utf-8")
    shown = "".join(ElementTree.fromstring(written).itertext())
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", written)
    return shown.replace("\xa0", " ")


def test_every_turn_has_its_title_lanes_and_notes(tmp_path: Path) -> None:
    shown = drawn(
        tmp_path / "a.svg",
        *(Picture(f"turn {number}", LANES, -1.0, 4.0, 3.0) for number in (1, 2)),
    )
    for words in ("turn 1", "turn 2", "get_weather", "spoke for 2.00 s", "first 0.30 s"):
        assert words in shown


@given(st.text(max_size=90))
def test_whatever_a_trace_says_is_text(tmp_path_factory: pytest.TempPathFactory, said: str) -> None:
    lanes = (Lane("tool", said, said, (Bar(0.0, 0.0, 1.0),)),)
    drawn(tmp_path_factory.mktemp("svg") / "a.svg", Picture(said, lanes, 0.0, 1.0, None))


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Name a file in a folder that can be written"):
        write_svg(tmp_path / "none" / "a.svg", [Picture("a", LANES, 0.0, 1.0, None)])
