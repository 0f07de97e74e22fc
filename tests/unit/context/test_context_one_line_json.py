from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from caal_node.context.one_line_json import MIN_CHARS, to_line
from tests.stand_ins.context_strategies import tried


class Colour(Enum):
    RED = "red"


class Room(BaseModel):
    name: str
    area: float | None = None


@dataclass
class Point:
    x: int
    note: str | None = None


class Opaque:
    pass


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"a": 1, "b": [True, None, 1.5], "c": None}, '{"a":1,"b":[true,null,1.5]}'),
        ({"text": '{"a": [1, 2], "b": null}'}, '{"text":{"a":[1,2]}}'),
        ('{"a": "[1, 2]"}', '{"a":[1,2]}'),
        (" [1, 2]\n", "[1,2]"),
        ("It is 12:30.", "It is 12:30."),
        ("one\ntwo", '"one\\ntwo"'),
        ("{not json}", "{not json}"),
        ("42", "42"),
        ({"zip": "00123"}, '{"zip":"00123"}'),
        ({"a": "Zürich 好"}, '{"a":"Zürich 好"}'),
        (None, "null"),
        ({}, "{}"),
        ([], "[]"),
        ({"a": {"b": None}}, '{"a":{}}'),
        (float("nan"), "nan"),
        (Colour.RED, "red"),
        ({Colour.RED: Colour.RED, 1: 2}, '{"red":"red","1":2}'),
        (Room(name="hall"), '{"name":"hall"}'),
        ([Point(1), Point(2, "n")], '[{"x":1},{"x":2,"note":"n"}]'),
        ((1, {"b", "a"}), '[1,["a","b"]]'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        ({"at": datetime(2026, 3, 1, 9, 30, tzinfo=UTC)}, '{"at":"2026-03-01T09:30:00+00:00"}'),
        ({"price": Decimal("1.50")}, '{"price":"1.50"}'),
        ({"raw": b"abc"}, '{"raw":"(3 bytes)"}'),
        ({"thing": Opaque()}, '{"thing":"(Opaque)"}'),
        ({"big": 1 << 5_000}, '{"big":"(a number of 5001 bits)"}'),
        ({"a": "x\u2028y"}, '{"a":"x\\u2028y"}'),
        ({"a": "half \ud800"}, '{"a":"half ?"}'),
    ],
)
def test_a_value_as_a_line(value: Any, line: str) -> None:
    assert to_line(value) == line


def test_a_long_list_says_how_many_items_of_how_many_it_shows() -> None:
    line = to_line([{"id": number} for number in range(1_000)], max_chars=200)
    shown = json.loads(line)
    assert shown[:3] == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert shown[-1] == f"… {len(shown) - 1} of 1000 shown"
    assert 150 < len(line) <= 200


def test_a_long_text_is_shortened_before_any_item_is_left_out() -> None:
    items = [{"id": number, "text": "word " * 500} for number in range(10)]
    shown = json.loads(to_line(items, max_chars=6_000))
    assert [item["id"] for item in shown] == list(range(10))
    assert shown[0]["text"].endswith("of 2500 characters shown)")


def test_what_follows_a_long_list_is_still_written() -> None:
    shown = json.loads(to_line({"items": list(range(10_000)), "total": 10_000}, max_chars=300))
    assert shown["total"] == 10_000
    assert shown["items"][-1].endswith("of 10000 shown")


def test_an_object_used_as_a_list_says_how_many_members_it_shows() -> None:
    line = to_line({f"key {number}": number for number in range(5_000)}, max_chars=1_000)
    shown = json.loads(line)
    assert shown["…"] == f"{len(shown) - 1} of 5000 keys shown"
    assert len(line) > 700


def test_plain_text_too_long_says_how_much_of_it_is_there() -> None:
    line = to_line("word " * 10_000, max_chars=200)
    assert line.startswith("word word")
    assert line.endswith("of 49999 characters shown)")
    assert len(line) <= 200


def test_a_line_cut_twice_keeps_the_first_total() -> None:
    once = to_line([{"id": number} for number in range(1_000)], max_chars=800)
    twice = json.loads(to_line(once, max_chars=200))
    assert twice[-1] == f"… {len(twice) - 1} of 1000 shown"
    text = to_line(to_line("word " * 900, max_chars=900), max_chars=200)
    assert text.endswith("of 4499 characters shown)")
    keys = to_line({f"k{number}": "v" * 20 for number in range(100)}, max_chars=900)
    assert json.loads(to_line(keys, max_chars=200))["…"].endswith(" of 100 keys shown")


def test_json_text_too_long_to_read_says_that_there_may_be_more() -> None:
    text = json.dumps({"rows": [{"id": number} for number in range(100_000)], "after": 1})
    shown = json.loads(to_line(text, max_chars=500))
    assert shown["rows"][0] == {"id": 0}
    assert " of at least " in shown["rows"][-1]
    assert shown["…"] == "1 of at least 1 keys shown"


def test_a_value_that_contains_itself_ends() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["self"] = loop
    pair: list[Any] = []
    pair += [pair, pair]
    assert len(to_line(loop)) <= 6_000
    assert len(to_line(pair)) <= 6_000


def test_a_hostile_depth_of_brackets_is_text() -> None:
    assert to_line("[" * 5_000 + "]" * 5_000, max_chars=100).startswith("[[[[")


def test_the_same_set_gives_the_same_line() -> None:
    assert to_line({"pear", "apple", "fig"}) == '["apple","fig","pear"]'


def test_a_cap_too_small_for_any_note_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 80"):
        to_line({}, max_chars=MIN_CHARS - 1)


def test_of_a_huge_value_only_what_is_written_is_read() -> None:
    class Counting(dict[str, Any]):
        seen = 0

        def items(self) -> Any:
            Counting.seen += 1
            return super().items()

    to_line([Counting(id=number) for number in range(100_000)], max_chars=1_000)
    assert Counting.seen < 2_000


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=60),
    lambda inner: (
        st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=8), inner, max_size=12)
    ),
    max_leaves=60,
)


def without_nulls(value: Any) -> Any:
    """What a line is expected to hold: no null members, JSON texts as what they are."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{") and value.strip():
        try:
            inner = json.loads(value)
        except ValueError:
            return value
        return without_nulls(inner)
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


containers = json_values.filter(lambda value: isinstance(value, (list, dict)))


@tried(100)
@given(containers)
def test_a_line_that_is_not_cut_reads_back_as_the_value(value: Any) -> None:
    line = to_line(value, max_chars=1_000_000)
    assert json.loads(line) == without_nulls(value)
    assert to_line(line, max_chars=1_000_000) == line


@tried(100)
@given(containers)
def test_json_in_a_text_is_as_good_as_the_value(value: Any) -> None:
    inside = {"value": json.dumps(value)}
    assert json.loads(to_line(inside, max_chars=1_000_000)) == without_nulls({"value": value})


@tried(100)
@given(containers, st.integers(MIN_CHARS, 600))
def test_a_line_is_valid_json_within_its_cap_however_it_is_cut(value: Any, max_chars: int) -> None:
    line = to_line(value, max_chars=max_chars)
    assert len(line) <= max_chars
    assert len(line.splitlines()) == 1
    assert type(json.loads(line)) is type(value)
    assert to_line(value, max_chars=max_chars) == line


@tried(100)
@given(st.text(), st.integers(MIN_CHARS, 200))
def test_any_text_is_one_line_within_its_cap_and_can_be_sent(text: str, max_chars: int) -> None:
    line = to_line(text * 5, max_chars=max_chars)
    assert len(line) <= max_chars
    assert len(line.splitlines()) <= 1
    line.encode()


@given(st.text(st.characters(categories=["Cs", "Ll"]), min_size=1, max_size=20))
def test_half_of_a_surrogate_pair_in_what_looks_like_json_costs_no_result(text: str) -> None:
    for each in (f"[{text}]", f'{{"a": "{text}"}}', [f"[{text}]"]):
        to_line(each).encode()
