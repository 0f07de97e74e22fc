"""Cutting a stream of bytes into lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node import http_client
from caal_node.core.errors import ModelReplyError
from caal_node.models.backends import http_transport
from caal_node.models.backends.http_transport import split_lines


async def stream(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def lines(chunks: Iterable[bytes], **limits: int) -> list[bytes]:
    return [line async for line in split_lines(stream(chunks), **limits)]


@given(st.lists(st.binary(max_size=12), max_size=8), st.data())
async def test_lines_do_not_depend_on_how_the_stream_is_cut(
    written: list[bytes], data: st.DataObject
) -> None:
    whole = b"\n".join(written)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert await lines(chunks) == [line.strip() for line in whole.split(b"\n")]


async def test_ends_of_any_kind_are_left_out() -> None:
    assert await lines([b"a\r", b"\n\n \nb"]) == [b"a", b"", b"", b"b"]


@pytest.mark.parametrize(
    "chunks", [[b"x" * 11], [b"x" * 11 + b"\n"], [b"xxxxxx", b"xxxxxx"], [b"xxxxxx", b"xxxxxx\n"]]
)
async def test_a_line_that_is_too_long_is_refused_before_it_ends(chunks: list[bytes]) -> None:
    with pytest.raises(ModelReplyError, match="longer than 10 bytes"):
        await lines(chunks, line_max=10)


async def test_a_reply_of_too_many_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "LINES_MAX", 3)
    with pytest.raises(ModelReplyError, match="more than 3 lines"):
        await lines([b"\n" * 4])
    assert len(await lines([b"\n" * 3])) == 4


@pytest.mark.parametrize("chunk", [b"\n" * 60_000, b"{}\n" * 20_000])
async def test_the_loop_has_its_turns_within_one_chunk(
    monkeypatch: pytest.MonkeyPatch, chunk: bytes
) -> None:
    monkeypatch.setattr(http_client, "STEP_S", 0)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    read = await lines([chunk])
    counting.cancel()
    assert turns >= len(read) - 2


@given(st.integers(0, 12), st.integers(1, 12))
def test_what_has_too_many_values_is_refused_before_it_is_parsed(count: int, limit: int) -> None:
    piece = json.dumps(list(range(count))).encode()
    if count <= limit:
        assert http_transport.checked(piece, limit) is piece
    else:
        with pytest.raises(ModelReplyError, match=f"more than {limit} values"):
            http_transport.checked(piece, limit)
