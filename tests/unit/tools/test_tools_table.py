"""The table: names that may be called, their order, and the way back from a name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import UnknownTool
from caal_node.core.events import TierName
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.table import ToolTable

NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")
TIERS: tuple[TierName, ...] = ("agent", "n8n", "mcp")


def spec(tier: TierName, wanted: str, source: str = "s", name: str | None = None) -> ToolSpec:
    return ToolSpec(tier, source, name or wanted, wanted, f"Does {wanted}.", {"type": "object"})


def test_tiers_come_in_priority_order_and_keep_their_own_order() -> None:
    table = ToolTable(
        [spec("mcp", "z"), spec("n8n", "y"), spec("agent", "x"), spec("mcp", "a"), spec("n8n", "b")]
    )
    assert [entry.exposed for entry in table] == ["x", "y", "b", "z", "a"]


def test_the_higher_tier_keeps_a_name_that_two_tools_want() -> None:
    table = ToolTable([spec("n8n", "set_timer"), spec("agent", "set_timer")])
    first, second = table
    assert (first.exposed, first.spec.tier) == ("set_timer", "agent")
    assert second.spec.tier == "n8n"
    assert second.exposed.startswith("set_timer_")
    assert second.exposed != "set_timer"


def test_a_renamed_tool_has_the_same_name_in_every_table() -> None:
    one = ToolTable([spec("agent", "a"), spec("mcp", "a", "server")])
    other = ToolTable([spec("mcp", "a", "server"), spec("agent", "a"), spec("n8n", "b")])
    assert {e.exposed for e in one} <= {e.exposed for e in other}


def test_two_servers_whose_joined_names_are_equal_stay_apart() -> None:
    table = ToolTable([spec("mcp", "a__b__c", "a", "b__c"), spec("mcp", "a__b__c", "a__b", "c")])
    assert sorted((e.spec.source, e.spec.name) for e in table) == [("a", "b__c"), ("a__b", "c")]
    assert len({e.exposed for e in table}) == 2


def test_a_name_outside_the_table_is_refused_with_the_nearest_names() -> None:
    table = ToolTable([spec("agent", "get_current_time"), spec("agent", "set_timer")])
    with pytest.raises(UnknownTool) as raised:
        table.resolve("get_time")
    assert raised.value.valid[0] == "get_current_time"


@pytest.mark.parametrize(
    ("said", "exposed"),
    [
        ("get_weather", "get_weather"),
        ("Get weather", "get_weather"),
        ("SEND-MAIL", "office__send_mail"),
        ("office send mail", "office__send_mail"),
        ("read", None),  # of two servers
        ("files__read", "files__read"),
        ("weather", None),
        ("get_weather_2", None),
        ("?", None),
        ("", None),
    ],
)
def test_a_person_names_a_tool_in_any_spelling(said: str, exposed: str | None) -> None:
    tools = [
        spec("n8n", "get_weather"),
        spec("mcp", "office__send_mail", "office", "send_mail"),
        spec("mcp", "files__read", "files", "read"),
        spec("mcp", "notes__read", "notes", "read"),
    ]
    entry = ToolTable(tools).named(said)
    assert (entry and entry.exposed) == exposed


def test_attributes_of_an_agent_are_not_callable_names() -> None:
    table = ToolTable([spec("agent", "set_timer")])
    for internal in ("update_instructions", "__init__", "session", "llm_node"):
        with pytest.raises(UnknownTool):
            table.resolve(internal)


def test_the_fingerprint_changes_with_what_the_model_reads() -> None:
    one = ToolTable([spec("n8n", "w")]).fingerprints()
    same = ToolTable([spec("n8n", "w")]).fingerprints()
    other = ToolTable(
        [ToolSpec("n8n", "s", "w", "w", "Does something else.", {"type": "object"})]
    ).fingerprints()
    assert one == same
    assert one != other


specs = st.lists(
    st.builds(
        lambda tier, source, name, wanted: ToolSpec(
            tier, source, name, wanted, "", {"type": "object"}
        ),
        st.sampled_from(TIERS),
        st.text(max_size=5),
        st.text(max_size=80),
        st.text(max_size=80),
    ),
    max_size=30,
    unique_by=lambda s: (s.tier, s.source, s.name),
)


@given(specs)
def test_every_tool_gets_one_allowed_name_of_its_own(many: list[ToolSpec]) -> None:
    table = ToolTable(many)
    assert len(table) == len(many)
    assert all(NAME.match(entry.exposed) for entry in table)
    assert {(e.spec.tier, e.spec.source, e.spec.name) for e in table} == {
        (s.tier, s.source, s.name) for s in many
    }
