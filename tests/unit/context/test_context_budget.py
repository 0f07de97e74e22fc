"""How a context is shared out: talk keeps a floor, and tools that do not fit are left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.config.settings import Settings
from caal_node.context.builder import ContextBuilder
from caal_node.context.token_estimate import PromptTools
from caal_node.context.window import ContextBudget, WindowLimits, cut, fitting
from caal_node.core.items import AssistantItem, Item, SystemItem, UserItem
from caal_node.core.tool_spec import ToolSchema
from caal_node.prompt_builder import budget_of, too_many_tools


def schema(name: str, words: int = 20) -> ToolSchema:
    return {
        "type": "function",
        "function": {"name": name, "description": "word " * words, "parameters": {}},
    }


def talk(turns: int) -> list[Item]:
    items: list[Item] = [SystemItem("s")]
    for number in range(turns):
        items += [UserItem(f"q{number}"), AssistantItem("word " * 20)]
    return [*items, UserItem("now")]


def tokens(tools: PromptTools) -> int:
    return tools.schema_tokens


def test_with_more_schemas_than_the_window_holds_earlier_turns_are_kept_all_the_same() -> None:
    builder = ContextBuilder()
    builder.share(ContextBudget(8_192, 6_144))
    kept = builder.build(talk(8), tools_tokens=7_000)
    assert kept == tuple(talk(8))


def test_the_floor_is_cut_in_blocks_like_any_window() -> None:
    limits = WindowLimits(100, 1_000, tools_tokens=5_000, talk=1_000)
    assert cut(talk(100), limits).kept == cut(talk(100), WindowLimits(100, 1_000 + 128)).kept


def test_the_floor_gives_way_where_the_server_finds_the_prompt_too_long() -> None:
    builder = ContextBuilder()
    builder.share(ContextBudget(8_192, 6_144))
    before = len(builder.build(talk(30), tools_tokens=7_000))
    assert builder.tighten(talk(30), tools_tokens=7_000)
    after = len(builder.build(talk(30), tools_tokens=7_000))
    builder.share(ContextBudget(8_192, 6_144))
    assert len(builder.build(talk(30), tools_tokens=7_000)) == after < before


@pytest.mark.parametrize(
    ("told", "given", "context", "window"),
    [
        (None, {}, 8_192, 6_144),
        (None, {"num_ctx": 4_096}, 4_096, 3_072),
        (32_768, {}, 32_768, 24_576),
        (2_048, {}, 2_048, 1_536),
        (32_768, {"num_ctx": 16_384}, 16_384, 12_288),
        (4_096, {"num_ctx": 16_384}, 4_096, 3_072),
    ],
)
def test_the_servers_context_is_used_and_settings_narrow_it(
    told: int | None, given: dict[str, Any], context: int, window: int
) -> None:
    found = budget_of(Settings(api="openai", **given), told)
    assert (found.context, found.window) == (context, window)


def test_tools_that_do_not_fit_are_left_out_from_the_end_and_the_search_stays() -> None:
    tools = PromptTools(tuple(map(schema, ["a", "b", "c", "d", "find"])))
    most = tokens(tools.only(("a", "b", "find"))) + 5
    assert fitting(tools, most, tokens, "find").names == ("a", "b", "find")
    assert fitting(tools, tokens(tools), tokens, "find") is tools
    assert fitting(tools, 0, tokens, "find").names == ("find",)


def test_a_small_tool_behind_a_large_one_is_kept() -> None:
    tools = PromptTools((schema("large", 5_000), schema("small")))
    assert fitting(tools, 1_000, tokens, "find").names == ("small",)


@given(
    st.lists(st.integers(0, 400), max_size=30),
    st.integers(512, 20_000),
    st.integers(0, 2_000),
)
def test_the_context_that_is_advised_holds_all_tools(
    sizes: list[int], context: int, head: int
) -> None:
    tools = PromptTools(tuple(schema(f"t{n}", size) for n, size in enumerate(sizes)))
    small = ContextBudget(context, context * 3 // 4)
    kept = fitting(tools, small.tools(head), tokens, "find")
    if kept.names == tools.names:
        return
    advised = budget_of(Settings(num_ctx=small.context_for(tokens(tools), head)), None)
    assert fitting(tools, advised.tools(head), tokens, "find").names == tools.names


@pytest.mark.parametrize(
    ("context", "front"), [(4_096, 1_024), (8_192, 2_755), (12_288, 6_000), (131_072, 6_000)]
)
def test_tools_in_front_leave_room_for_twenty_turns(context: int, front: int) -> None:
    assert ContextBudget(context, context * 3 // 4).front(384) == front


def test_what_does_not_fit_is_said_with_its_fix() -> None:
    shared = ContextBudget(2_048, 1_536, told=True)
    found, fix = too_many_tools(Settings(), shared, 5_000, 256, list("abcdefg"))
    assert "left out: a, b, c, d, e and 2 more" in found
    assert fix.startswith("set CAAL_NUM_CTX=")
    _, fix = too_many_tools(Settings(api="openai"), shared, 5_000, 256, ["a"])
    assert fix.startswith("start the model's server with a context of ")
