"""Requests and answers in chunks: joined or refused, acted on once, kept for a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.control import rpc
from caal_node.control.rpc import (
    BUSY,
    CHUNK_CHARS,
    GONE,
    MAX_INCOMPLETE,
    MAX_KEPT,
    MAX_REQUEST_BYTES,
    MAX_RUNNING,
    TOO_LARGE,
    AnswerChunk,
    CannotAnswer,
    FetchChunk,
    RequestDeduplicator,
    RequestFailed,
    RpcAnswer,
    SendChunk,
    StillRunning,
    join,
    max_chunks,
    split,
)
from caal_node.core.errors import ConfigError
from tests.stand_ins import virtual_loop

NOISE = random.Random(7).randbytes(60_000).hex()
TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs",)))


@given(TEXT)
def test_a_text_is_whole_again(text: str) -> None:
    assert join(split(text), 10_000) == text


@given(st.lists(st.text(max_size=60), max_size=4))
def test_what_are_no_chunks_is_refused_in_one_way(chunks: list[str]) -> None:
    with pytest.raises(ValueError, match="chunks"):
        join(chunks, 10_000)


def test_every_chunk_fits_and_their_number_is_known_beforehand() -> None:
    worst = random.Random(1).randbytes(200_000).decode("latin-1")
    chunks = split(worst)
    assert max(map(len, chunks)) <= CHUNK_CHARS
    assert len(chunks) <= max_chunks(len(worst.encode()))


def test_a_chunk_too_few_or_too_many_is_refused() -> None:
    chunks = split(NOISE)
    assert len(chunks) > 3
    for wrong in (chunks[:-1], chunks[1:], (*chunks, chunks[-1])):
        with pytest.raises(ValueError, match="chunks"):
            join(wrong, len(NOISE))


def test_a_text_that_unpacks_without_end_is_cut_off() -> None:
    with pytest.raises(ValueError, match="larger than 1000 bytes"):
        join(split("x" * 50_000_000), 1000)


def send(id_: str, number: int, of: int, data: str) -> SendChunk:
    return SendChunk(id=id_, number=number, of=of, data=data)


def fetch(id_: str, number: int) -> FetchChunk:
    return FetchChunk(id=id_, number=number)


def failed(reason: Any, detail: str = "") -> RequestFailed:
    return RequestFailed(reason=reason, detail=detail)


class SlowRequests:
    """A deduplicator whose requests are answered when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = asyncio.Event()
        self.dedup = RequestDeduplicator(self.handle)

    async def handle(self, text: str) -> str:
        self.begun.append(text)
        await self.go.wait()
        return text.upper()

    async def send(self, id_: str, text: str = "hello") -> RpcAnswer:
        chunks = split(text)
        answers = [
            await self.dedup.receive(send(id_, n, len(chunks), data))
            for n, data in enumerate(chunks)
        ]
        return answers[-1]


def run(story: Callable[[SlowRequests], Awaitable[None]]) -> None:
    async def whole_story() -> None:
        requests = SlowRequests()
        try:
            await story(requests)
        finally:
            await requests.dedup.aclose()

    virtual_loop.run(whole_story())


def test_a_request_that_comes_again_is_done_once() -> None:
    async def story(requests: SlowRequests) -> None:
        assert await requests.send("1") == StillRunning()
        assert await requests.send("1") == StillRunning()
        requests.go.set()
        answer = await requests.send("1")
        assert isinstance(answer, AnswerChunk)
        assert join([answer.data], 100) == "HELLO"
        assert await requests.dedup.fetch(fetch("1", 0)) == answer
        assert requests.begun == ["hello"]

    run(story)


async def test_a_request_in_chunks_begins_when_all_are_there_in_any_order() -> None:
    requests = SlowRequests()
    try:
        requests.go.set()
        chunks = split(NOISE)
        numbers = list(range(len(chunks)))[::-1]
        for n in (*numbers[:-1], numbers[0]):
            chunk = send("1", n, len(chunks), chunks[n])
            assert await requests.dedup.receive(chunk) == StillRunning()
        first = await requests.dedup.receive(send("1", 0, len(chunks), chunks[0]))
        assert isinstance(first, AnswerChunk)
        answers = [await requests.dedup.fetch(fetch("1", n)) for n in range(first.of)]
        assert (
            join([a.data for a in answers if isinstance(a, AnswerChunk)], len(NOISE))
            == NOISE.upper()
        )
        assert await requests.dedup.fetch(fetch("1", first.of)) == failed("unknown")
        assert await requests.dedup.fetch(fetch("1", -1)) == failed("unknown")
    finally:
        await requests.dedup.aclose()


def test_a_request_nobody_knows_begins_nothing() -> None:
    async def story(requests: SlowRequests) -> None:
        assert await requests.dedup.fetch(fetch("1", 0)) == failed("unknown")
        assert requests.begun == []

    run(story)


@pytest.mark.parametrize(
    "chunk",
    [
        send("1", 0, 0, ""),
        send("1", -1, 1, ""),
        send("1", 1, 1, ""),
        send("1", 0, 10**9, ""),
        send("1", 0, 1, "no base64"),
        send("1", 0, 1, split("x" * (MAX_REQUEST_BYTES + 1))[0]),
    ],
    ids=["none", "before", "after", "many", "noise", "large"],
)
def test_chunks_that_are_none_are_refused(chunk: SendChunk) -> None:
    async def story(requests: SlowRequests) -> None:
        assert await requests.dedup.receive(chunk) == failed("error", TOO_LARGE)
        assert requests.begun == []

    run(story)


def test_an_answer_that_is_no_longer_kept_is_told_so_and_not_made_again() -> None:
    async def story(requests: SlowRequests) -> None:
        requests.go.set()
        for n in range(MAX_KEPT + 3):
            await requests.send(str(n))
        assert await requests.send("0") == failed("error", GONE)
        assert len(requests.begun) == MAX_KEPT + 3

    run(story)


def test_a_crowd_is_told_to_wait() -> None:
    async def story(requests: SlowRequests) -> None:
        answers = await asyncio.gather(*(requests.send(str(n)) for n in range(MAX_RUNNING + 2)))
        assert answers.count(failed("busy", BUSY)) == 2

    run(story)


def test_requests_that_are_never_whole_are_dropped() -> None:
    async def story(requests: SlowRequests) -> None:
        for n in range(MAX_INCOMPLETE + 1):
            assert await requests.dedup.receive(send(str(n), 0, 2, "")) == StillRunning()
        last = send("0", 1, 2, "")
        assert await requests.dedup.receive(last) == StillRunning()  # its first part is gone

    run(story)


def test_closing_cancels_what_runs() -> None:
    async def story(requests: SlowRequests) -> None:
        assert await requests.send("1") == StillRunning()
        await requests.dedup.aclose()
        assert await requests.dedup.fetch(fetch("1", 0)) == failed("error")

    run(story)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ConfigError("this cannot be asked"), failed("error", "this cannot be asked")),
        (CannotAnswer("timeout"), failed("timeout")),
        (ValueError("hunter2"), failed("error")),
    ],
)
def test_what_goes_wrong_is_told_in_our_own_words_only(
    error: Exception, answer: RequestFailed, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: str) -> str:
        raise error

    async def story() -> None:
        requests = RequestDeduplicator(broken)
        assert await requests.receive(send("1", 0, 1, split("x")[0])) == answer

    virtual_loop.run(story())
    assert "hunter2" not in caplog.text


def test_an_answer_that_is_too_large_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MAX_ANSWER_BYTES", 3)

    async def story(requests: SlowRequests) -> None:
        requests.go.set()
        answer = await requests.send("1")
        assert isinstance(answer, RequestFailed)
        assert "ask for less" in answer.detail

    run(story)
