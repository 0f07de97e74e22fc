"""The remote sources of an agent: what is listed, what changes meanwhile, what fails, and what
LiveKit is given of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from caal_node.context.tool_data import ToolDataCache
from caal_node.core.events import TierName
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.source import CallConversation, ToolListing, ToolSource
from caal_node.tools.tool_search import PromptHead


def listing(tier: TierName, *names: str) -> ToolListing:
    return ToolListing(
        tuple(ToolSpec(tier, tier, name, name, "", {"type": "object"}) for name in names)
    )


class Listed(ToolSource):
    """A source that lists `now`, once it may, and reports changes when it is told to."""

    def __init__(self, now: ToolListing | Exception) -> None:
        self.now = now
        self.may_list, self.was_listed = asyncio.Event(), asyncio.Event()
        self.may_list.set()
        self.woken: list[str] = []
        self.changed: Callable[[ToolListing], None] = lambda listing: None

    async def discover(self) -> ToolListing:
        await self.may_list.wait()
        self.was_listed.set()
        if isinstance(self.now, Exception):
            raise self.now
        return self.now

    async def call(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        conversation: CallConversation | None = None,
    ) -> Any:
        raise AssertionError("nothing is called here")

    def wake(self, specs: Iterable[ToolSpec]) -> None:
        self.woken += [spec.name for spec in specs]

    def watch_changes(self, changed: Callable[[ToolListing], None]) -> None:
        self.changed = changed


class Own:
    """An agent whose own tools are those that `specs` has by then."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = specs

    async def own_specs(self) -> Sequence[ToolSpec]:
        return tuple(self._specs)


class Noted(PromptHead):
    """Notes for which tables the head is chosen."""

    reloads: ClassVar[list[bool]] = []

    def names(self, *given: Any, reloaded: bool, **limits: Any) -> frozenset[str] | None:
        self.reloads.append(reloaded)
        return super().names(*given, reloaded=reloaded, **limits)


@asynccontextmanager
async def toolset(
    options: Mapping[str, Any] | None = None, **sources: ToolSource
) -> AsyncGenerator[RemoteToolset]:
    tiers: Any = sources
    remote = RemoteToolset(tiers, Pipeline(ToolDataCache()), **(options or {}))
    await remote.setup()
    try:
        yield remote
    finally:
        await remote.aclose()


async def until_offered(remote: RemoteToolset, *names: str) -> None:
    async with asyncio.timeout(10):
        while [entry.exposed for entry in remote.table] != list(names):  # noqa: ASYNC110 - as below
            await asyncio.sleep(0.001)  # a table announces nothing


async def test_a_change_that_is_reported_while_others_are_listed_is_not_lost() -> None:
    quick, slow = Listed(listing("mcp", "a")), Listed(listing("n8n", "s"))
    async with toolset(mcp=quick, n8n=slow) as remote:
        slow.may_list.clear()
        quick.was_listed.clear()
        reload = asyncio.create_task(remote.reload())
        await quick.was_listed.wait()
        await asyncio.sleep(0)
        quick.changed(listing("mcp", "a", "b"))
        slow.may_list.set()
        await reload
        await until_offered(remote, "s", "a", "b")


async def test_of_two_changes_the_later_one_stays() -> None:
    source = Listed(listing("mcp", "a"))
    async with toolset(mcp=source) as remote:
        source.changed(listing("mcp", "a", "b"))
        source.changed(listing("mcp", "b"))
        await until_offered(remote, "b")


async def test_a_source_that_fails_as_a_whole_keeps_its_tools_and_says_why() -> None:
    broken, other = Listed(listing("mcp", "a")), Listed(listing("n8n", "s"))
    async with toolset(mcp=broken, n8n=other) as remote:
        broken.now, other.now = ValueError("secret"), listing("n8n", "s", "t")
        await remote.reload()
        await until_offered(remote, "s", "t", "a")
        assert remote.failed == {"mcp": "listing its tools failed with ValueError"}
        broken.now = listing("mcp", "a")
        await remote.reload()
        assert remote.failed == {}


async def test_an_example_that_does_not_fit_its_schema_is_left_out_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    (spec,) = listing("mcp", "a").specs
    right, wrong = Example("rain in Oslo", {"city": "Oslo"}), Example("rain", {"place": "Rome"})
    spec = replace(spec, parameters=parameters, examples=(wrong, right))
    with caplog.at_level(logging.WARNING):
        async with toolset(mcp=Listed(ToolListing((spec,)))) as remote:
            (entry,) = remote.table
    assert entry.spec.examples == (right,)
    assert "a: 1 examples do not fit its schema" in caplog.text
    assert "Rome" not in caplog.text


def given(tools: Sequence[Any]) -> list[str]:
    return [tool.id for tool in tools]


async def test_livekit_is_given_the_head_alone_and_the_others_when_a_turn_tells_of_them() -> None:
    mcp, n8n = Listed(listing("mcp", "a", "b")), Listed(listing("n8n", "s"))
    head = PromptHead(max_tokens=1_000, pinned=("b",))
    async with toolset({"head": head}, mcp=mcp, n8n=n8n) as remote:
        assert (remote.head, given(remote.tools)) == (None, ["s", "a", "b"])
        remote.choose_head(most=1)
        assert given(remote.tools) == ["mcp_discover", "b"]
        assert [entry.exposed for entry in remote.head_entries] == ["mcp_discover", "b"]
        assert [name for name in ("a", "mcp_discover") if remote.stands_in_head(name)] == [
            "mcp_discover"
        ]
        assert given(remote.function_tools(["s", "mcp_discover", "gone"])) == ["s", "mcp_discover"]
        assert {entry.exposed for entry in remote.table} == {"s", "a", "b"}
        remote.choose_head()
        assert given(remote.tools) == ["s", "a", "b"]


async def test_a_tool_has_one_form_for_livekit_until_it_is_another_tool() -> None:
    source = Listed(listing("mcp", "a", "b"))
    async with toolset(mcp=source) as remote:
        first = remote.function_tools(["a", "mcp_discover"])
        await remote.reload()
        assert list(map(id, remote.function_tools(["a", "mcp_discover"]))) == list(map(id, first))
        changed = ToolSpec("mcp", "mcp", "a", "a", "Other words.", {"type": "object"})
        source.now = ToolListing((changed,))
        await remote.reload()
        assert remote.function_tools(["a"])[0] is not first[0]
        assert remote.function_tools(["b"]) == []


async def test_own_tools_are_found_and_have_no_form_here() -> None:
    own = ToolSpec("agent", "Home", "set_lamp", "set_lamp", "Switches a lamp.", {"type": "object"})
    async with toolset({"own": Own([own])}, mcp=Listed(listing("mcp", "a"))) as remote:
        assert await remote.fitting("switch the lamp") == ("set_lamp",)
        assert await remote.fitting("switch the lamp", {"set_lamp"}) == ()
        assert remote.function_tools(["set_lamp"]) == []
        assert remote.entry("set_lamp") is remote.table.get("set_lamp")
        assert remote.entry("mcp_discover") is remote.search


async def test_whose_tools_are_told_of_prepares_for_their_calls() -> None:
    lamp = ToolSpec("mcp", "home", "home__lamp", "home__lamp", "Switches a lamp.", {})
    rain = ToolSpec("n8n", "n8n", "rain", "rain", "Says when rain falls.", {})
    mcp, n8n = Listed(ToolListing((lamp,))), Listed(ToolListing((rain,)))
    async with toolset(mcp=mcp, n8n=n8n) as remote:
        assert await remote.fitting("switch the lamp") == ("home__lamp",)
        assert (mcp.woken, n8n.woken) == (["home__lamp"], [])


async def test_a_new_table_says_whether_a_reload_has_made_it() -> None:
    said = Noted.reloads = []
    source = Listed(listing("mcp", "a"))
    async with toolset({"head": Noted(1_000)}, mcp=source) as remote:
        assert said == [True]
        source.changed(listing("mcp", "a", "b"))
        await until_offered(remote, "a", "b")
        await remote.reload()
        await remote.refresh([])
        assert said == [True, False, True, True]


async def test_only_a_reload_changes_the_search_that_every_prompt_shows() -> None:
    source = Listed(listing("mcp", "a"))
    async with toolset(mcp=source) as remote:
        before = remote.search
        other = ToolSpec("mcp", "garage", "garage__b", "garage__b", "", {"type": "object"})
        source.now = ToolListing((*listing("mcp", "a").specs, other))
        source.changed(source.now)
        await until_offered(remote, "a", "garage__b")
        assert remote.search is before
        await remote.reload()
        assert "garage" in remote.search.schema["function"]["description"]


async def test_what_livekits_toolsets_have_found_since_is_found_and_leaves_the_table() -> None:
    own: list[ToolSpec] = []
    source = Listed(listing("mcp", "a"))
    async with toolset({"own": Own(own)}, mcp=source) as remote:
        table = remote.table
        assert await remote.whole_table() is table
        own.append(ToolSpec("agent", "late", "late", "late", "Comes late.", {"type": "object"}))
        assert [entry.exposed for entry in await remote.whole_table()] == ["late", "a"]
        assert [entry.exposed for entry in await remote.find(["late"])] == ["late"]
        assert remote.table is table
