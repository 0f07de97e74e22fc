"""The three callbacks of a simple front end follow the events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from caal_node.core.events import Event, ToolCallEnded, ToolCallStarted, TurnEnded, UserSaid
from caal_node.room.hooks import MAX_INTERIM, MAX_WAITING, CallbackQueue, HookNotifier, Hooks


class Told:
    def __init__(self) -> None:
        self.all: list[object] = []
        self.teller = HookNotifier(Hooks(self.all.append, self.interim, self.call))

    def interim(self, text: str) -> None:
        self.all.append(f"says {text}")

    def call(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.all.append((name, dict(arguments)))

    def after(self, *events: Event) -> list[object]:
        for event in events:
            self.teller(event)
        return self.all


def started(call_id: str) -> ToolCallStarted:
    return ToolCallStarted(call_id, "look_up", "mcp", "desk", {"name": call_id})


def ended(call_id: str) -> ToolCallEnded:
    return ToolCallEnded(call_id, "look_up", "mcp", "ok", 5)


OVER = TurnEnded(1, 2, 30)


def test_a_turn_with_two_calls_reports_each_phase_once() -> None:
    told = Told()
    told.teller.note_interim("a", "Let me check that.")
    assert told.after(
        UserSaid("who is in?"), started("a"), started("b"), ended("a"), ended("b"), OVER
    ) == [
        "thinking",
        "says Let me check that.",
        "calling",
        ("look_up", {"name": "a"}),
        ("look_up", {"name": "b"}),
        "answering",
        "idle",
    ]


def test_a_turn_without_calls_is_thinking_and_over() -> None:
    assert Told().after(UserSaid("hello"), OVER) == ["thinking", "idle"]


def test_a_call_from_outside_the_conversation_is_reported_and_is_no_phase_of_a_turn() -> None:
    assert Told().after(started("api_1"), ended("api_1")) == [("look_up", {"name": "api_1"})]


def test_a_turn_that_is_broken_off_leaves_no_call_open() -> None:
    told = Told()
    told.after(UserSaid("one"), started("a"), OVER, UserSaid("two"), started("b"))
    assert told.after(ended("b"))[-1] == "answering"


def test_a_call_that_ends_after_its_turn_is_no_phase_of_any() -> None:
    told = Told()
    before = list(told.after(UserSaid("one"), started("a"), OVER))
    assert told.after(ended("a")) == before
    assert told.after(UserSaid("two"), started("b"), UserSaid("three"))[-1] == "thinking"
    assert told.after(ended("b"))[-1] == "thinking"


def test_what_replies_said_that_were_thrown_away_is_not_kept_for_ever() -> None:
    told = Told()
    for n in range(MAX_INTERIM + 1):
        told.teller.note_interim(str(n), f"text {n}")
    assert "says text 0" not in told.after(started("0"))
    assert f"says text {MAX_INTERIM}" in told.after(started(str(MAX_INTERIM)))


class TestAsyncCallbacks:
    async def test_the_next_one_waits_and_a_plain_one_behind_it_too(self) -> None:
        log: list[str] = []
        queue = CallbackQueue()

        async def slow(name: str) -> None:
            await asyncio.sleep(0.02)
            log.append(name)

        queue.call(slow, "a")
        queue.call(log.append, "b")
        queue.call(slow, "c")
        assert log == []
        await queue.done()
        assert log == ["a", "b", "c"]
        queue.call(log.append, "d")
        assert log[-1] == "d", "at once, as nothing runs"

    async def test_one_that_hangs_is_given_up_and_the_next_is_called(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr("caal_node.room.hooks.CALLBACK_S", 0.02)
        log: list[str] = []
        queue = CallbackQueue()

        async def hang() -> None:
            await asyncio.Event().wait()

        queue.call(hang)
        queue.call(log.append, "after")
        await queue.done()
        assert log == ["after"]
        assert "did not end" in caplog.text

    async def test_what_waits_has_a_limit_and_closing_ends_it(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr("caal_node.room.hooks.CALLBACK_S", 0.05)
        log: list[int] = []
        queue = CallbackQueue()

        async def hang() -> None:
            await asyncio.Event().wait()

        for _ in range(2):
            queue.call(hang)
        for n in range(MAX_WAITING + 1):
            queue.call(log.append, n)
        assert "too slow" in caplog.text
        await asyncio.wait_for(queue.aclose(), 5)
        assert log == []
