"""Tool calls that arrive in pieces."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from caal_node.models.backends.base import NativeCall
from caal_node.models.backends.tool_calls import CallDelta, CallJoiner
from caal_node.models.reply_limits import ARGUMENTS_CHARS_MAX, CALLS_MAX


def join(*deltas: dict[str, Any]) -> tuple[NativeCall, ...]:
    joiner = CallJoiner()
    joiner.add(CallDelta.model_validate(delta) for delta in deltas)
    return joiner.calls()


def piece(
    name: str | None = None,
    arguments: Any = None,
    *,
    index: int | None = None,
    id: str | None = None,
) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


def test_pieces_join_by_index() -> None:
    assert join(
        piece("f", '{"a"', index=0, id="x"),
        piece("g", "", index=1, id="y"),
        piece(None, ": 1}", index=0),
        piece(None, "{}", index=1),
    ) == (NativeCall("x", "f", '{"a": 1}'), NativeCall("y", "g", "{}"))


def test_what_was_cut_before_its_arguments_began_has_none() -> None:
    joiner = CallJoiner()
    joiner.add(CallDelta.model_validate(piece(name, "", index=n)) for n, name in enumerate("fg"))
    assert joiner.calls(cut=True) == (NativeCall("", "f", "{}"), NativeCall("", "g", ""))


def test_one_index_for_every_call_is_seen_by_the_ids() -> None:
    assert join(piece("f", "{}", index=0, id="x"), piece("f", "{}", index=0, id="y")) == (
        NativeCall("x", "f", "{}"),
        NativeCall("y", "f", "{}"),
    )


def test_one_index_and_no_ids_is_seen_by_the_names() -> None:
    assert [c.name for c in join(piece("f", "{}", index=0), piece("g", "{}", index=0))] == [
        "f",
        "g",
    ]


def test_without_index_a_name_begins_a_call() -> None:
    assert join(piece("f", "{"), piece(None, "}"), piece("f", '{"a":1}')) == (
        NativeCall("", "f", "{}"),
        NativeCall("", "f", '{"a":1}'),
    )


def test_without_index_pieces_join_by_id() -> None:
    assert join(
        piece("f", "{", id="x"), piece("g", "{", id="y"), piece(None, "}", id="x"), piece(None, "}")
    ) == (NativeCall("x", "f", "{}"), NativeCall("y", "g", "{}"))


def test_a_fresh_id_on_every_piece_begins_nothing() -> None:
    assert join(piece("f", "{", index=0, id="a"), piece("", "}", index=0, id="b")) == (
        NativeCall("a", "f", "{}"),
    )


def test_a_repeated_name_is_no_second_call_and_a_split_one_is_joined() -> None:
    assert join(
        piece("get_", index=0, id="x"),
        piece("time", index=0, id="x"),
        piece("get_time", '{"z"', index=0, id="x"),
        piece("get_time", ":1}", index=0, id="x"),
    ) == (NativeCall("x", "get_time", '{"z":1}'),)


def test_arguments_may_be_an_object_or_missing() -> None:
    assert join(piece("f", {"ü": 1}), piece("g")) == (
        NativeCall("", "f", '{"ü": 1}'),
        NativeCall("", "g", "{}"),
    )


def test_pieces_without_a_call_are_dropped() -> None:
    assert join(piece(None, "}", index=3), {}, piece("", "{}", id="x")) == ()


def test_one_index_no_ids_and_one_name_is_seen_by_complete_arguments() -> None:
    pieces = [piece("f", '{"a":', index=0), piece(None, "1}", index=0)]
    assert [c.arguments for c in join(*pieces, piece("f", '{"a":2}', index=0))] == [
        '{"a":1}',
        '{"a":2}',
    ]
    assert [c.arguments for c in join(piece("f", {"a": 1}, index=0), piece("f", {}, index=0))] == [
        '{"a": 1}',
        "{}",
    ]


def test_one_id_for_every_call_is_seen_by_complete_arguments() -> None:
    assert join(piece("f", '{"a":1}', id="0"), piece("g", "{}", id="0")) == (
        NativeCall("0", "f", '{"a":1}'),
        NativeCall("0", "g", "{}"),
    )


def test_a_name_first_and_its_arguments_in_pieces_without_an_index() -> None:
    assert join(
        piece("f"), piece(None, '{"a"'), piece(None, ": 1}"), piece("g"), piece(None, "{}")
    ) == (NativeCall("", "f", '{"a": 1}'), NativeCall("", "g", "{}"))


def test_a_call_that_is_sent_again_is_one_call() -> None:
    twice = [piece("f", '{"a": 1}', index=0, id="x"), piece("f", '{"a":1}', index=1, id="x")]
    assert join(*twice) == (NativeCall("x", "f", '{"a": 1}'),)
    without_ids = [piece("f", {"a": 1}, index=0), piece("f", {"a": 1}, index=1)]
    assert join(*without_ids) == (NativeCall("", "f", '{"a": 1}'),)


def test_equal_calls_with_ids_of_their_own_are_two() -> None:
    assert len(join(piece("f", "{}", index=0, id="x"), piece("f", "{}", index=1, id="y"))) == 2


def test_endless_arguments_are_kept_no_longer_than_it_takes_to_refuse_them() -> None:
    pieces = [piece(None, "x" * 1_000, index=0) for _ in range(2_000)]
    (call,) = join(piece("f", "x", index=0), *pieces)
    assert ARGUMENTS_CHARS_MAX < len(call.arguments) < ARGUMENTS_CHARS_MAX + 2_000


def test_an_endless_row_of_calls_is_kept_no_longer_than_it_takes_to_see_it() -> None:
    calls = join(*(piece("f", f"{{{n}}}", index=n) for n in range(5_000)))
    assert CALLS_MAX < len(calls) < 10 * CALLS_MAX


@given(
    st.lists(
        st.tuples(
            st.text("abc_", min_size=1, max_size=5),
            st.dictionaries(st.text(max_size=4), st.text(max_size=9), max_size=3),
        ),
        max_size=5,
    ),
    st.data(),
)
def test_however_the_pieces_are_cut_and_mixed_the_calls_come_out_whole(
    calls: list[tuple[str, dict[str, str]]], data: st.DataObject
) -> None:
    rows: list[list[dict[str, Any]]] = []
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        cut = data.draw(st.integers(1, len(text)))
        rows.append(
            [
                piece(name, text[:cut], index=index, id=f"id{index}"),
                piece(None, text[cut:], index=index),
            ]
        )
    # Calls begin in their order; what continues them may come in any.
    rest = data.draw(st.permutations([row[1] for row in rows]))
    joined = join(*(row[0] for row in rows), *rest)
    assert [(c.name, json.loads(c.arguments)) for c in joined] == calls
    assert [c.id for c in joined] == [f"id{n}" for n in range(len(calls))]


def test_ollamas_place_within_the_function_tells_calls_apart() -> None:
    assert join(
        {"function": {"index": 0, "name": "f", "arguments": ""}},
        {"function": {"index": 1, "name": "f", "arguments": ""}},
        {"function": {"index": 0, "arguments": '{"a":'}},
        {"function": {"index": 1, "arguments": "{}"}},
        {"function": {"index": 0, "arguments": "1}"}},
    ) == (NativeCall("", "f", '{"a":1}'), NativeCall("", "f", "{}"))


def test_an_empty_value_in_front_of_the_pieces_is_no_part_of_them() -> None:
    assert join(piece("f", {}), piece(None, '{"a"'), piece(None, ":1}")) == (
        NativeCall("", "f", '{"a":1}'),
    )


def test_a_call_with_its_arguments_as_a_value_is_told_before_the_end_and_once() -> None:
    joiner = CallJoiner()
    joiner.add([CallDelta.model_validate(piece("f", {"a": 1}, index=0))])
    assert joiner.calls(ended=False) == (NativeCall("", "f", '{"a": 1}'),)
    joiner.add([CallDelta.model_validate(piece(None, None, index=0, id="late"))])
    joiner.add([CallDelta.model_validate(piece("g", {}, index=1))])
    assert joiner.calls(ended=False) == ()
    assert joiner.calls() == (NativeCall("", "g", "{}"),)
