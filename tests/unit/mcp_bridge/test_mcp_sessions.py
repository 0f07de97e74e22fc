"""A session by the clock: idle, lost, tried again, given up for a while, kept waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams

from mcp_bridge import CallTimeout, ServerUnavailable
from mcp_bridge.connection.server_session import ServerSession
from mcp_bridge.core.elicitation import Accepted, Answer, Question
from tests.stand_ins.mcp_fakes import FakeServer
from tests.stand_ins.virtual_loop import run

IDLE_S = 30 * 60.0


def longest(low: float, high: float) -> float:
    return high


def shortest(low: float, high: float) -> float:
    return low


async def echo(session: ServerSession, **options: Any) -> Any:
    return (await session.call("echo", {"say": "hi"}, **{"timeout_s": 20.0, **options})).value


def with_session(
    use: Callable[[FakeServer, ServerSession], Awaitable[None]],
    uniform: Callable[[float, float], float] = longest,
    **limits: Any,
) -> None:
    async def work() -> None:
        server = FakeServer()
        session = server.session(uniform, **limits)
        session.start()
        try:
            await session.refresh()
            await use(server, session)
        finally:
            await session.aclose()
        assert server.open == 0
        assert len(asyncio.all_tasks()) == 1, "closing joins everything"

    run(work())


def test_a_connection_nobody_uses_is_closed_and_its_tools_stay() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        await asyncio.sleep(IDLE_S - 1)
        assert (server.open, session.recalled) == (1, False)
        await asyncio.sleep(2)
        assert (server.open, session.recalled) == (0, True)
        assert [tool.name for tool in session.listing.definitions] == ["echo"]
        assert session.failure is None
        await session.confirm()
        assert await echo(session) == "hi"
        assert (server.open, len(server.connected_at), session.recalled) == (1, 2, False)

    with_session(use)


def test_use_keeps_a_connection_open_and_a_long_call_is_use() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        for _ in range(4):
            await asyncio.sleep(IDLE_S - 10)
            await echo(session)
        assert len(server.connected_at) == 1
        server.progress = [15.0] * 500
        await echo(session, timeout_s=20.0)
        assert len(server.connected_at) == 1, "it ended by itself after two hours"
        await asyncio.sleep(IDLE_S - 1)
        assert server.open == 1, "counted from the call's end"

    with_session(use, call_cap_s=3 * 3600.0)


def test_housekeeping_is_no_use() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        await asyncio.sleep(IDLE_S - 10)
        await server.transports[-1].tell_of_changes()
        await asyncio.sleep(20)
        assert server.listed == 2
        assert server.open == 0

    with_session(use)


def test_a_lost_connection_is_made_again_with_growing_waits() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        server.up = False
        lost = asyncio.get_running_loop().time()
        server.crash()
        await asyncio.sleep(3600)
        waits = [b - a for a, b in pairwise([lost, *server.connected_at[1:]])]
        assert [round(wait, 1) for wait in waits] == [0.5, 1, 2, 4, 8, 16, 32, 60]
        assert session.failure == "nothing answers"
        assert [tool.name for tool in session.listing.definitions] == ["echo"]
        server.up = True
        assert await echo(session) == "hi", "a call tries by itself"
        assert session.failure is None

    with_session(use)


def test_the_jitter_is_full() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        server.up = False
        server.crash()
        await asyncio.sleep(1)
        assert len(server.connected_at) == 9, "no wait at all is one of the waits"

    with_session(use, uniform=shortest)


def test_a_server_that_goes_and_is_back_is_told_of_without_a_call_and_so_are_its_new_tools() -> (
    None
):
    async def use(server: FakeServer, session: ServerSession) -> None:
        changes: list[tuple[str | None, int]] = []

        def note(_: str) -> None:
            changes.append((session.failure, len(session.listing.definitions)))

        session.watchers.append(note)
        server.up = False
        server.crash()
        await asyncio.sleep(5)
        server.up, server.tools = True, ["echo", "more"]
        await asyncio.sleep(10)
        assert (server.open, session.failure) == (1, None)
        (gone, kept), *back = changes
        assert gone is not None
        assert (kept, back) == (1, [(None, 1), (None, 2)])

    with_session(use)


def test_a_call_does_not_wait_for_the_next_try() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        server.crash()
        began = asyncio.get_running_loop().time()
        assert await echo(session) == "hi"
        assert asyncio.get_running_loop().time() - began < 0.1
        await asyncio.sleep(60)
        assert len(server.connected_at) == 2, "the try that was due is not made as well"

    with_session(use)


def test_a_call_that_comes_as_the_connection_breaks_goes_to_the_next_one() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        calling = asyncio.create_task(echo(session))
        await asyncio.sleep(0)  # it waits for its turn
        server.crash()
        began = asyncio.get_running_loop().time()
        assert await calling == "hi"
        assert asyncio.get_running_loop().time() - began < 0.1

    with_session(use)


def test_after_failures_in_a_row_calls_fail_at_once_until_a_probe_succeeds() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        server.up, server.fails_after_s = False, 5.0
        server.crash()
        for _ in range(2):
            with pytest.raises(ServerUnavailable, match="nothing answers"):
                await echo(session)
        tried = len(server.connected_at)
        with pytest.raises(ServerUnavailable, match=r"3 failures in a row; not tried for 30 s"):
            await echo(session)
        assert len(server.connected_at) == tried
        await asyncio.sleep(31)
        with pytest.raises(ServerUnavailable, match=r"nothing answers$"):
            await echo(session)  # the probe
        with pytest.raises(ServerUnavailable, match="not tried"):
            await echo(session)
        server.up = True
        await asyncio.sleep(31)
        assert await echo(session) == "hi"
        assert await echo(session) == "hi"

    with_session(use, failures=3, retries=0)


def test_a_server_that_fails_at_once_is_tried_whenever_somebody_asks() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        server.up, server.fails_after_s = False, 0.05
        server.crash()
        for _ in range(7):
            with pytest.raises(ServerUnavailable):
                await echo(session)
            await asyncio.sleep(1)
        server.up = True
        assert await echo(session) == "hi"

    with_session(use, failures=3, retries=0)


def test_a_server_that_leaves_every_call_unanswered_is_begun_afresh() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        server.deaf = True
        for _ in range(3):
            with pytest.raises(CallTimeout, match="gave no answer within 20 s"):
                await echo(session)
        await asyncio.sleep(0)
        with pytest.raises(ServerUnavailable, match="leaves every call without an answer"):
            await echo(session)
        server.deaf = False
        await asyncio.sleep(31)
        assert await echo(session) == "hi"
        assert len(server.connected_at) == 2
        assert session.failure is None

    with_session(use, failures=3)


def test_one_crash_is_one_failure_however_many_calls_it_ends() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        server.deaf = True
        calls = [asyncio.create_task(echo(session)) for _ in range(5)]
        await asyncio.sleep(0.1)
        server.deaf = False
        server.crash()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(error, ServerUnavailable) for error in ended)
        assert await echo(session) == "hi"

    with_session(use, failures=2)


def test_progress_extends_a_calls_patience_and_never_its_cap() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        seen: list[tuple[float, float | None, str]] = []
        server.progress = [15.0] * 4
        assert await echo(session, on_progress=lambda *sign: seen.append(sign)) == "hi"
        assert seen[0] == (1.0, None, "step 1")
        assert len(seen) == 4
        server.progress = [15.0] * 100
        began = asyncio.get_running_loop().time()
        with pytest.raises(CallTimeout, match="gave no answer within 120 s"):
            await echo(session)
        assert asyncio.get_running_loop().time() - began == pytest.approx(120)
        server.progress = [15.0, 25.0]
        with pytest.raises(CallTimeout, match="gave no answer within 20 s"):
            await echo(session)

    with_session(use)


def test_changes_told_in_a_burst_are_listed_once_and_a_flood_seldom() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        for count in range(10):
            server.tools = [f"tool{n}" for n in range(count + 1)]
            await server.transports[-1].tell_of_changes()
        await asyncio.sleep(1)
        assert server.listed == 2
        assert len(session.listing.definitions) == 10
        for _ in range(1000):
            await server.transports[-1].tell_of_changes()
            await asyncio.sleep(0.01)
        assert server.listed <= 8, "ten seconds, one list in two of them"

    with_session(use)


def form(**properties: Any) -> ElicitRequestFormParams:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequestFormParams(message="Which room?", requested_schema=schema)


def test_a_question_is_asked_of_the_caller_and_holds_the_calls_patience() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        asked: list[Question] = []

        async def slow(question: Question) -> Answer:
            asked.append(question)
            await asyncio.sleep(40)
            return Accepted({"room": "kitchen"})

        server.questions = [form(room={"type": "string"})]
        assert await echo(session, elicitor=slow) == "hi"
        assert (asked[0].server, asked[0].tool, asked[0].message) == ("fake", "echo", "Which room?")
        assert server.answers[0].action == "accept"
        assert server.answers[0].content == {"room": "kitchen"}

    with_session(use)


def test_a_question_is_declined_where_nobody_is_there_or_nobody_answers() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        async def never(question: Question) -> Answer:
            await asyncio.get_running_loop().create_future()
            raise AssertionError

        async def breaks(question: Question) -> Answer:
            raise ValueError("the host's own defect")

        async def wrong(question: Question) -> Answer:
            return Accepted({"room": 7})

        server.questions = [form(room={"type": "string"})]
        for elicitor in (None, never, breaks, wrong):
            assert await echo(session, elicitor=elicitor) == "hi"
        assert [answer.action for answer in server.answers] == ["decline"] * 4

    with_session(use)


def test_a_question_that_could_be_anothers_is_asked_of_nobody() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        async def one(question: Question) -> Answer:
            raise AssertionError("it may be the other room's")

        async def other(question: Question) -> Answer:
            raise AssertionError("it may be the other room's")

        server.progress = [5.0]
        server.questions = [form(room={"type": "string"})]
        answers = await asyncio.gather(echo(session, elicitor=one), echo(session, elicitor=other))
        assert answers == ["hi", "hi"]
        assert server.answers[0].action == "decline"

    with_session(use)


def test_a_question_ends_with_its_call() -> None:
    async def use(server: FakeServer, session: ServerSession) -> None:
        ended = asyncio.Event()

        async def waits(question: Question) -> Answer:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.set()
            raise AssertionError

        server.questions = [form(room={"type": "string"})]
        call = asyncio.create_task(echo(session, elicitor=waits))
        await asyncio.sleep(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(0.1)
        assert ended.is_set()

    with_session(use)
