"""Rules about how often tools may be called, and the counts that they are held against."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import ConfigError
from caal_node.core.tool_spec import Caller
from caal_node.policy.limit_rules import MOST, LimitRule, read_limit_rules
from caal_node.tools.middleware.limits import CallCounts

GUEST = Caller("room", "kitchen", "guest-1")


class Numbered:
    """Places of a file in which each rule has ten lines, and a key the line behind its rule's."""

    def where(self, *path: str | int) -> str:
        assert path[:2] == ("tools", "limits")
        line = 1 if len(path) == 2 else 10 * int(path[2]) + len(path)
        return f"caal.toml, line {line}"


def read(*rules: object) -> tuple[LimitRule, ...]:
    return read_limit_rules(list(rules), Numbered())


def test_a_rule_is_read_with_its_line() -> None:
    _, rule = read(
        {"per_turn": 3},
        {"tools": ["send_*"], "effect": "write", "per_hour": 5, "each": ["tool", "participant"]},
    )
    assert rule == LimitRule(
        per_hour=5,
        tools=("send_*",),
        effect=("write",),
        each=("tool", "participant"),
    )
    assert rule.line == "caal.toml, line 13"


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (5, "line 3, tools.limits: write a table"),
        ({}, "line 3, tools.limits: write per_turn, per_minute or per_hour"),
        ({"per_hours": 5}, "line 4, tools.limits, per_hours: there is no such key. Did you mean p"),
        ({"per_hour": "5"}, "line 4, tools.limits, per_hour: write a whole number"),
        ({"per_hour": True}, "write a whole number"),
        ({"per_hour": 0}, "write 1 or more. A rule that denies"),
        ({"per_hour": MOST + 1}, f"write at most {MOST}, or take it away"),
        ({"per_hour": 5, "per_minute": 6}, "per_minute: 6 is more than per_hour = 5 allows"),
        ({"per_hour": 5, "per_turn": 6}, "per_turn: 6 is more than per_hour = 5 allows"),
        ({"per_hour": 5, "tools": []}, 'tools: write a list of names such as ["send_*"]'),
        ({"per_hour": 5, "tools": [3]}, "tools: write a list of names"),
        ({"per_hour": 5, "rooms": ["x" * 300]}, "rooms: write a list of names"),
        ({"per_hour": 5, "effect": "harmless"}, "effect: write read, write or destructive"),
        ({"per_hour": 5, "each": ["call"]}, "each: write tool, room or participant"),
    ],
)
def test_a_wrong_rule_is_named_with_its_fix(rule: object, error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(rule)
    assert str(raised.value).startswith("caal.toml, line ")
    assert error in str(raised.value)


def test_rules_that_are_no_list_and_rules_without_end_are_refused() -> None:
    with pytest.raises(ConfigError, match="below a line"):
        read_limit_rules({"per_hour": 5}, Numbered())
    with pytest.raises(ConfigError, match="at most 100 rules"):
        read(*[{"per_hour": 5}] * 101)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2_000) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
)
keys = st.sampled_from(["tools", "rooms", "effect", "each", "per_turn", "per_hour", "per"])


@given(st.lists(st.dictionaries(keys, values) | values, max_size=3))
def test_whatever_is_written_is_read_or_refused_in_one_line(rules: list[Any]) -> None:
    try:
        read_rules, error = read(*rules), ""
    except ConfigError as raised:
        read_rules, error = (), str(raised)
    assert all(1 <= (rule.per_hour or 1) <= MOST for rule in read_rules)
    assert "\n" not in error


def test_a_rule_in_code_needs_a_number() -> None:
    with pytest.raises(ValueError, match="per_turn, per_minute or per_hour"):
        LimitRule(tools=["send_*"])
    with pytest.raises(ValueError, match="from 1 to"):
        LimitRule(per_hour=-1)
    with pytest.raises(ValueError, match="write a list, such as"):
        LimitRule(per_hour=1, tools="send_*")


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (LimitRule(1), True),
        (LimitRule(1, tools=["x", "send_*"], rooms=["kit*"], participants=["guest-*"]), True),
        (LimitRule(1, tools=["Send_*"]), False),
        (LimitRule(1, rooms=["cellar"]), False),
        (LimitRule(1, participants=["owner"]), False),
        (LimitRule(1, effect=["read", "destructive"]), False),
    ],
)
def test_a_rule_covers_what_all_of_its_conditions_fit(rule: LimitRule, fits: bool) -> None:
    assert (rule.fits_tool(["send_mail"], "write") and rule.fits_caller(GUEST)) is fits


def test_what_each_names_is_counted_apart_and_so_are_calls_of_the_api() -> None:
    together, apart = LimitRule(1), LimitRule(1, each=["tool", "participant"])
    owner, api = Caller("room", "kitchen", "owner"), Caller("api", "kitchen")
    assert together.count_of("a", GUEST) == together.count_of("b", owner)
    assert together.count_of("a", GUEST) != together.count_of("a", api)
    counts = {apart.count_of(tool, who) for tool in ("a", "b") for who in (GUEST, owner)}
    assert len(counts) == 4


class Hand:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


wanted_calls = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 90), st.integers(0, 90)), min_size=4, max_size=60
)
"""For each call the seconds since the one before, how long it would run, and how long after its
start it would do its work."""


@given(wanted_calls, st.integers(1, 3), st.integers(20, 60))
def test_no_window_of_the_length_ever_has_more_calls_than_are_allowed(
    wanted: list[tuple[int, int, int]], most: int, length: int
) -> None:
    clock = Hand()
    counts = CallCounts(clock)
    ends: list[int] = []
    worked: list[int] = []
    now = 0
    for pause, lasts, works_after in wanted:
        now += pause
        for end in sorted(each for each in ends if each <= now):
            ends.remove(end)
            clock.now = end
            counts.end("tool", counts=True)
        clock.now = now
        if counts.wait_s("tool", most, length) == 0:
            counts.begin("tool")
            ends.append(now + lasts)
            worked.append(now + min(works_after, lasts))
    for moment in worked:
        assert sum(moment <= each < moment + length for each in worked) <= most


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 4))
def test_after_the_wait_that_was_told_one_more_call_fits(pauses: list[int], most: int) -> None:
    clock = Hand()
    counts = CallCounts(clock)
    for pause in pauses:
        clock.now += pause
        if wait_s := counts.wait_s("tool", most, 60):
            assert 0 < wait_s <= 60
            clock.now += wait_s
            assert counts.wait_s("tool", most, 60) == 0
        counts.begin("tool")
        counts.end("tool", counts=True)


def test_a_call_that_does_not_count_leaves_its_place() -> None:
    counts = CallCounts(Hand())
    counts.begin("tool")
    assert counts.wait_s("tool", 1, 60) == 60  # it runs, and nobody knows for how long
    counts.end("tool", counts=False)
    assert counts.wait_s("tool", 1, 60) == 0
    assert len(counts) == 0


@given(st.lists(st.integers(0, 30), max_size=80))
def test_the_number_of_counts_is_bounded_and_those_under_way_stay(keys: list[int]) -> None:
    counts = CallCounts(Hand(), counts_max=5)
    counts.begin("runs")
    for key in keys:
        counts.wait_s(key, 1, 60)
        counts.begin(key)
        counts.end(key, counts=True)
        assert len(counts) <= 5
    counts.end("runs", counts=True)
    assert counts.wait_s("runs", 1, 60) == 60


def test_past_the_bound_the_count_that_was_asked_for_least_lately_is_forgotten() -> None:
    counts = CallCounts(Hand(), counts_max=2)
    for key in ("old", "new", "third"):
        if key == "third":
            assert counts.wait_s("old", 1, 60) == 60
        counts.begin(key)
        counts.end(key, counts=True)
    assert counts.wait_s("new", 1, 60) == 0
    assert counts.wait_s("old", 1, 60) == 60
