"""Calls of one reply in the pipeline: side by side where they may, in order where they must."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import ToolRefused, ToolTimeout
from caal_node.core.events import CallReport, TierName
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.call_middleware import ToolCallRequest
from caal_node.tools.call_scheduler import CallScheduler
from caal_node.tools.pipeline import CallTurn, Gates, Pipeline
from caal_node.tools.table import ToolEntry
from tests.stand_ins.before_call import BeforeCall


def entry(
    name: str, *, tier: TierName = "mcp", source: str = "files", read_only: bool | None = None
) -> ToolEntry:
    spec = ToolSpec(tier, source, name, name, "", {"type": "object"}, read_only=read_only)
    return ToolEntry(name, spec, {})


class Work:
    """Calls that end when they are told to. `log` has what began and ended."""

    def __init__(self, **options: Any) -> None:
        self.pipeline = Pipeline(ToolDataCache(), **options)
        self.log: list[str] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self._began: dict[str, asyncio.Event] = {}
        self._may_end: dict[str, asyncio.Event] = {}

    def call(
        self, what: ToolEntry, arguments: Mapping[str, Any] | None = None, *, deadline: bool = True
    ) -> asyncio.Task[Any]:
        name = what.exposed
        self._began[name], self._may_end[name] = asyncio.Event(), asyncio.Event()

        async def execute() -> str:
            self.log.append(f"{name} began")
            self._began[name].set()
            await self._may_end[name].wait()
            self.log.append(f"{name} ended")
            return name

        run = self.pipeline.run(what, name, arguments or {}, execute, deadline=deadline)
        self.tasks.append(asyncio.create_task(run))
        return self.tasks[-1]

    async def began(self, name: str) -> None:
        async with asyncio.timeout(20):
            await self._began[name].wait()

    async def end(self, *names: str) -> None:
        for name in names:
            await self.began(name)
            self._may_end[name].set()


async def test_a_writer_waits_for_the_writer_before_it() -> None:
    work = Work()
    tasks = [work.call(entry("first")), work.call(entry("second"))]
    await work.began("first")
    await work.end("first", "second")
    assert await asyncio.gather(*tasks) == ["first", "second"]
    assert work.log == ["first began", "first ended", "second began", "second ended"]


@pytest.mark.parametrize("tier", ["agent", "n8n", "mcp"])
async def test_readers_run_side_by_side_in_every_tier(tier: TierName) -> None:
    work, claims = Work(), True if tier == "mcp" else None
    for name in ("get_time", "list_rooms"):
        work.call(entry(name, tier=tier, read_only=claims))
    await work.began("get_time")
    await work.began("list_rooms")
    await work.end("list_rooms", "get_time")


@pytest.mark.parametrize("name", ["weather", "get_and_delete", "set_timer", "getAndClearInbox"])
async def test_what_is_not_known_to_read_runs_alone_in_its_source(name: str) -> None:
    work = Work()
    work.call(entry("set_light", tier="agent"))
    work.call(entry(name, tier="agent"))
    await work.began("set_light")
    await work.end("set_light", name)
    assert work.log.index("set_light ended") < work.log.index(f"{name} began")


async def test_a_servers_names_are_not_believed() -> None:
    work = Work()
    work.call(entry("get_time"))
    work.call(entry("get_zone"))
    await work.end("get_time", "get_zone")
    assert work.log.index("get_time ended") < work.log.index("get_zone began")


async def test_other_sources_and_other_files_are_not_waited_for() -> None:
    work = Work()
    work.call(entry("write_a"), {"path": "/srv/a"})
    work.call(entry("write_b"), {"path": "/srv/b"})
    work.call(entry("write_c", source="mail"))
    await work.began("write_c")
    await work.began("write_b")
    await work.end("write_c", "write_b", "write_a")


async def test_a_writer_waits_for_one_that_may_make_its_file() -> None:
    work = Work()
    work.call(entry("rename"), {"path": "/srv/a", "new_name": "b"})
    work.call(entry("write_b"), {"path": "/srv/b", "content": "hi"})
    work.call(entry("write_c", source="other"), {"path": "/srv/c"})
    await work.began("rename")
    await work.began("write_c")
    await work.end("write_c", "rename", "write_b")
    assert work.log.index("rename ended") < work.log.index("write_b began")


async def test_a_reader_is_not_kept_waiting_by_what_it_looks_for() -> None:
    work = Work()
    work.call(entry("write_b"), {"path": "/srv/b", "content": "hi"})
    work.call(entry("search", read_only=True), {"path": "/srv/a", "query": "eggs"})
    await work.began("write_b")
    await work.began("search")
    await work.end("search", "write_b")


async def test_a_file_is_one_file_whoever_writes_it() -> None:
    work = Work()
    work.call(entry("write_all", source="git"), {"path": "/srv/x"})
    work.call(entry("read_one", read_only=True), {"path": "/srv/x/y"})
    await work.began("write_all")
    await work.end("write_all", "read_one")
    assert work.log.index("write_all ended") < work.log.index("read_one began")


async def test_a_waiting_call_that_is_cancelled_frees_the_others() -> None:
    work = Work()
    first = work.call(entry("first"))
    second = work.call(entry("second"))
    third = work.call(entry("third"))
    await work.began("first")
    second.cancel()
    await asyncio.wait([second])
    await work.end("first", "third")
    assert await asyncio.gather(first, third) == ["first", "third"]
    assert "second began" not in work.log
    assert work.pipeline.outcomes.take("second") == CallReport("cancelled")


async def test_a_running_call_that_is_cancelled_frees_the_others() -> None:
    work = Work()
    first, second = work.call(entry("first")), work.call(entry("second"))
    await work.began("first")
    first.cancel()
    await work.end("second")
    assert await second == "second"


async def test_a_call_that_fails_frees_the_others() -> None:
    async def no(call: ToolCallRequest) -> None:
        if call.entry.exposed == "first":
            raise ToolRefused("not today")

    work = Work(gates=Gates(middleware=[BeforeCall(no)]))
    first, second = work.call(entry("first")), work.call(entry("second"))
    with pytest.raises(ToolRefused):
        await first
    await work.end("second")
    assert await second == "second"


async def test_the_order_is_the_models_though_a_middleware_takes_its_time() -> None:
    asked, may = asyncio.Event(), asyncio.Event()

    async def slow(call: ToolCallRequest) -> None:
        if call.entry.exposed == "first":
            asked.set()
            await may.wait()

    work = Work(gates=Gates(middleware=[BeforeCall(slow)]))
    tasks = [work.call(entry("first")), work.call(entry("second"))]
    await asked.wait()
    may.set()
    await work.end("first", "second")
    await asyncio.gather(*tasks)
    assert work.log == ["first began", "first ended", "second began", "second ended"]


async def test_a_call_without_a_deadline_waits_and_is_not_waited_for() -> None:
    work = Work()
    work.call(entry("first"))
    work.call(entry("talk"), deadline=False)
    work.call(entry("third"))
    await work.end("first")
    await work.began("talk")
    await work.end("third", "talk")
    assert work.log.index("first ended") < work.log.index("talk began")


async def test_waiting_has_an_end() -> None:
    work = Work(gates=Gates(plan=CallScheduler(wait_s=0.01)))
    work.call(entry("first"))
    second = work.call(entry("second"))
    await work.began("first")
    with pytest.raises(ToolTimeout, match="was not called"):
        await second
    await work.end("first")


class ImmediateTurn(nullcontext[None]):
    async def come(self) -> None:
        return


async def test_an_owners_plan_decides_that_all_run_at_once() -> None:
    def all_at_once(*_: object) -> CallTurn:
        return ImmediateTurn()

    work = Work(gates=Gates(plan=all_at_once))
    work.call(entry("first"))
    work.call(entry("second"))
    await work.began("second")
    await work.end("second", "first")


async def test_the_log_has_names_and_no_arguments(caplog: pytest.LogCaptureFixture) -> None:
    work = Work()
    with caplog.at_level(logging.INFO):
        work.call(entry("first"), {"note": "secret-place"})
        work.call(entry("second"), {"note": "secret-place"})
        await work.end("first", "second")
    assert "second waits for first" in caplog.text
    assert "secret-place" not in caplog.text


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["one", "two"]),
            st.sampled_from([True, None]),
            st.sampled_from([None, "/srv/a", "/srv/a/b", "/srv/c"]),
        ),
        max_size=6,
    ),
    st.randoms(use_true_random=False),
)
def test_whatever_the_calls_no_conflict_runs_and_all_end(
    calls: list[tuple[str, bool | None, str | None]], random: Any
) -> None:
    async def scene() -> None:
        running: set[int] = set()
        pipeline = Pipeline(ToolDataCache())

        def clash(one: int, other: int) -> bool:
            (s1, r1, p1), (s2, r2, p2) = calls[one], calls[other]
            if r1 and r2:
                return False
            if p1 and p2:
                return f"{p1}/".startswith(f"{p2}/") or f"{p2}/".startswith(f"{p1}/")
            return s1 == s2

        async def one(number: int) -> None:
            async def execute() -> str:
                assert not any(clash(number, other) for other in running)
                running.add(number)
                for _ in range(random.randint(0, 3)):
                    await asyncio.sleep(0)
                running.remove(number)
                return "x"

            source, read_only, path = calls[number]
            what = entry(f"t{number}", source=source, read_only=read_only)
            await pipeline.run(what, str(number), {"path": path} if path else {}, execute)

        async with asyncio.timeout(10):
            await asyncio.gather(*(one(number) for number in range(len(calls))))

    asyncio.run(scene())
