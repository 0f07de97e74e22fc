"""Which tools an agent's conversations use often, and how they come to the front of its prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.table import ToolTable
from caal_node.tools.tool_search import OFTEN, REMEMBERED, USED_PART, UsedTools, head_names
from tests.stand_ins.conversation import FakeTier, conversation, weather_spec
from tests.stand_ins.stand_in_model import Call, StandInModel


def used(file: Path, **calls: int) -> UsedTools:
    """A session that has made these calls, and is over."""
    tools = UsedTools(file)
    for name, count in calls.items():
        for _ in range(count):
            tools.note(name)
    tools.save()
    return tools


def often(file: Path) -> tuple[str, ...]:
    tools = UsedTools(file)
    tools.load()
    return tools.often


def test_what_several_sessions_called_often_is_known_the_most_used_first(tmp_path: Path) -> None:
    file = tmp_path / "used" / "Home.json"
    assert often(file) == ()
    used(file, lamp=OFTEN, once=1, timer=3)
    used(file, timer=OFTEN)
    assert often(file) == ("timer", "lamp")


def test_what_was_kept_is_not_counted_twice(tmp_path: Path) -> None:
    tools = used(tmp_path / "a.json", lamp=OFTEN - 1)
    tools.save()
    assert often(tmp_path / "a.json") == ()


def test_habits_change(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    used(file, lamp=REMEMBERED)
    used(file, timer=REMEMBERED)
    used(file, timer=REMEMBERED)
    assert often(file)[0] == "timer"


@pytest.mark.parametrize(
    "kept", ["", "{", "[1]", '{"a": "x", "b": -1, "c": null}', "[" * 100_000, "\xff"]
)
def test_a_file_that_cannot_be_read_counts_for_nothing_and_is_replaced(
    tmp_path: Path, kept: str
) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(kept.encode("latin-1"))
    assert often(file) == ()
    used(file, lamp=OFTEN)
    assert json.loads(file.read_text()) == {"lamp": OFTEN}


def test_a_disk_that_is_full_costs_no_session(tmp_path: Path) -> None:
    (tmp_path / "no folder").write_text("")
    used(tmp_path / "no folder" / "a.json", lamp=OFTEN)


def table(*sizes: int) -> ToolTable:
    return ToolTable(
        ToolSpec("mcp", "home", f"t{n}", f"t{n}", "word " * size, {"type": "object"})
        for n, size in enumerate(sizes)
    )


def test_what_is_used_often_stands_in_front_within_its_part() -> None:
    tools = table(*[100] * 40)
    size = tools.schema_tokens["t0"]
    most = 2 * size * USED_PART
    names = head_names(tools, "find", max_tokens=most, used=("gone", "t7", "t3", "t9"))
    assert names == {"find", "t7", "t3"}
    hidden = head_names(
        tools, "find", max_tokens=most, used=("t7", "t3"), hides=lambda e: e.exposed == "t7"
    )
    assert hidden == {"find", "t3"}
    assert head_names(table(10), "find", max_tokens=most, used=("t0",)) is None


async def test_a_tool_that_is_used_every_day_comes_to_the_front_of_the_next_session() -> None:
    specs = [weather_spec("n8n", f"get_{name}") for name in ("humidity", "weather", "wind")]
    replies = [[Call("get_weather", {"city": "Oslo"})], ["It is warm."]] * OFTEN
    async with StandInModel(*replies) as server:
        async with conversation(server, tier=FakeTier(*specs)) as talk:
            for _ in range(OFTEN):
                await talk.ask("what is the weather in Oslo?")
            size = talk.agent.table.schema_tokens["get_weather"]
        budget = {"CAAL_TOOL_TOKENS": str(size * USED_PART)}
        many = [*specs, *(weather_spec("n8n", f"get_it_{n}") for n in range(20))]
        async with conversation(server, tier=FakeTier(*many), env=budget) as talk:
            front = [entry.exposed for entry in talk.agent.head_entries]
    assert front == ["mcp_discover", "get_weather"]
