"""The remote sources of an agent: what is listed, what changes meanwhile, and what fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from caal_node.context.tool_data import ToolDataCache
from caal_node.core.events import TierName
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.source import CallConversation, ToolListing, ToolSource


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

    def watch_changes(self, changed: Callable[[ToolListing], None]) -> None:
        self.changed = changed


@asynccontextmanager
async def toolset(**sources: ToolSource) -> AsyncGenerator[RemoteToolset]:
    async def nothing() -> None:
        pass

    tiers: Any = sources
    options: Any = {"methods": lambda: (), "on_ready": nothing, "on_close": nothing}
    remote = RemoteToolset(tiers, Pipeline(ToolDataCache()), **options)
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
