"""Typed lines: capped, cut where they end, and never in the way of Ctrl-C."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.cli.typed_lines import capped_lines, typed_lines

CAP = 8


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


async def test_waiting_for_a_line_can_be_cancelled() -> None:
    reading, writing = os.pipe()
    lines = typed_lines(reading, max_chars=6)
    waiting = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.close(writing)  # lets the thread go
