"""Names that a model may say."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from n8n.discovery.normalise import NameCandidate as Tool
from n8n.discovery.normalise import assign_names, sanitise

ALLOWED = re.compile(r"^[A-Za-z0-9_-]{1,64}$")
TITLES = st.sampled_from(
    ["Get Weather", "get_weather", "get-weather", "天気", "", "x" * 90]
) | st.text(max_size=80)
CANDIDATES = st.lists(
    st.builds(
        Tool,
        key=st.uuids().map(str),
        wanted=TITLES,
        age=st.sampled_from(["2025", "2026", ""]),
    ),
    max_size=12,
    unique_by=lambda c: c.key,
)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("get_weather", "get_weather"),
        ("Convert Units", "Convert_Units"),
        ("Ünïcode tööl! (v2)", "Unicode_tool_v2"),
        ("Straße", "Strasse"),
        ("天気", ""),
    ],
)
def test_a_title_becomes_a_name(title: str, name: str) -> None:
    assert sanitise(title) == name


def test_the_older_of_two_namesakes_keeps_the_plain_name() -> None:
    names = assign_names([Tool("b", "My Weather", "2026"), Tool("a", "my-weather", "2025")])
    assert names["a"] == "my-weather"
    assert re.fullmatch(r"My_Weather_[0-9a-f]{6}", names["b"])


def test_a_name_stays_when_an_older_namesake_appears() -> None:
    before = assign_names([Tool("b", "report", "2026")])
    after = assign_names([Tool("b", "report", "2026"), Tool("a", "report", "2020")], before)
    assert after["b"] == "report"
    assert after["a"] != "report"


def test_a_renamed_workflow_gets_its_new_name() -> None:
    before = assign_names([Tool("a", "old", "1")])
    assert assign_names([Tool("a", "new", "1")], before) == {"a": "new"}


@given(CANDIDATES)
def test_names_are_allowed_and_no_two_alike(candidates: list[Tool]) -> None:
    names = assign_names(candidates)
    assert names.keys() == {c.key for c in candidates}
    assert all(ALLOWED.match(name) for name in names.values())
    assert len({n.casefold().replace("-", "_") for n in names.values()}) == len(names)


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_names_do_not_depend_on_the_order(candidates: list[Tool], random: Random) -> None:
    shuffled = candidates.copy()
    random.shuffle(shuffled)
    assert assign_names(candidates) == assign_names(shuffled)


@given(CANDIDATES, st.sets(st.integers(0, 11)))
def test_nothing_is_renamed_when_others_come_or_go(candidates: list[Tool], gone: set[int]) -> None:
    before = assign_names(candidates)
    left = [c for i, c in enumerate(candidates) if i not in gone]
    between = assign_names(left, before)
    assert between == {c.key: before[c.key] for c in left}
    after = assign_names(candidates, between)
    assert all(after[c.key] == before[c.key] for c in left)
