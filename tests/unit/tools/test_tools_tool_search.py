"""The search over the tools of all tiers: what it makes callable, and what is told of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from caal_node.core.errors import InvalidArguments
from caal_node.core.events import TierName
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools import tool_search
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import (
    ToolSearch,
    is_search,
    search_answer,
    search_patterns,
    search_spec,
)
from mcp_bridge.discovery.tool_search import TOOLS_MAX
from tests.stand_ins.embedding_stand_ins import StandInEmbedder


def spec(tier: TierName, name: str, words: str, **properties: str) -> ToolSpec:
    shown = {key: {"type": "string", "description": about} for key, about in properties.items()}
    schema = {"type": "object", "properties": shown, "required": list(shown)[:1]}
    return ToolSpec(tier, tier, name, name, words, schema)


LAMP = spec("agent", "set_lamp", "Switches a lamp.", room="where it stands", color="any")
ROUTE = spec("n8n", "plan_route", "Plans a route by train.", to="the station")
UNLOCK = spec("mcp", "house__unlock", "Unlocks the lamp cabinet.", door="which")
TABLE = ToolTable([LAMP, ROUTE, UNLOCK])


def hides_unlock(entry: ToolEntry) -> bool:
    return entry.exposed == "house__unlock"


async def names(search: ToolSearch, *patterns: str) -> list[str]:
    return [entry.exposed for entry in await search.find_shown(TABLE, patterns)]


async def test_every_tier_is_found_and_nothing_that_a_policy_hides() -> None:
    search = ToolSearch(None, hides_unlock)
    assert await names(search, "lamp") == ["set_lamp"]
    assert await names(search, "train route", "*lock*") == ["plan_route"]
    everything = [entry.exposed for entry in await search.find(TABLE, ["*"])]
    assert everything == ["set_lamp", "plan_route", "house__unlock"], "as the owner sees them"
    await search.aclose()


async def test_the_words_of_a_person_bring_no_hidden_tool_and_none_that_is_known() -> None:
    said = "unlock the lamp cabinet door and plan a route by train to the station"
    search = ToolSearch(None, hides_unlock)
    fitting = await search.fitting(TABLE, said, ())
    assert "plan_route" in fitting
    assert "house__unlock" not in fitting
    assert "plan_route" not in await search.fitting(TABLE, said, ("plan_route",))
    assert "house__unlock" in await ToolSearch(None, lambda _: False).fitting(TABLE, said, ())


async def test_an_index_that_is_not_ready_in_time_leaves_a_turn_without_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_search, "FITTING_S", 0.0)
    search = ToolSearch(None, lambda _: False)
    assert await search.fitting(TABLE, "switch the lamp", ()) == ()
    assert await names(search, "lamp") == ["set_lamp", "house__unlock"], "it goes on being made"


async def test_vectors_are_made_before_anybody_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    embedder = StandInEmbedder()
    begun = embedder.hold()
    search = ToolSearch(embedder, lambda _: False)
    search.prepare(TABLE)
    async with asyncio.timeout(10):
        await begun.wait()
    await search.aclose()
    assert embedder.cancelled == 1
    assert len(asyncio.all_tasks()) == 1


async def test_one_index_is_made_of_a_table_however_many_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[ToolTable] = []

    class Counted(tool_search.ToolCatalog):
        def __init__(self, table: ToolTable) -> None:
            made.append(table)
            super().__init__(table)

    monkeypatch.setattr(tool_search, "ToolCatalog", Counted)
    search = ToolSearch(None, lambda _: False)
    await asyncio.gather(*(search.find(TABLE, ["lamp"]) for _ in range(5)))
    await search.fitting(TABLE, "the lamp", ())
    assert made == [TABLE]
    await search.find(ToolTable([LAMP]), ["lamp"])
    assert len(made) == 2


def test_what_is_callable_is_told_with_all_that_a_call_needs() -> None:
    told, answer = search_answer([TABLE.resolve("set_lamp"), TABLE.resolve("plan_route")])
    assert [entry.exposed for entry in told] == ["set_lamp", "plan_route"]
    assert answer == {
        "callable_now": {
            "set_lamp": "(room (where it stands), color? (any)): Switches a lamp.",
            "plan_route": "(to (the station))",  # its name says what it is for
        }
    }


def test_the_best_are_callable_and_the_others_are_named() -> None:
    table = ToolTable([spec("mcp", f"house__t{n}", "Does it.", x="y") for n in range(30)])
    told, answer = search_answer(list(table))
    assert [entry.exposed for entry in told] == list(answer["callable_now"])
    assert len(told) == TOOLS_MAX
    assert len(answer["also_match"]) == 26


def test_servers_that_are_being_set_up_are_told_of() -> None:
    _, answer = search_answer([], ["garage"])
    assert (answer["found"], answer["not_ready_yet"]) == (0, ["garage"])
    assert "not_ready_yet" not in search_answer([])[1]


def test_the_search_names_its_sources_and_has_a_name_of_its_own() -> None:
    search = TABLE.beside(search_spec(TABLE))
    assert (search.exposed, is_search(search.spec)) == ("mcp_discover", True)
    assert "agent, n8n, mcp" in search.schema["function"]["description"]
    assert "mcp_discover" not in TABLE
    taken = ToolTable([spec("agent", "mcp_discover", "Something else.")])
    other = taken.beside(search_spec(taken))
    assert other.exposed != "mcp_discover"
    assert is_search(other.spec)
    assert not is_search(taken.resolve("mcp_discover").spec)


@pytest.mark.parametrize(
    ("value", "patterns"),
    [("lamp", ["lamp"]), (["lamp", " ", 3, "*route*"], ["lamp", "*route*"])],
)
def test_a_text_in_place_of_a_list_is_understood(value: Any, patterns: list[str]) -> None:
    assert search_patterns(value) == patterns


@pytest.mark.parametrize("value", [None, " ", [], [" "], {"a": 1}])
def test_a_search_for_nothing_is_asked_for_words(value: Any) -> None:
    with pytest.raises(InvalidArguments, match="patterns"):
        search_patterns(value)


async def test_a_large_tool_is_told_whole() -> None:
    wide = spec("mcp", "wide", "Takes much.", **{f"field_{n}": "what it is" for n in range(300)})
    _, answer = search_answer(list(ToolTable([wide])))
    assert "field_299" in json.dumps(answer)
