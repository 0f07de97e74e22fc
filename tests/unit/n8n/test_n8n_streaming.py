"""Answers that come in pieces: the lines are those of n8n 2.41.1."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from n8n.calls.results import SEE_EXECUTION, StreamReader, read_reply
from n8n.core.errors import N8nError
from n8n.core.http import HttpResponse
from tests.unit.n8n.test_n8n_results import JSON_TYPE, TOOL

STREAMS = replace(TOOL, response_mode="streaming")


def node(*pieces: Any) -> str:
    meta = {"metadata": {"nodeId": "1", "nodeName": "Answer", "itemIndex": 0, "runIndex": 0}}
    items = [{"type": "item", "content": piece, **meta} for piece in pieces]
    told = [{"type": "begin", **meta}, *items, {"type": "end", **meta}]
    return "".join(json.dumps(one) + "\n" for one in told)


FAILED = '{"type":"error","metadata":{"nodeId":"1","nodeName":"Stop"}}\n'


def reply(body: str) -> HttpResponse:
    return HttpResponse(200, {"content-type": JSON_TYPE}, body.encode(), truncated=False)


@pytest.mark.parametrize(
    ("body", "kind", "value"),
    [
        (node("It is ", "done."), "text", "It is done."),
        (node("Looking at the calendar. ") + node("It is done."), "text", "It is done."),
        (node('{"message": ', '"Done."}'), "object", {"message": "Done."}),
        (node("[1, 2]"), "array", [1, 2]),
    ],
)
def test_the_last_nodes_text_is_the_answer(body: str, kind: str, value: Any) -> None:
    result = read_reply(STREAMS, reply(body))
    assert (result.kind, result.value, result.spoken) == (kind, value, None)


def test_a_streamed_text_is_heard_as_it_stands_where_its_author_asks_for_that() -> None:
    speaks = replace(STREAMS, spoken_field="message")
    assert read_reply(speaks, reply(node("It is\n", "done."))).spoken == "It is done."
    assert read_reply(speaks, reply(node('{"message": "Done."}'))).spoken == "Done."


@pytest.mark.parametrize("body", [FAILED, node("Looking.") + FAILED])
def test_an_error_in_the_stream_is_a_failed_run(body: str) -> None:
    with pytest.raises(N8nError) as caught:
        read_reply(STREAMS, reply(body))
    assert (caught.value.kind, caught.value.fix) == ("workflow_failed", SEE_EXECUTION)


@pytest.mark.parametrize("body", ["", "\n", node()])
def test_a_stream_that_says_nothing_is_empty(body: str) -> None:
    assert read_reply(STREAMS, reply(body)).kind == "empty"


def test_a_body_that_is_no_stream_is_read_as_any_other() -> None:
    assert read_reply(STREAMS, reply('{"ok": 1}')).value == {"ok": 1}


@given(st.integers(1, 40))
def test_steps_are_told_in_order_and_only_the_answer_is_followed_by_none(size: int) -> None:
    nodes = (node("Looking at the ", "calendar."), node(" "), node("Wrïting."), node("Done."))
    body = "".join(nodes).encode()
    told: list[tuple[str, bool]] = []
    steps = StreamReader(lambda words, followed: told.append((words, followed)))
    for at in range(0, len(body), size):
        steps.feed(body[at : at + size])
    first, second = "Looking at the calendar.", "Wrïting."
    assert told == [
        (first, False),
        (first, True),
        (second, False),
        (second, True),
        ("Done.", False),
    ]


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(body: bytes) -> None:
    StreamReader(lambda words, followed: None).feed(body)
    StreamReader().feed(body)


def test_a_line_that_does_not_end_is_no_step_and_is_not_kept() -> None:
    steps = StreamReader(lambda words, followed: None, max_line=100)
    for _ in range(101):
        steps.feed(b"x")
    assert not steps.is_stream
    steps.feed(b"\n" + node("Late.").encode())
    assert (steps.is_stream, steps.text) == (False, "")
