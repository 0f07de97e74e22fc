"""The one way from a call to its result."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from caal_node.context.one_line_json import to_line
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import (
    InvalidArguments,
    ToolBroke,
    ToolRefused,
    ToolTimeout,
    ToolUnavailable,
    UnknownTool,
)
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.call_middleware import ToolCallRequest
from caal_node.tools.pipeline import RESULT_CHARS, Gates, Pipeline, error_text
from caal_node.tools.source import VerbatimResult
from caal_node.tools.table import ToolEntry, ToolTable
from tests.stand_ins.before_call import BeforeCall

WEATHER = ToolSpec(
    "n8n",
    "n8n",
    "get_weather",
    "get_weather",
    "Weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)


def entry() -> ToolEntry:
    return ToolTable([WEATHER]).resolve("get_weather")


class Source:
    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value, self.error, self.calls = value, error, 0

    async def __call__(self) -> Any:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return self.value


def pipeline(**options: Any) -> Pipeline:
    return Pipeline(ToolDataCache(), **options)


def outcome(calls: Pipeline, call_id: str = "1") -> str | None:
    report = calls.outcomes.take(call_id)
    return report and report.outcome


async def test_a_result_is_one_compact_line_without_json_inside_json() -> None:
    source = Source({"city": "Paris", "days": None, "raw": '{"high": 21}'})
    line = await pipeline().run(entry(), "1", {"city": "Paris"}, source)
    assert line == '{"city":"Paris","raw":{"high":21}}'


async def test_arguments_that_do_not_fit_never_reach_the_source() -> None:
    source = Source("never")
    with pytest.raises(InvalidArguments, match="days"):
        await pipeline().run(entry(), "1", {"city": "Paris", "days": "three"}, source)
    with pytest.raises(InvalidArguments, match="city"):
        await pipeline().run(entry(), "2", {}, source)
    assert source.calls == 0


async def test_a_hanging_tool_ends_at_the_deadline() -> None:
    calls = pipeline(timeout_s=0.01)
    with pytest.raises(ToolTimeout, match=r"0\.01 seconds"):
        await calls.run(entry(), "1", {"city": "Paris"}, asyncio.Event().wait)
    assert outcome(calls) == "timeout"


async def test_an_exception_of_a_tool_is_told_by_its_kind_alone() -> None:
    calls = pipeline()
    with pytest.raises(ToolBroke) as raised:
        await calls.run(entry(), "1", {"city": "x"}, Source(error=RuntimeError("password=1234")))
    assert "1234" not in error_text(raised.value)
    assert "RuntimeError" in error_text(raised.value)
    assert outcome(calls) == "error"


async def test_a_failure_in_the_tree_passes_as_it_is() -> None:
    with pytest.raises(ToolUnavailable, match="away"):
        await pipeline().run(entry(), "1", {"city": "x"}, Source(error=ToolUnavailable("away")))


async def test_a_policy_that_says_no_runs_nothing() -> None:
    async def no(call: ToolCallRequest) -> None:
        raise ToolRefused("not today")

    source, calls = Source("never"), pipeline(gates=Gates(middleware=[BeforeCall(no)]))
    with pytest.raises(ToolRefused):
        await calls.run(entry(), "1", {"city": "x"}, source)
    assert source.calls == 0
    assert outcome(calls) == "refused"


async def test_the_plan_is_held_while_the_tool_runs() -> None:
    order: list[str] = []

    class Turn:
        def __init__(self, entry: ToolEntry, arguments: Mapping[str, Any], call_id: str) -> None:
            self.call_id = call_id

        def __enter__(self) -> None:
            order.append(f"in {self.call_id}")

        def __exit__(self, *_: object) -> None:
            order.append(f"out {self.call_id}")

        async def come(self) -> None:
            order.append("may run")

    async def source() -> str:
        order.append("runs")
        return "done"

    await pipeline(gates=Gates(plan=Turn)).run(entry(), "7", {"city": "x"}, source)
    assert order == ["in 7", "may run", "runs", "out 7"]


async def test_what_may_not_be_seen_is_in_no_result_and_no_tool_data() -> None:
    gates = Gates(redact=lambda text: text.replace("1234", "[hidden]"))
    data = ToolDataCache()
    line = await Pipeline(data, gates=gates).run(
        entry(), "1", {"city": "x"}, Source({"pin": "1234"})
    )
    assert "1234" not in line
    assert "1234" not in data.render(["1"]), "what is shown again later is not let through either"


async def test_a_result_of_five_megabytes_is_cut_and_says_so() -> None:
    rows = [{"n": n, "text": "x" * 100} for n in range(40_000)]
    line = await pipeline().run(entry(), "1", {"city": "x"}, Source(rows))
    assert len(line) < 7_000
    assert "40000" in line.replace(",", "").replace(" ", "")


GIANTS = {
    "rows": [{"n": n, "text": "x" * 100} for n in range(40_000)],
    "nested": {"data": {"items": [{"n": n, "raw": '{"a": 1}'} for n in range(2_000)]}},
    "text": "first line\nsecond " * 50_000,
    "texts": ["y" * 4_000] * 10,
    "json": json.dumps([{"n": n} for n in range(50_000)]),
    "members": {f"key {n}": None if n % 2 else n for n in range(3_000)},
}


class BusyThreads(ThreadPoolExecutor):
    """The loop's only worker thread, which is busy until `free` is called."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.asked, self._free = asyncio.Event(), threading.Event()
        super().submit(self._free.wait, 10)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.asked.set()
        return super().submit(fn, *args, **kwargs)

    def free(self) -> None:
        self._free.set()


@pytest.fixture
async def busy_threads() -> AsyncIterator[BusyThreads]:
    threads = BusyThreads()
    asyncio.get_running_loop().set_default_executor(threads)
    try:
        yield threads
    finally:
        threads.free()


@pytest.mark.parametrize("kind", GIANTS)
async def test_a_giant_result_is_cut_while_the_event_loop_goes_on(
    kind: str, busy_threads: BusyThreads
) -> None:
    value, expected, data = GIANTS[kind], ToolDataCache(), ToolDataCache()
    expected.add_result("1", "get_weather", {"city": "x"}, value)
    call = asyncio.create_task(Pipeline(data).run(entry(), "1", {"city": "x"}, Source(value)))
    async with asyncio.timeout(5):
        await busy_threads.asked.wait()
        busy_threads.free()
        assert await call == to_line(value, max_chars=RESULT_CHARS)
    assert data.render(["1"], max_chars=9_000) == expected.render(["1"], max_chars=9_000)


async def test_a_small_result_waits_for_no_busy_thread(busy_threads: BusyThreads) -> None:
    source = Source([{"n": n} for n in range(100)])
    async with asyncio.timeout(5):
        assert (await pipeline().run(entry(), "1", {"city": "x"}, source)).startswith('[{"n":0}')


async def test_a_call_cancelled_while_its_result_is_cut_leaves_no_tool_data(
    busy_threads: BusyThreads,
) -> None:
    data = ToolDataCache()
    calls = Pipeline(data)
    task = asyncio.create_task(calls.run(entry(), "1", {"city": "x"}, Source(GIANTS["rows"])))
    await busy_threads.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    busy_threads.free()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert outcome(calls) == "cancelled"
    assert len(data) == 0


async def test_of_a_giant_result_nothing_hidden_becomes_tool_data() -> None:
    gates = Gates(redact=lambda text: text.replace("1234", "[hidden]"))
    data = ToolDataCache()
    rows = [{"pin": "1234"} for _ in range(2_000)]
    line = await Pipeline(data, gates=gates).run(entry(), "1", {"city": "x"}, Source(rows))
    assert "[hidden]" in line
    assert "1234" not in line + data.render(["1"], max_chars=9_000)


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], "words"])
async def test_dict_list_and_text_become_tool_data(value: Any) -> None:
    data = ToolDataCache()
    await Pipeline(data).run(entry(), "1", {"city": "x"}, Source(value))
    assert "get_weather" in data.render(["1"])


async def test_a_cancelled_call_is_remembered_as_cancelled() -> None:
    started, calls = asyncio.Event(), pipeline()

    async def source() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(calls.run(entry(), "1", {"city": "x"}, source))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcome(calls) == "cancelled"


def test_an_error_tells_the_model_what_it_can_do() -> None:
    unknown = json.loads(error_text(UnknownTool("wether", ["weather"])))
    assert unknown["valid_names"] == ["weather"]
    late = json.loads(error_text(ToolTimeout("gave no answer")))
    assert late["error"] == "timeout"
    assert late["say"].startswith("Sorry")
    wrong = json.loads(error_text(InvalidArguments("days: 'x' is not of type 'integer'")))
    assert "say" not in wrong, "a call that can be put right is for the model alone"


async def test_a_verbatim_result_keeps_its_words_and_its_value_becomes_text() -> None:
    gates = Gates(redact=lambda text: text.replace("1234", "[hidden]"))
    result = VerbatimResult({"pin": "1234"}, "Your PIN is 1234.")
    shown = await pipeline(gates=gates).run(entry(), "1", {"city": "x"}, Source(result))
    assert shown == VerbatimResult('{"pin":"[hidden]"}', "Your PIN is [hidden].")


async def test_the_words_of_an_own_tool_s_verbatim_result_are_redacted_too() -> None:
    gates = Gates(redact=lambda text: text.replace("1234", "[hidden]"))
    result = VerbatimResult({"pin": "1234"}, "Your PIN is 1234.")
    shown = await pipeline(gates=gates).run_own(
        entry(), "1", {"city": "x"}, Source(result), validate=True, becomes_text=lambda _: True
    )
    assert shown == VerbatimResult('{"pin":"[hidden]"}', "Your PIN is [hidden].")
