"""Which tools stand at a prompt's front, and which are on demand."""

from __future__ import annotations

from typing import Any

import pytest

from caal_node.context.token_estimate import tools_tokens
from caal_node.core.events import TierName
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import FLOOD, head_names

SEARCH = "mcp_discover"
WORDS = "Does what its name says, for whoever asks for it."


def specs(tier: TierName, count: int) -> list[ToolSpec]:
    names = [f"{tier}_{n}" for n in range(count)]
    return [ToolSpec(tier, tier, name, name, WORDS, {"type": "object"}) for name in names]


def table(*, own: int = 0, n8n: int = 0, mcp: int = 0) -> ToolTable:
    return ToolTable([*specs("agent", own), *specs("n8n", n8n), *specs("mcp", mcp)])


def tokens(tools: ToolTable) -> int:
    return tools_tokens(entry.schema for entry in tools)


def head(tools: ToolTable, max_tokens: int = 3_000, **more: Any) -> frozenset[str] | None:
    return head_names(tools, SEARCH, max_tokens=max_tokens, **more)


def test_what_fits_the_budget_stands_in_every_prompt() -> None:
    tools = table(own=2, n8n=2, mcp=2)
    assert head(tools, tokens(tools)) is None
    assert head(tools, tokens(tools) - 1) == {SEARCH}
    assert head(ToolTable(), 0) is None


@pytest.mark.parametrize("tier", ["n8n", "mcp"])
def test_all_tiers_count_and_few_own_methods_stay(tier: str) -> None:
    tools = table(own=5, **{tier: 544})
    assert head(tools) == {SEARCH, *(f"agent_{n}" for n in range(5))}


def test_sixty_own_methods_are_on_demand_too() -> None:
    assert head(table(own=60, mcp=50)) == {SEARCH}
    assert head(table(own=60), 1_000) == {SEARCH}


def test_what_is_pinned_stays_whatever_tier_it_is_of() -> None:
    tools = table(own=60, n8n=544, mcp=50)
    pinned = ("agent_7", "mcp_1?", "gone_*")
    stays = {"agent_7", *(f"mcp_1{n}" for n in range(10))}
    assert head(tools, pinned=pinned) == {SEARCH, *stays}
    assert head(tools, pinned=("*",)) is None, "there is nothing to search for"


def test_a_hidden_tool_needs_no_room_and_has_none() -> None:
    tools = table(own=2, mcp=500)

    def of_mcp(entry: ToolEntry) -> bool:
        return entry.spec.tier == "mcp"

    def first(entry: ToolEntry) -> bool:
        return entry.exposed == "agent_0"

    assert head(tools, hides=of_mcp) is None
    hidden = head(tools, hides=first, pinned=("agent_0",))
    assert hidden == {SEARCH, "agent_1"}


def test_between_two_reloads_the_front_stays_and_only_loses_what_is_gone() -> None:
    before = head(table(own=3, mcp=500))
    assert before is not None
    assert head(table(own=3, mcp=2), before=before, reloaded=False) == before
    assert head(table(own=2, mcp=500), before=before, reloaded=False) == before - {"agent_2"}
    assert head(table(own=3, mcp=2), before=before) is None, "a reload settles it anew"


def test_between_two_reloads_only_a_flood_puts_tools_on_demand() -> None:
    few, more = table(own=1, mcp=3), table(own=1, mcp=8)
    budget = tokens(few)
    assert budget < tokens(more) < FLOOD * budget
    assert head(more, budget, before=None, reloaded=False) is None
    assert head(table(own=1, mcp=500), 3_000, before=None, reloaded=False) == {SEARCH, "agent_0"}
