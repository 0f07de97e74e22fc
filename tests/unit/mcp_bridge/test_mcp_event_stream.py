"""Streams of events as servers cut them up, read before the SDK does."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.protocol.inbound_filter import InboundFilter
from mcp_bridge.protocol.messages import EventStream


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self.chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk


async def passed(*chunks: bytes, endpoint: bool = False) -> bytes:
    stream = EventStream(
        Chunks(chunks), InboundFilter("far"), 1000, print, any_id=True, endpoint=endpoint
    )
    return b"".join([piece async for piece in stream])


ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xc3\xa9"}}'
OTHER = b'{"jsonrpc":"2.0","id":2,"result":{}}'


@given(
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
    st.lists(st.integers(0, 200), max_size=20),
    st.booleans(),
)
async def test_events_are_the_same_however_lines_end_and_chunks_are_cut(
    end: bytes, cuts: list[int], spread: bool
) -> None:
    data = [ANSWER] if not spread else [b'{"jsonrpc":"2.0","id":1,', b'"result":{"a":"\xc3\xa9"}}']
    lines = [b": hello", b"id: 7", *(b"data: " + one for one in data), b"", b"data:" + OTHER, b""]
    sent = b"".join(line + end for line in lines)
    places = sorted({0, len(sent), *(cut % len(sent) for cut in cuts)})
    chunks = [sent[at:to] for at, to in itertools.pairwise(places)]
    events = (await passed(*chunks)).split(b"\n\n")
    assert events[0].startswith(b"id: 7\ndata: ")
    assert json.loads(events[0].partition(b"data: ")[2]) == json.loads(ANSWER)
    assert events[1:] == [b"data: " + OTHER, b""]


@pytest.mark.parametrize(
    ("asked", "waits"),
    [(b"0", b"500"), (b"1500", b"1500"), (b"9" * 5_000, b"30000"), (b"-5", b""), (b"x", b"")],
)
async def test_a_stream_is_opened_again_after_a_wait_of_sense(asked: bytes, waits: bytes) -> None:
    found = await passed(b"retry: " + asked + b"\n\n")
    assert found == (b"retry: " + waits + b"\ndata:\n\n" if waits else b"")


async def test_only_messages_pass_and_one_endpoint_where_it_is_known() -> None:
    endpoint = b"event: endpoint\ndata: /post\n\n"
    assert await passed(endpoint, b"event: other\ndata: x\n\n", b"data: junk\n\n") == b""
    assert await passed(endpoint, endpoint, endpoint=True) == endpoint


async def test_an_answer_that_is_no_json_becomes_an_error() -> None:
    large = b'{"jsonrpc":"2.0","id":1,"result":{"x":[' + b"[]," * 50_000 + b"]}}"
    found = await passed(b"data: " + large + b"\n\n")
    assert json.loads(found.removeprefix(b"data: "))["error"]["message"].startswith("its answer is")


@pytest.mark.parametrize("line", [b"data: " + b"x" * 1_000_000 + b"\n", b"data\n" * 1_000])
async def test_an_event_has_an_end(line: bytes) -> None:
    with pytest.raises(httpx2.SSEError, match="over 16 MiB"):
        await passed(*[line] * 200)
