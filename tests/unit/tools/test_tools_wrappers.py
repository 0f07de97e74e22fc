"""Wrappers around a source of tools, and sources that have only the three documented methods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from caal_node.core.errors import ToolRefused, ToolTimeout
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.pipeline import error_text
from caal_node.tools.source import CallConversation, ToolListing, ToolSource, as_tool_source
from caal_node.tools.sources import (
    ApprovalRequiredSource,
    FilteredSource,
    PrefixedSource,
    TimedSource,
    WrapperSource,
)
from mcp_bridge import Accepted, Answer, Question, ServerStatus

READ = ToolSpec("mcp", "home", "read", "home__read", "", {"type": "object"}, read_only=True)
WRITE = ToolSpec("mcp", "home", "write", "home__write", "", {"type": "object"})
STATUS = ServerStatus("home", "ready", "stdio", 2, connect_ms=1, error=None, notes=())


class Home(ToolSource):
    """A source with every ability. It keeps what it is called with."""

    def __init__(self, answer: Callable[[], Any] = lambda: "done") -> None:
        self.calls: list[tuple[str, dict[str, Any], CallConversation | None]] = []
        self.changed: Callable[[ToolListing], None] = lambda listing: None
        self.closed = False
        self._answer = answer

    async def discover(self) -> ToolListing:
        return ToolListing((READ, WRITE), {"garage": "is away"})

    async def call(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        conversation: CallConversation | None = None,
    ) -> Any:
        self.calls.append((spec.name, dict(arguments), conversation))
        answer = self._answer()
        return await answer if asyncio.iscoroutine(answer) else answer

    async def aclose(self) -> None:
        self.closed = True

    @property
    def poll_s(self) -> float:
        return 7.0

    def wake(self, specs: Iterable[ToolSpec]) -> None:
        self.woken = [spec.name for spec in specs]

    def watch_changes(self, changed: Callable[[ToolListing], None]) -> None:
        self.changed = changed

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        return (STATUS,)


class Person:
    """A conversation in which a person agrees to everything."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def report_progress(self, done: float, total: float | None, message: str) -> None:
        raise AssertionError("nothing is reported here")

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question.message)
        return Accepted({})


async def names(source: ToolSource) -> list[str]:
    """What the model may call; the same by every way in which a source reports its tools."""
    reported: list[ToolListing] = []
    source.watch_changes(reported.append)
    inner: Any = source
    while isinstance(inner, WrapperSource):
        inner = inner.wrapped
    listing = await source.discover()
    inner.changed(ToolListing((READ, WRITE), {"garage": "is away"}))
    assert reported == [listing]
    assert listing.failed == {"garage": "is away"}
    return [spec.wanted for spec in listing.specs]


async def test_a_wrapper_does_what_the_wrapped_source_does() -> None:
    home, person = Home(), Person()
    source = WrapperSource(home)
    assert await names(source) == ["home__read", "home__write"]
    assert await source.call(READ, {"room": "bath"}, person) == "done"
    assert home.calls == [("read", {"room": "bath"}, person)]
    assert (source.poll_s, source.servers) == (7.0, (STATUS,))
    source.wake([READ, WRITE])
    assert home.woken == ["read", "write"]
    await source.aclose()
    assert home.closed


async def test_a_prefix_is_in_the_names_and_the_source_is_called_without_it() -> None:
    home = Home()
    source = PrefixedSource(home, "my_")
    assert await names(source) == ["my_home__read", "my_home__write"]
    spec = (await source.discover()).specs[0]
    await source.call(spec, {})
    assert [name for name, *_ in home.calls] == ["read"]


async def test_a_filter_leaves_tools_out_and_wrappers_can_be_stacked() -> None:
    source = PrefixedSource(FilteredSource(Home(), lambda spec: spec.read_only is True), "my_")
    assert await names(source) == ["my_home__read"]


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_call_runs_only_where_it_is_approved(answer: bool, is_async: bool) -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def approve(spec: ToolSpec, arguments: Mapping[str, Any], _: Any) -> bool:
        asked.append((spec.wanted, arguments))
        return answer

    async def approve_later(*call: Any) -> bool:
        await asyncio.sleep(0)
        return approve(*call)

    home = Home()
    source = ApprovalRequiredSource(home, approve_later if is_async else approve)
    if answer:
        assert await source.call(WRITE, {"to": 1}) == "done"
    else:
        with pytest.raises(ToolRefused, match="home__write was not called") as refused:
            await source.call(WRITE, {"to": 1})
        assert "not allowed" in error_text(refused.value), "a person hears a sentence"
    assert asked == [("home__write", {"to": 1})]
    assert len(home.calls) == answer


async def test_a_tool_that_only_reads_needs_no_approval_unless_the_owner_says_so() -> None:
    def refuse(*_: Any) -> bool:
        return False

    assert await ApprovalRequiredSource(Home(), refuse).call(READ, {}) == "done"
    strict = ApprovalRequiredSource(Home(), refuse, needs_approval=lambda _: True)
    with pytest.raises(ToolRefused):
        await strict.call(READ, {})


async def test_approval_can_ask_the_person_of_the_conversation() -> None:
    async def approve(
        spec: ToolSpec, arguments: Any, conversation: CallConversation | None
    ) -> bool:
        assert conversation is not None
        question = Question("home", spec.name, "Shall I write it?")
        return isinstance(await conversation.ask(question), Accepted)

    person = Person()
    assert await ApprovalRequiredSource(Home(), approve).call(WRITE, {}, person) == "done"
    assert person.questions == ["Shall I write it?"]


async def test_a_cancelled_call_cancels_its_approval_and_runs_nothing() -> None:
    asked, cancelled = asyncio.Event(), False

    async def never(*_: Any) -> bool:
        nonlocal cancelled
        asked.set()
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise

    home = Home()
    call = asyncio.create_task(ApprovalRequiredSource(home, never).call(WRITE, {}))
    await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cancelled
    assert home.calls == []


async def test_an_approval_that_fails_approves_nothing() -> None:
    home = Home()
    with pytest.raises(ZeroDivisionError):
        await ApprovalRequiredSource(home, lambda *_: bool(1 / 0)).call(WRITE, {})
    assert home.calls == []


async def test_a_call_ends_at_its_sources_own_deadline_and_its_duration_is_reported() -> None:
    durations: list[tuple[str, float]] = []

    def report(spec: ToolSpec, seconds: float) -> None:
        durations.append((spec.name, seconds))

    source = TimedSource(Home(lambda: asyncio.Event().wait()), 0.01, report)
    with pytest.raises(ToolTimeout, match=r"home__read gave no answer in 0\.01 seconds"):
        await source.call(READ, {})
    ((name, seconds),) = durations
    assert name == "read"
    assert seconds >= 0.01
    limits = [spec.timeout_s for spec in (await TimedSource(Home(), 60).discover()).specs]
    assert all(limit is not None and limit > 60 for limit in limits), "the pipeline waits for it"


async def test_a_time_out_of_the_tools_own_is_left_to_the_pipeline() -> None:
    def late() -> Any:
        raise TimeoutError

    durations: list[float] = []
    source = TimedSource(Home(late), on_duration=lambda _, seconds: durations.append(seconds))
    with pytest.raises(TimeoutError):
        await source.call(READ, {})
    assert len(durations) == 1
    assert (await source.discover()).specs == (READ, WRITE), "no limit, no change"


class Plain:
    """An object with the three documented methods, and no base class."""

    def __init__(self) -> None:
        self.closed = False

    async def discover(self) -> ToolListing:
        return ToolListing((replace(READ, wanted="plain"),))

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return [spec.name, arguments]

    async def aclose(self) -> None:
        self.closed = True


async def test_an_object_with_three_methods_is_a_source_and_can_be_wrapped() -> None:
    plain = Plain()
    for source in (as_tool_source(plain), WrapperSource(plain)):
        assert [spec.wanted for spec in (await source.discover()).specs] == ["plain"]
        assert await source.call(READ, {"a": 1}, Person()) == ["read", {"a": 1}]
        source.wake([READ])
        assert (source.servers, source.poll_s) == ((), 0.0)
        await source.aclose()
        assert plain.closed
