"""Cutting a stream of bytes into lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node import http_client
from caal_node.core.errors import ModelReplyError
from caal_node.models.backends import http_transport, openai
from caal_node.models.backends.http_transport import Patience, TransportDeadlines, split_lines
from caal_node.models.backends.ollama import OllamaReply
from caal_node.models.backends.tool_calls import CALLS_READ


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
    assert turns >= len(read) - 3  # none for the first line


@given(st.integers(0, 12), st.integers(1, 12))
def test_what_has_too_many_values_is_refused_before_it_is_parsed(count: int, limit: int) -> None:
    piece = json.dumps(list(range(count))).encode()
    if count <= limit:
        assert http_transport.checked(piece, limit) is piece
    else:
        with pytest.raises(ModelReplyError, match=f"more than {limit} values"):
            http_transport.checked(piece, limit)


class Loop:
    """A loop whose clock a test sets."""

    now = 0.0

    def time(self) -> float:
        return self.now


def test_a_reply_has_its_first_piece_and_each_after_it_and_its_end_on_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    patience = Patience(TransportDeadlines(first=10, between=5, whole=20))
    assert (patience.due, Patience(TransportDeadlines(first=10), 3).due) == (10, 3)
    loop.now = 8
    patience.renew()
    assert patience.due == 13
    loop.now = 29
    patience.renew()
    assert patience.due == 30


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"role": "assistant", "content": None}, False),
        ({"content": ""}, False),
        ({"tool_calls": []}, False),
        ({}, False),
        ({"content": " "}, True),
        ({"reasoning": "Hm"}, True),
        ({"reasoning_content": "Hm"}, True),
        ({"tool_calls": [{"function": {"arguments": "{"}}]}, True),
    ],
)
@pytest.mark.parametrize("place", ["delta", "message"])
def test_only_what_says_something_puts_a_deadline_off(
    place: str, part: dict[str, Any], says: bool
) -> None:
    assert openai.ChatEvent.model_validate({"choices": [{place: part}]}).says_something is says


@pytest.mark.parametrize("choices", [[], None, [{"text": ""}], [{"text": None}]])
def test_an_empty_completion_says_nothing(choices: Any) -> None:
    assert not openai.TextEvent.model_validate({"choices": choices}).says_something


def test_of_a_line_with_a_thousand_calls_the_first_are_read() -> None:
    many: list[Any] = [{}] * 1_000
    line = {"message": {"tool_calls": many}, "tool_results": many}
    reply = OllamaReply.model_validate_json(json.dumps(line))
    assert reply.message is not None
    assert len(reply.message.tool_calls or ()) == len(reply.tool_results or ()) == CALLS_READ
