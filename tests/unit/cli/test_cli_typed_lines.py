"""Typed lines: capped, cut where they end, and never in the way of Ctrl-C."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.cli.output import capped_lines, standard_input, typed_lines

CAP = 8
PATIENCE_S = 20.0
"""For a thread's answer; a test that runs into it has failed."""


@given(st.lists(st.binary(max_size=12).filter(lambda b: b"\n" not in b)), st.data())
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    got = list(capped_lines(chunks, CAP))
    assert got == [line[:CAP].decode(errors="replace") for line in lines]


def test_a_line_without_its_end_still_counts() -> None:
    assert list(capped_lines([b"one\ntw", b"o"], CAP)) == ["one", "two"]


async def test_lines_come_one_at_a_time_and_end_with_the_input() -> None:
    reading, writing = os.pipe()
    os.write(writing, "grüß dich\n\nwho is there?\n".encode())
    os.close(writing)
    got = [line async for line in typed_lines(reading, max_chars=6)]
    os.close(reading)
    assert got == ["grüß d", "", "who is"]


async def test_an_input_that_cannot_be_read_any_more_has_ended() -> None:
    reading, writing = os.pipe()
    try:
        # Reading from a pipe's writing end fails, as from a terminal that was closed.
        async with asyncio.timeout(PATIENCE_S):
            assert [line async for line in typed_lines(writing, max_chars=6)] == []
    finally:
        os.close(reading)
        os.close(writing)


async def test_a_program_without_an_input_has_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert [line async for line in typed_lines(standard_input(), max_chars=6)] == []


async def test_waiting_for_a_line_can_be_cancelled() -> None:
    reading, writing = os.pipe()
    lines = typed_lines(reading, max_chars=6)
    waiting = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.close(writing)  # lets the thread go
