"""Calls that arrive as data, in the ways in which servers send them."""

from __future__ import annotations

from typing import Any

from caal_node.replies import BrokenCall, ToolCall, ToolCallEnd, UnknownCall
from caal_node.replies.names import toolbox
from caal_node.replies.structured import CallPieces, only_new

BOX = toolbox([{"function": {"name": name, "parameters": {}}} for name in ("a", "b")])


def finished(*deltas: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    pieces = CallPieces()
    for delta in deltas:
        pieces.add(**delta)
    return [
        (event.name, event.arguments)
        for event in pieces.finish(BOX)
        if isinstance(event, ToolCallEnd)
    ]


def test_pieces_are_joined_by_index() -> None:
    assert finished(
        {"index": 0, "id": "1", "name": "a", "arguments": ""},
        {"index": 1, "id": "2", "name": "b", "arguments": '{"y"'},
        {"index": 0, "arguments": '{"x": 1}'},
        {"index": 1, "arguments": ": 2}"},
    ) == [("a", {"x": 1}), ("b", {"y": 2})]


def test_calls_that_all_say_index_0_are_told_apart_by_id() -> None:
    assert finished(
        {"index": 0, "id": "1", "name": "a", "arguments": '{"x": 1}'},
        {"index": 0, "id": "2", "name": "a", "arguments": '{"x": 2}'},
    ) == [("a", {"x": 1}), ("a", {"x": 2})]


def test_calls_without_index_or_id_are_told_apart_by_arrival() -> None:
    assert finished({"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {"y": 2}}) == [
        ("a", {"x": 1}),
        ("b", {"y": 2}),
    ]


def test_a_name_first_and_arguments_in_pieces_without_an_index() -> None:
    assert finished(
        {"name": "a"},
        {"arguments": '{"x"'},
        {"arguments": ": 1}"},
        {"name": "b"},
        {"arguments": "{}"},
    ) == [("a", {"x": 1}), ("b", {})]


def test_a_name_repeated_in_every_piece_is_one_name() -> None:
    assert finished(
        {"index": 0, "id": "1", "name": "a", "arguments": '{"x":'},
        {"index": 0, "id": "1", "name": "a", "arguments": " 1}"},
    ) == [("a", {"x": 1})]


def test_the_same_id_twice_is_one_call() -> None:
    assert finished(
        {"index": 0, "id": "1", "name": "a", "arguments": {"x": 1}},
        {"index": 1, "id": "1", "name": "a", "arguments": {"x": 1}},
    ) == [("a", {"x": 1})]


def test_without_ids_the_same_name_and_arguments_are_one_call() -> None:
    assert finished(
        {"index": 0, "name": "a", "arguments": {"x": 1}},
        {"index": 1, "name": "a", "arguments": {"x": 1}},
    ) == [("a", {"x": 1})]


def test_missing_arguments_are_none_given() -> None:
    assert finished({"name": "a", "arguments": None}) == [("a", {})]


def test_every_call_gives_one_event_with_its_id() -> None:
    pieces = CallPieces()
    pieces.add(index=0, id="1", name="a", arguments='{"x": ')
    pieces.add(index=1, id="2", name="z", arguments="{}")
    first, second = pieces.finish(BOX)
    assert isinstance(first, BrokenCall)
    assert first.id == "1"
    assert isinstance(second, UnknownCall)
    assert second.id == "2"


def test_a_call_that_was_sent_and_leaked_is_made_once() -> None:
    sent = [ToolCall("a", {"x": 1})]
    leaked = [ToolCall("a", {"x": 1}), ToolCall("b", {})]
    assert only_new(leaked, sent) == [ToolCall("b", {})]
