"""Finding tools by globs and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ToolInfo
from mcp_bridge.discovery.tool_search import ToolFinder, discover


def tool(name: str, description: str = "") -> ToolInfo:
    server, own = name.split("__")
    return ToolInfo(name, server, own, description, {"type": "object"})


TOOLS = (
    tool("time__now", "Tells the current time of a zone."),
    tool("fs__read_file", "Reads a whole file."),
    tool("fs__list", "Lists a folder; says of each entry whether it is a file."),
    tool("mail__send", "Sends a letter."),
)


def found(*patterns: str) -> list[str]:
    return [tool.name for tool in discover(patterns, TOOLS)]


def test_globs_look_at_names_first_and_at_descriptions_too() -> None:
    assert found("*file*") == ["fs__read_file", "fs__list"]
    assert found("fs__*") == ["fs__list", "fs__read_file"]  # ranked: the shorter name
    assert found("READ_*") == ["fs__read_file"]


def test_words_find_what_has_any_of_them_and_more_is_better() -> None:
    assert found("file list") == ["fs__list", "fs__read_file"]
    assert found("what time is it now?")[0] == "time__now"
    assert found("submarine") == []


@pytest.mark.parametrize("pattern", ["", " ", "[", "[!", "***", "(", "\\"])
def test_odd_patterns_are_harmless(pattern: str) -> None:
    assert all(tool in TOOLS for tool in discover(pattern, TOOLS))


def test_several_patterns_are_one_question() -> None:
    assert set(found("*mail*", "time")) == {"mail__send", "time__now"}


@given(st.text(max_size=60))
def test_the_same_question_has_the_same_answer(pattern: str) -> None:
    once = discover(pattern, TOOLS)
    assert once == discover([pattern], TOOLS)
    assert len(set(map(id, once))) == len(once)


def test_the_words_of_a_glob_rank_the_names_that_it_matches() -> None:
    many = [tool(f"disk__profile{n}", "Does it.") for n in range(50)]
    reader = tool("disk__read_file", "Reads a file.")
    assert discover("*file*", [*many, reader])[0] is reader


def test_the_words_of_the_request_rank_them_too() -> None:
    many = [tool(f"fs__file_{n}", "Does something with files.") for n in range(50)]
    reader = tool("fs__read_file", "Reads a whole file.")
    finder = ToolFinder([*many, reader])
    assert finder.find("*file*", request="read me the shopping list")[0] is reader
    assert finder.find("file_7", request="read me the list")[0].name == "fs__file_7"
