"""Examples that a model made: what is believed, what is kept, and for which tool."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.tools.example_maker import valid_examples
from caal_node.tools.example_store import ExampleStore, with_examples
from caal_node.tools.table import ToolTable

PARAMETERS: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
SPEC: Final = ToolSpec("mcp", "w", "w__get", "w__get", "Weather of a city.", PARAMETERS)
OSLO: Final = Example("rain in Oslo", {"city": "Oslo"})


def tool() -> Any:
    (entry,) = ToolTable([SPEC])
    return entry.schema


def written(*rows: tuple[str, Any]) -> str:
    return json.dumps({"examples": [{"say": say, "arguments": args} for say, args in rows]})


def test_what_holds_is_kept() -> None:
    text = written(
        ("is it raining in Oslo", {"city": "Oslo"}),
        ("the next three days in Rome", {"city": "Rome", "days": 3}),
    )
    assert [e.arguments for e in valid_examples(text, tool())] == [
        {"city": "Oslo"},
        {"city": "Rome", "days": 3},
    ]


@pytest.mark.parametrize(
    ("say", "arguments"),
    [
        ("how is the weather", {"city": "Oslo"}),
        ("weather in Oslo", {"city": "Oslo", "days": 3}),
        ("weather in Oslo", {"city": 5}),
        ("weather in Oslo", {"town": "Oslo"}),
        ("weather in Oslo", {}),
        ("", {"city": "Oslo"}),
        ("Oslo " * 60, {"city": "Oslo"}),
    ],
)
def test_what_does_not_hold_is_not(say: str, arguments: Any) -> None:
    assert valid_examples(written((say, arguments)), tool()) == ()


def test_the_same_words_count_once_and_no_more_than_three_are_kept() -> None:
    rows = [("rain in Oslo", {"city": "Oslo"}), ("Rain in Oslo", {"city": "Oslo"})]
    rows += [(f"rain in City{n}", {"city": f"City{n}"}) for n in range(5)]
    kept = valid_examples(written(*rows), tool())
    assert len(kept) == 3
    assert kept[0].utterance == "rain in Oslo"


@given(st.text(max_size=80) | st.builds(json.dumps, st.dictionaries(st.text(), st.text())))
def test_no_reply_raises(text: str) -> None:
    assert valid_examples(text, tool()) == ()


def test_they_are_kept_in_a_file_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "state" / "examples.json"
    ExampleStore(path).add({"w": (SPEC, (OSLO,))})
    (spec,) = with_examples([SPEC], path)
    assert spec.examples == (OSLO,)
    assert list(path.parent.iterdir()) == [path]


def test_what_an_author_wrote_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "examples.json"
    ExampleStore(path).add({"w": (SPEC, (OSLO,))})
    own = replace(SPEC, examples=(Example("sun in Rome", {"city": "Rome"}),))
    assert with_examples([own], path) == [own]


def test_a_tool_that_has_changed_loses_its_old_examples(tmp_path: Path) -> None:
    path = tmp_path / "examples.json"
    ExampleStore(path).add({"w": (SPEC, (OSLO,))})
    changed = replace(SPEC, description="Weather of a region.")
    assert with_examples([changed], path)[0].examples == ()


def test_an_authors_example_that_does_not_fit_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = replace(SPEC, examples=(Example("rain", {"place": "Oslo"}), OSLO))
    with caplog.at_level(logging.WARNING):
        assert with_examples([wrong], tmp_path / "none.json")[0].examples == (OSLO,)
    assert "w__get: 1 examples do not fit" in caplog.text
    assert "Oslo" not in caplog.text


@pytest.mark.parametrize("content", [b"{", b'{"a": 1}', b"\xff\xfe", b'{"a": {"tool": "x"}}'])
def test_a_file_that_cannot_be_read_keeps_nobody_from_speaking(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "examples.json"
    path.write_bytes(content)
    assert with_examples([SPEC], path) == [SPEC]
    assert "--make-examples" in caplog.text
