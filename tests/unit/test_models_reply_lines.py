"""Cutting a stream of bytes into lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import ModelReplyError
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
    assert await lines(chunks) == [line.strip() for line in whole.split(b"\n") if line.strip()]


async def test_ends_of_any_kind_and_empty_lines_are_left_out() -> None:
    assert await lines([b"a\r", b"\n\n \nb"]) == [b"a", b"b"]


@pytest.mark.parametrize(
    "chunks", [[b"x" * 11], [b"x" * 11 + b"\n"], [b"xxxxxx", b"xxxxxx"], [b"xxxxxx", b"xxxxxx\n"]]
)
async def test_a_line_that_is_too_long_is_refused_before_it_ends(chunks: list[bytes]) -> None:
    with pytest.raises(ModelReplyError, match="longer than 10 bytes"):
        await lines(chunks, line_max=10)


async def test_a_reply_that_is_too_long_is_refused() -> None:
    with pytest.raises(ModelReplyError, match="the reply is longer than 20 bytes"):
        await lines([b"12345\n"] * 4, reply_max=20)
    assert len(await lines([b"1234\n"] * 4, reply_max=20)) == 4
