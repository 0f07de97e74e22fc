"""What is read of a server's messages, what is dropped, and when a server is left."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from mcp_bridge.protocol.inbound_filter import (
    MAX_ASKED,
    MAX_DROPPED,
    MAX_DROPPED_BYTES,
    MAX_READ,
    READ_PER_S,
    Envelope,
    Flooded,
    InboundFilter,
    read_envelope,
)


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def made(clock: Clock | None = None) -> InboundFilter:
    return InboundFilter("noisy", clock or Clock())


CHANGED = message(method="notifications/tools/list_changed")
LOG = message(method="notifications/message", params={"level": "info", "data": "x"})


@given(
    st.permutations(["jsonrpc", "method", "id", "params", "result"]),
    st.sets(st.sampled_from(["method", "id"])),
    st.one_of(st.integers(0, 10**12), st.text(max_size=20)),
    st.recursive(st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner)),
    st.sampled_from([None, 1]),
)
async def test_method_and_id_are_found_wherever_they_stand(
    order: list[str], given: set[str], call: int | str, body: Any, indent: int | None
) -> None:
    members = {"jsonrpc": "2.0", "method": "tools/x", "id": call}
    known = {key: value for key, value in members.items() if key in {"jsonrpc", *given}}
    known["params" if "method" in given else "result"] = {"inner": body, "id": 7, "method": "no"}
    text = json.dumps({key: known[key] for key in order if key in known}, indent=indent)
    found = await read_envelope(text.encode())
    assert found == Envelope(
        "tools/x" if "method" in given else None, call if "id" in given else None
    )


@given(st.binary(max_size=300))
async def test_whatever_arrives_is_read_or_dropped(text: bytes) -> None:
    inbound = made()
    for line in (text, b"{" + text, CHANGED[:-9] + text):
        assert await inbound.admits(line) in (True, False)


async def test_an_answer_is_read_once_and_only_where_it_was_asked_for() -> None:
    inbound = made()
    answer = message(id=3, result={})
    assert not await inbound.admits(answer)
    inbound.sent(JSONRPCRequest(jsonrpc="2.0", id=3, method="tools/list"))
    assert not await inbound.admits(message(id=4, result={}))
    assert await inbound.admits(message(id="3", error={"code": 1, "message": ""}))
    assert not await inbound.admits(answer)
    assert await inbound.admits(answer, any_id=True)


async def test_the_answer_to_a_request_that_was_given_up_is_not_read() -> None:
    inbound = made()
    inbound.sent(JSONRPCRequest(jsonrpc="2.0", id=3, method="tools/call"))
    inbound.sent(
        JSONRPCNotification(
            jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 3}
        )
    )
    assert not await inbound.admits(message(id=3, result={}))


async def test_few_notifications_are_read_and_no_change_of_tools_is_lost() -> None:
    clock = Clock()
    inbound = made(clock)
    told: list[int] = []

    async def changed() -> None:
        told.append(1)

    inbound.list_changed = changed
    assert not await inbound.admits(LOG)
    read = [await inbound.admits(CHANGED) for _ in range(MAX_READ + 5)]
    assert (read.count(True), len(told)) == (MAX_READ, 5)
    clock.now += 1.0
    read = [await inbound.admits(CHANGED) for _ in range(MAX_READ)]
    assert read.count(True) == READ_PER_S


async def test_a_server_asks_so_much_at_once_and_hears_no_to_the_rest() -> None:
    inbound = made()
    refused: list[int | str] = []
    inbound.refuse = refused.append
    asked = [await inbound.admits(message(id=n, method="ping")) for n in range(MAX_ASKED + 2)]
    assert (asked.count(True), refused) == (MAX_ASKED, [MAX_ASKED, MAX_ASKED + 1])
    inbound.sent(JSONRPCResponse(jsonrpc="2.0", id=0, result={}))
    assert await inbound.admits(message(id=99, method="ping"))
    # One that the server gives up itself gets no answer, and its place is free.
    assert await inbound.admits(message(method="notifications/cancelled", params={"requestId": 1}))
    assert await inbound.admits(message(id=100, method="ping"))


async def test_what_is_large_and_no_answer_is_dropped() -> None:
    inbound = made()
    for members in (
        {"method": "notifications/progress", "params": "x" * 70_000},
        {"params": "x" * 70_000, "method": "notifications/progress"},
        {"id": 1, "method": "elicitation/create", "params": "x" * 70_000},
    ):
        assert not await inbound.admits(message(**members))
    assert await inbound.admits(message(id=1, result="x" * 70_000), any_id=True)


@pytest.mark.parametrize("line", [b"", b"junk", LOG, message(id=9, result={}), CHANGED])
async def test_a_server_that_does_not_stop_is_left(line: bytes) -> None:
    inbound = made()
    for _ in range(MAX_DROPPED):
        await inbound.admits(line)
    with pytest.raises(Flooded, match="does not stop sending "):
        await inbound.admits(line)
    assert inbound.flooded


async def test_an_answer_and_time_give_room_for_more() -> None:
    clock = Clock()
    inbound = made(clock)
    for _ in range(3):
        await inbound.drop("messages that are too long", MAX_DROPPED_BYTES)
        inbound.answered(None)
    await inbound.drop("messages that are too long", MAX_DROPPED_BYTES)
    with pytest.raises(Flooded):
        await inbound.drop("lines that are no JSON-RPC", MAX_DROPPED_BYTES)
    clock.now += 3600
    await inbound.drop("lines that are no JSON-RPC", MAX_DROPPED_BYTES)


async def test_each_kind_is_said_once_and_counted_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inbound = made()
    with caplog.at_level(logging.INFO):
        for _ in range(2_500):
            await inbound.admits(b"secret words on stdout")
            await inbound.admits(LOG)
        inbound.close()
    first, last = (record.getMessage() for record in caplog.records)
    assert first == "noisy: sends lines that are no JSON-RPC; they are dropped and counted"
    assert last.startswith("noisy: dropped 2,500 lines that are no JSON-RPC, 2,500 notif")
