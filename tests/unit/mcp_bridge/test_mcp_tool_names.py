"""Exposed names: allowed, unique, and the same whoever else is up."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.protocol.tool_listing import exposed_names, server_prefixes

ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
NAMES = st.text(st.sampled_from("ab_-.é 0"), min_size=1, max_size=80)


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=12), max_size=6))
def test_names_are_allowed_and_unique_over_all_servers(servers: dict[str, list[str]]) -> None:
    prefixes = server_prefixes(servers)
    given_out: list[str] = []
    for server, tools in servers.items():
        names = exposed_names(prefixes[server], tools)
        assert set(names) == set(tools)
        given_out += names.values()
    assert all(ALLOWED.match(name) for name in given_out)
    assert len(set(given_out)) == len(given_out)


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True), st.randoms())
def test_prefixes_do_not_depend_on_the_order(servers: list[str], random: object) -> None:
    shuffled = sorted(servers, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert server_prefixes(servers) == server_prefixes(shuffled)


def test_plain_names_stay_as_they_are() -> None:
    assert server_prefixes(["time", "my_files", "a__b"]) == {
        "time": "time", "my_files": "my_files", "a__b": "a__b",
    }  # fmt: skip
    assert exposed_names("time", ["get__now", "x-y"]) == {
        "get__now": "time__get__now", "x-y": "time__x-y",
    }  # fmt: skip


def test_of_two_servers_that_could_be_mixed_up_the_longer_one_is_renamed() -> None:
    prefixes = server_prefixes(["a__b", "a", "a_"])
    assert prefixes["a"] == "a"
    assert re.fullmatch(r"a_b_[0-9a-f]{6}", prefixes["a__b"])
    assert re.fullmatch(r"a_[0-9a-f]{6}", prefixes["a_"])


def test_what_is_cut_or_meets_another_gets_a_hash_and_the_plain_one_keeps_its_name() -> None:
    names = exposed_names("s", ["get.it", "get_it", "x" * 100, "x" * 99])
    assert names["get_it"] == "s__get_it"
    assert re.fullmatch(r"s__get_it_[0-9a-f]{6}", names["get.it"])
    assert len(names["x" * 100]) == 64
    assert names["x" * 100] != names["x" * 99]
    assert list(names) == ["get.it", "get_it", "x" * 100, "x" * 99]
