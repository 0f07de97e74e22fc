"""Requests and answers in parts: whole again or refused, done once, kept for a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.control import request_dedup
from caal_node.control.chunking import (
    MAX_REQUEST_BYTES,
    PART_CHARS,
    Page,
    PageRequest,
    PartRequest,
    max_parts,
    pack,
    unpack,
)
from caal_node.control.request_dedup import (
    BUSY,
    GONE,
    MAX_KEPT,
    MAX_OPEN,
    MAX_RUNNING,
    TOO_LARGE,
    Deliveries,
)
from caal_node.control.rpc import Answer, CallFailed, CallRunning
from caal_node.core.errors import ConfigError
from tests import virtual_loop

NOISE = random.Random(7).randbytes(60_000).hex()
TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs",)))


@given(TEXT)
def test_a_text_is_whole_again(text: str) -> None:
    assert unpack(pack(text), 10_000) == text


@given(st.lists(st.text(max_size=60), max_size=4))
def test_what_is_no_parcel_is_refused_in_one_way(parts: list[str]) -> None:
    with pytest.raises(ValueError, match="parts"):
        unpack(parts, 10_000)


def test_every_part_fits_and_their_number_is_known_beforehand() -> None:
    worst = random.Random(1).randbytes(200_000).decode("latin-1")
    parts = pack(worst)
    assert max(map(len, parts)) <= PART_CHARS
    assert len(parts) <= max_parts(len(worst.encode()))


def test_a_part_too_few_or_too_many_is_refused() -> None:
    parts = pack(NOISE)
    assert len(parts) > 3
    for wrong in (parts[:-1], parts[1:], (*parts, parts[-1])):
        with pytest.raises(ValueError, match="parts"):
            unpack(wrong, len(NOISE))


def test_a_text_that_unpacks_without_end_is_cut_off() -> None:
    with pytest.raises(ValueError, match="larger than 1000 bytes"):
        unpack(pack("x" * 50_000_000), 1000)


class Desk:
    """Deliveries whose work ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = asyncio.Event()
        self.deliveries = Deliveries(self.work)

    async def work(self, text: str) -> str:
        self.begun.append(text)
        await self.go.wait()
        return text.upper()

    async def send(self, id_: str, text: str = "hello") -> Answer:
        parts = pack(text)
        answers = [
            await self.deliveries.take(PartRequest(id_, n, len(parts), data))
            for n, data in enumerate(parts)
        ]
        return answers[-1]


def told(desk: Callable[[Desk], Awaitable[None]]) -> None:
    async def story() -> None:
        here = Desk()
        try:
            await desk(here)
        finally:
            await here.deliveries.aclose()

    virtual_loop.run(story())


def test_a_request_that_comes_again_is_done_once() -> None:
    async def story(desk: Desk) -> None:
        assert await desk.send("1") == CallRunning()
        assert await desk.send("1") == CallRunning()
        desk.go.set()
        page = await desk.send("1")
        assert isinstance(page, Page)
        assert unpack([page.data], 100) == "HELLO"
        assert await desk.deliveries.page(PageRequest("1", 0)) == page
        assert desk.begun == ["hello"]

    told(story)


async def test_a_request_in_parts_begins_when_all_are_there_in_any_order() -> None:
    desk = Desk()
    try:
        desk.go.set()
        parts = pack(NOISE)
        numbers = list(range(len(parts)))[::-1]
        for n in (*numbers[:-1], numbers[0]):
            part = PartRequest("1", n, len(parts), parts[n])
            assert await desk.deliveries.take(part) == CallRunning()
        first = await desk.deliveries.take(PartRequest("1", 0, len(parts), parts[0]))
        assert isinstance(first, Page)
        pages = [await desk.deliveries.page(PageRequest("1", n)) for n in range(first.of)]
        assert unpack([p.data for p in pages if isinstance(p, Page)], len(NOISE)) == NOISE.upper()
        assert await desk.deliveries.page(PageRequest("1", first.of)) == CallFailed("unknown")
        assert await desk.deliveries.page(PageRequest("1", -1)) == CallFailed("unknown")
    finally:
        await desk.deliveries.aclose()


def test_a_request_nobody_knows_begins_nothing() -> None:
    async def story(desk: Desk) -> None:
        assert await desk.deliveries.page(PageRequest("1", 0)) == CallFailed("unknown")
        assert desk.begun == []

    told(story)


@pytest.mark.parametrize(
    "part",
    [
        PartRequest("1", 0, 0, ""),
        PartRequest("1", -1, 1, ""),
        PartRequest("1", 1, 1, ""),
        PartRequest("1", 0, 10**9, ""),
        PartRequest("1", 0, 1, "no base64"),
        PartRequest("1", 0, 1, pack("x" * (MAX_REQUEST_BYTES + 1))[0]),
    ],
    ids=["none", "before", "after", "many", "noise", "large"],
)
def test_parts_that_are_none_are_refused(part: PartRequest) -> None:
    async def story(desk: Desk) -> None:
        assert await desk.deliveries.take(part) == CallFailed("error", TOO_LARGE)
        assert desk.begun == []

    told(story)


def test_an_answer_that_is_no_longer_kept_is_told_so_and_not_made_again() -> None:
    async def story(desk: Desk) -> None:
        desk.go.set()
        for n in range(MAX_KEPT + 3):
            await desk.send(str(n))
        assert await desk.send("0") == CallFailed("error", GONE)
        assert len(desk.begun) == MAX_KEPT + 3

    told(story)


def test_a_crowd_is_told_to_wait() -> None:
    async def story(desk: Desk) -> None:
        answers = await asyncio.gather(*(desk.send(str(n)) for n in range(MAX_RUNNING + 2)))
        assert answers.count(CallFailed("busy", BUSY)) == 2

    told(story)


def test_requests_that_are_never_whole_are_dropped() -> None:
    async def story(desk: Desk) -> None:
        for n in range(MAX_OPEN + 1):
            assert await desk.deliveries.take(PartRequest(str(n), 0, 2, "")) == CallRunning()
        last = PartRequest("0", 1, 2, "")
        assert await desk.deliveries.take(last) == CallRunning()  # its first part is gone

    told(story)


def test_closing_cancels_what_runs() -> None:
    async def story(desk: Desk) -> None:
        assert await desk.send("1") == CallRunning()
        await desk.deliveries.aclose()
        assert await desk.deliveries.page(PageRequest("1", 0)) == CallFailed("error")

    told(story)


@pytest.mark.parametrize(
    ("error", "said"),
    [(ConfigError("this cannot be asked"), "this cannot be asked"), (ValueError("hunter2"), "")],
)
def test_what_goes_wrong_is_told_in_our_own_words_only(
    error: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: str) -> str:
        raise error

    async def story() -> None:
        here = Deliveries(broken)
        answer = await here.take(PartRequest("1", 0, 1, pack("x")[0]))
        assert answer == CallFailed("error", said)

    virtual_loop.run(story())
    assert "hunter2" not in caplog.text


def test_an_answer_that_is_too_large_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_dedup, "MAX_ANSWER_BYTES", 3)

    async def story(desk: Desk) -> None:
        desk.go.set()
        answer = await desk.send("1")
        assert isinstance(answer, CallFailed)
        assert "ask for less" in answer.detail

    told(story)
