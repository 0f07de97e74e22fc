"""A reload of thousands of tools leaves the event loop free.

What is asked of every tool is asked in a thread, each event is a step of its own, and tools that
stay are not made anew.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

from caal_node.context.tool_data import ToolDataCache
from caal_node.core.events import Event, ToolSourceChanged
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.source import ToolListing
from caal_node.tools.table import ToolEntry
from caal_node.tools.tool_search import PromptHead
from tests.unit.tools.test_tools_remote_toolset import Listed, listing, toolset

HELD = {f"server__tool{number}": "it has changed" for number in range(50)}


class Policies:
    """Notes in which threads it is asked."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def hide(self, entry: ToolEntry, /) -> bool:
        self.threads.add(threading.get_ident())
        if threading.current_thread() is not threading.main_thread():
            self.asked.set()
            self.may_answer.wait(10)
        return False


class Page:
    """Notes each event, and in which step of the loop it came."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.steps: list[int] = []
        self.step = 0
        self.then: Callable[[], object] = lambda: None

    def emit(self, event: Event, /) -> None:
        self.events.append(event)
        self.steps.append(self.step)
        self.then()

    async def count_steps(self) -> None:
        while True:
            self.step += 1
            await asyncio.sleep(0)


async def test_the_owners_rules_are_asked_about_every_tool_in_a_thread() -> None:
    policies = Policies()
    source = Listed(listing("mcp", "a", "b"))
    async with toolset({"head": PromptHead(1, policies=policies)}, mcp=source) as remote:
        source.now = listing("mcp", "a", "b", "c")
        await remote.reload()
        assert remote.head == {"mcp_discover"}
    assert policies.threads
    assert threading.get_ident() not in policies.threads


async def test_a_prompt_without_room_keeps_its_head_while_a_change_is_taken_in() -> None:
    policies = Policies()
    source = Listed(listing("mcp", "a"))
    async with toolset({"head": PromptHead(1_000, policies=policies)}, mcp=source) as remote:
        assert remote.head is None
        policies.asked.clear()
        policies.may_answer.clear()
        source.changed(listing("mcp", "a", "b"))
        await asyncio.to_thread(policies.asked.wait, 10)
        remote.choose_head(most=1)
        policies.may_answer.set()
        await remote.settled()
        assert {entry.exposed for entry in remote.table} == {"a", "b"}
        assert remote.head == {"mcp_discover"}


async def test_sources_that_fail_are_reported_one_a_step() -> None:
    source, page = Listed(ToolListing(failed=HELD)), Page()
    pipeline = Pipeline(ToolDataCache())
    pipeline.events.hearer = page
    counting = asyncio.create_task(page.count_steps())
    remote = RemoteToolset({"mcp": source}, pipeline)
    await remote.setup()
    source.now = ToolListing()
    await remote.reload()
    counting.cancel()
    await remote.aclose()
    down = [ToolSourceChanged(name, "down", why) for name, why in HELD.items()]
    assert page.events == [*down, *(ToolSourceChanged(name, "ready") for name in HELD)]
    assert len(set(page.steps)) == len(page.steps)


async def test_a_reload_that_is_cancelled_leaves_its_reports_to_the_next() -> None:
    source, page = Listed(ToolListing()), Page()
    pipeline = Pipeline(ToolDataCache())
    pipeline.events.hearer = page
    remote = RemoteToolset({"mcp": source}, pipeline)
    await remote.setup()
    source.now = ToolListing(failed=HELD)
    reload = asyncio.create_task(remote.reload())
    page.then = reload.cancel
    await asyncio.gather(reload, return_exceptions=True)
    assert len(page.events) == 1
    page.then = lambda: None
    await remote.reload()
    await remote.aclose()
    assert page.events == [ToolSourceChanged(name, "down", why) for name, why in HELD.items()]


async def test_a_tool_that_stays_is_not_made_anew() -> None:
    source = Listed(listing("mcp", "a", "b"))
    async with toolset(mcp=source) as remote:
        stays, changes = remote.table
        source.now = ToolListing((stays.spec, replace(changes.spec, description="Other words.")))
        await remote.reload()
        now = list(remote.table)
    assert now[0] is stays
    assert now[1].schema["function"]["description"] == "Other words."
