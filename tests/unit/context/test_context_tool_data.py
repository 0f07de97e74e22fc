from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.context.tool_data import DATA_HEADING, ENTRY_CHARS, ToolDataCache
from tests.stand_ins.context_strategies import tried


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_list_keeps_its_order_and_shows_its_numbers() -> None:
    cache = ToolDataCache()
    cache.add_result(
        "c", "find", {"q": "hotels"}, [{"name": "Alpha"}, {"name": "Beta"}, "Gamma", 4]
    )
    assert cache.render(["c"]) == (
        'find {"q":"hotels"}:\n1. {"name":"Alpha"}\n2. {"name":"Beta"}\n3. Gamma\n4. 4'
    )


def test_a_list_inside_an_object_is_numbered_under_its_name() -> None:
    cache = ToolDataCache()
    cache.add_result("c", "find", {}, {"total": 2, "items": [{"id": 7}, {"id": 3}], "next": None})
    assert cache.render(["c"]) == 'find {}:\n{"total":2}\nitems:\n1. {"id":7}\n2. {"id":3}'


def test_text_that_is_a_json_list_is_a_list() -> None:
    cache = ToolDataCache()
    cache.add_result("c", "find", "", '[{"id": 1}, {"id": 2}]')
    assert cache.render(["c"]) == 'find {}:\n1. {"id":1}\n2. {"id":2}'


def test_plain_text_stays_plain() -> None:
    cache = ToolDataCache()
    cache.add_result("c", "time", '{"zone": "Berlin"}', "It is half past nine.")
    assert cache.render(["c"]) == 'time {"zone":"Berlin"}:\nIt is half past nine.'


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_a_result_without_content_is_not_kept(nothing: Any) -> None:
    cache = ToolDataCache()
    cache.add_result("c", "find", {}, nothing)
    assert len(cache) == 0


def test_calls_are_rendered_in_the_order_asked_for_and_unknown_ones_left_out() -> None:
    cache = ToolDataCache()
    cache.add_result("b", "two", {}, "2")
    cache.add_result("a", "one", {}, "1")
    assert cache.render(["a", "x", "b", "a"]) == "one {}:\n1\ntwo {}:\n2"
    assert cache.render([]) == cache.render(["x"]) == ""


def test_a_new_result_of_the_same_call_takes_the_place_of_the_old() -> None:
    cache = ToolDataCache()
    cache.add_result("a", "one", {}, "old")
    size = cache.size_bytes
    cache.add_result("a", "one", {}, "new")
    assert cache.render(["a"]) == "one {}:\nnew"
    assert (len(cache), cache.size_bytes) == (1, size)


def test_the_oldest_go_when_there_are_too_many() -> None:
    cache = ToolDataCache(max_entries=2)
    for name in "abc":
        cache.add_result(name, name, {}, "x")
    assert [name for name in "abc" if name in cache] == ["b", "c"]


def test_what_a_call_brings_twice_is_kept_once_as_the_newer_one() -> None:
    cache = ToolDataCache()
    shops = [{"name": "Roma"}, {"name": "Bella"}]
    cache.add_result("a", "find", {"city": "Rome"}, shops)
    size = cache.size_bytes
    cache.add_result("b", "find", {"city": "Rome"}, shops)
    assert (len(cache), cache.size_bytes) == (1, size)
    assert cache.render(["a", "b"]) == cache.render(["b"]) != ""
    # The same for something else, and what a program adds, are things of their own.
    cache.add_result("c", "find", {"city": "Bari"}, shops)
    cache.add_result("d", "look", {"city": "Rome"}, shops)
    cache.add("doorbell", "rang")
    cache.add("doorbell", "rang")
    assert len(cache) == 5


def test_the_oldest_go_when_they_are_too_large_together() -> None:
    cache = ToolDataCache(max_bytes=2_420)
    for name in "abc":
        cache.add_result(name, "tool", {}, name * 600)
    assert len(cache) == 3
    cache.add_result("d", "tool", {}, "é" * 600)
    assert [name for name in "abcd" if name in cache] == ["c", "d"]


def test_what_is_too_old_is_deleted_without_a_new_entry() -> None:
    clock = Clock()
    cache = ToolDataCache(max_age_s=60, clock=clock)
    cache.add_result("a", "tool", {}, "x")
    clock.now_s = 30
    cache.add_result("b", "tool", {}, "y")
    clock.now_s = 60
    assert cache.render(["a", "b"]) == "tool {}:\nx\ntool {}:\ny"
    clock.now_s = 61
    assert cache.render(["a", "b"]) == "tool {}:\ny"
    clock.now_s = 100
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_a_result_of_megabytes_is_cut_and_says_so() -> None:
    cache = ToolDataCache()
    cache.add_result(
        "c", "find", {}, [{"id": number, "text": "x" * 50} for number in range(50_000)]
    )
    assert cache.size_bytes < ENTRY_CHARS + 200
    lines = cache.render(["c"], max_chars=1_000).splitlines()
    assert lines[1].startswith('1. {"id":0,')
    assert lines[2].startswith('2. {"id":1,')
    assert lines[-1] == f"… {len(lines) - 2} of 50000 shown"


def test_one_long_result_does_not_hide_the_others() -> None:
    cache = ToolDataCache()
    cache.add_result("a", "hotels", {}, [{"name": f"Hotel number {each}"} for each in range(10)])
    cache.add_result("b", "page", {}, "word " * 5_000)
    text = cache.render(["a", "b"], max_chars=800)
    assert '10. {"name":"Hotel number 9"}' in text
    assert len(text) <= 800


def test_results_that_find_no_room_are_counted() -> None:
    cache = ToolDataCache()
    for number in range(10):
        cache.add_result(f"c{number}", "page", {}, f"{number} " + "word " * 100)
    text = cache.render([f"c{number}" for number in range(10)], max_chars=600)
    assert text.splitlines()[0].endswith("older results not shown)")
    assert "page {}:\n9 word" in text
    assert len(text) <= 600


def test_its_own_text_shows_no_result() -> None:
    cache = ToolDataCache()
    cache.add_result("c", "find", {"secret": "abc"}, "private")
    assert "private" not in repr(cache)


@pytest.mark.parametrize("limits", [{"max_entries": 0}, {"max_bytes": 0}, {"max_age_s": 0.0}])
def test_limits_without_room_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="above zero"):
        ToolDataCache(**limits)


def test_after_clear_nothing_is_left() -> None:
    cache = ToolDataCache()
    cache.add_result("a", "tool", {}, "x")
    cache.clear()
    assert (len(cache), cache.size_bytes, cache.render(["a"])) == (0, 0, "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=6)
    ),
    max_leaves=30,
)


@tried(100)
@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), json_values, st.floats(0, 50)), max_size=20),
    st.integers(1, 4),
    st.integers(50, 2_000),
    st.integers(0, 800),
)
def test_no_limit_is_ever_passed(
    steps: list[tuple[str, Any, float]], max_entries: int, max_bytes: int, max_chars: int
) -> None:
    clock = Clock()
    cache = ToolDataCache(max_entries=max_entries, max_bytes=max_bytes, max_age_s=60, clock=clock)
    for call_id, value, wait_s in steps:
        clock.now_s += wait_s
        cache.add_result(call_id, "tool", {"id": call_id}, value)
        assert len(cache) <= max_entries
        assert 0 <= cache.size_bytes <= max_bytes
        text = cache.render("abcdef", max_chars=max_chars)
        assert len(text) <= max_chars
        assert text == cache.render("abcdef", max_chars=max_chars)


class TestWhatAProgramAdds:
    def test_it_is_read_under_its_name_and_each_addition_stays(self) -> None:
        cache = ToolDataCache()
        cache.add("doorbell", {"seen": "a parcel"})
        cache.add("doorbell", ["a person", "a dog"])
        cache.add("doorbell", None)
        assert cache.message() == (
            f'{DATA_HEADING}\ndoorbell:\n{{"seen":"a parcel"}}\ndoorbell:\n1. a person\n2. a dog'
        )
        assert [(entry.tool, entry.line) for entry in cache] == [
            ("doorbell", '{"seen":"a parcel"}'),
            ("doorbell", '["a person","a dog"]'),
        ]

    def test_what_calls_brought_is_in_the_message_too(self) -> None:
        cache = ToolDataCache()
        assert cache.message() == ""
        cache.add_result("c", "find", {"q": "hotels"}, ["Ritz"])
        cache.add("time", "noon")
        assert cache.message() == f'{DATA_HEADING}\nfind {{"q":"hotels"}}:\n1. Ritz\ntime:\nnoon'
        assert len(cache.own_ids) == 1
