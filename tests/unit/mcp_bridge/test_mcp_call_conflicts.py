"""Which calls of one reply conflict, and what their arguments say of where they work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.core.call_conflicts import (
    CallAccess,
    conflict,
    mentioned_paths,
    resolved_path,
)


def write(*path: str, source: str = "s", whole: bool = False) -> CallAccess:
    return CallAccess(source, True, (path,) if path else (), whole)


def read(*path: str, source: str = "s") -> CallAccess:
    return CallAccess(source, False, (path,) if path else ())


def waits_for(calls: list[CallAccess]) -> tuple[tuple[int, ...], ...]:
    """For each call the earlier ones that it waits for."""
    return tuple(
        tuple(before for before in range(at) if conflict(calls[before], call))
        for at, call in enumerate(calls)
    )


def test_readers_never_conflict() -> None:
    assert not conflict(read("/", "a"), read("/", "a"))
    assert not conflict(read(), read())


def test_a_writer_conflicts_on_its_path_above_it_and_below_it() -> None:
    assert conflict(write("/", "a"), read("/", "a"))
    assert conflict(write("/", "a"), read("/", "a", "b"))
    assert conflict(write("/", "a", "b"), read("/", "a"))
    assert not conflict(write("/", "a", "b"), read("/", "a", "c"))
    assert not conflict(write("/", "ab"), read("/", "a")), "a name that only begins alike"


def test_paths_are_everybodys() -> None:
    assert conflict(write("/", "a", source="one"), read("/", "a", source="two"))


def test_a_writer_without_a_path_conflicts_with_all_of_its_source_and_no_other() -> None:
    assert conflict(write(), write())
    assert conflict(write(), read("/", "a"))
    assert conflict(write("/", "a"), read())
    assert conflict(write("/", "a", whole=True), read("/", "b"))
    assert not conflict(write(source="one"), write(source="two"))


def test_the_plan_names_what_each_call_waits_for() -> None:
    calls = [read("/", "a"), write("/", "a"), read("/", "b"), read("/", "a"), write()]
    assert waits_for(calls) == ((), (0,), (), (1,), (0, 1, 2, 3))


accesses = st.builds(
    CallAccess,
    st.sampled_from(["one", "two"]),
    st.booleans(),
    st.lists(st.lists(st.sampled_from("ab"), max_size=3).map(lambda p: ("/", *p)), max_size=2).map(
        tuple
    ),
    st.booleans(),
)


@given(accesses, accesses)
def test_a_conflict_is_mutual(one: CallAccess, other: CallAccess) -> None:
    assert conflict(one, other) == conflict(other, one)


@given(st.lists(st.tuples(accesses, st.integers(1, 5)), max_size=8))
def test_no_two_in_conflict_at_once_and_none_later_than_one_by_one(
    calls: list[tuple[CallAccess, int]],
) -> None:
    waits = waits_for([access for access, _ in calls])
    starts: list[int] = []
    ends: list[int] = []
    for before, (_, length) in zip(waits, calls, strict=True):
        starts.append(max((ends[n] for n in before), default=0))
        ends.append(starts[-1] + length)
    for one in range(len(calls)):
        assert starts[one] <= sum(length for _, length in calls[:one])
        for other in range(one):
            if conflict(calls[one][0], calls[other][0]):
                assert starts[one] >= ends[other], "and in the model's order"


@given(st.lists(accesses, max_size=8))
def test_a_call_waits_for_none_that_it_has_no_conflict_with(calls: list[CallAccess]) -> None:
    for at, before in enumerate(waits_for(calls)):
        assert all(conflict(calls[n], calls[at]) for n in before)


@pytest.mark.parametrize(
    ("arguments", "paths", "whole"),
    [
        ({"path": "/a/b.txt"}, ("/a/b.txt",), False),
        ({"path": "~/notes"}, ("~/notes",), False),
        ({"paths": ["/a", "/b"]}, ("/a", "/b"), False),
        ({"outputFile": "file:///tmp/x"}, ("file:///tmp/x",), False),
        ({"edits": [{"file_path": "/a"}], "count": 3}, ("/a",), False),
        ({"source": "/a", "destination": "/b", "overwrite": True}, ("/a", "/b"), False),
        ({"path": "notes/today.md"}, ("notes/today.md",), True),
        ({"path": "/a", "content": "see /etc/hosts"}, ("/a",), False),
        ({"note": "/a/b"}, ("/a/b",), True),
        ({"path": "/a", "command": "rm -r /"}, ("/a",), True),
        ({"city": "Paris"}, (), True),
        ({"text": "and/or", "file": ""}, ("and/or",), True),
        ({"url": "https://example.com/a/b"}, (), True),
        ({}, (), True),
        ({"path": "/a\0b"}, (), True),
        ({"path": "/" + "a" * 5_000}, (), True),
        ({"path": [f"/{n}" for n in range(500)]}, tuple(f"/{n}" for n in range(64)), True),
    ],
)
def test_what_arguments_say_of_paths(
    arguments: dict[str, object], paths: tuple[str, ...], whole: bool
) -> None:
    said = mentioned_paths(arguments)
    assert said.paths == paths
    assert said.whole is whole


@pytest.mark.parametrize(
    ("more", "writer", "reader"),
    [
        ({"new_name": "b.txt"}, True, True),
        ({"to": "b.txt"}, True, True),
        ({"to": "archive"}, True, False),
        ({"newName": " b.txt\n"}, True, True),
        ({"renames": [{"with": "the other one.tar.gz"}]}, True, True),
        ({"to": "old notes/b c.txt"}, True, False),
        ({"files": "b.txt\nc.txt"}, True, True),
        ({"query": "update"}, True, False),
        ({"title": "Shopping"}, True, False),
        ({"version": "1.25"}, True, False),
        ({"content": "b.txt"}, False, False),
        ({"edits": [{"oldText": "a", "newText": "b"}, {"old_string": "c"}]}, False, False),
        ({"contentName": "b"}, True, False),
        ({"note": "two\nlines"}, False, False),
        ({"note": ""}, False, False),
        ({"url": "https://example.com/b.txt"}, False, False),
        ({"count": 3, "overwrite": True, "mode": None}, False, False),
    ],
)
def test_a_text_that_may_be_a_name_beside_a_path_may_be_anything_of_the_source(
    more: dict[str, object], writer: bool, reader: bool
) -> None:
    arguments = {"path": "/data/a.txt", **more}
    assert mentioned_paths(arguments).whole is writer
    assert mentioned_paths(arguments, writes=False).whole is reader


@given(
    st.sampled_from(["to", "name", "newName", "as", "title", "with", "x", "text_name", "mode"]),
    st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12),
)
def test_a_writer_with_a_bare_name_waits_for_a_writer_of_that_name(key: str, name: str) -> None:
    said = mentioned_paths({"path": "/data/a.txt", key: name})
    one = CallAccess("s", True, tuple(map(resolved_path, said.paths)), said.whole)
    assert conflict(one, write("/", "data", name.lower()))
    assert conflict(one, write("/", "elsewhere", name.lower()))
    assert not conflict(one, write("/", "data", name.lower(), source="another"))


def test_deep_and_giant_arguments_count_for_everything() -> None:
    deep: object = "/a"
    for _ in range(50):
        deep = {"path": deep}
    assert mentioned_paths({"x": deep}).whole
    assert mentioned_paths({"path": "/a", "rows": ["x"] * 100_000}).whole


def test_a_link_is_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real = resolved_path(str(tmp_path / "real" / "a.txt"))
    assert resolved_path(str(tmp_path / "link" / "a.txt")) == real
    assert resolved_path(f"{tmp_path}/real/../link/./a.txt") == real
    assert resolved_path(f"file://{tmp_path}/link/a.txt") == real


def test_a_path_that_is_relative_starts_where_this_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolved_path("a/b") == resolved_path(str(tmp_path / "a" / "b"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolved_path("~/a") == resolved_path(str(tmp_path / "a"))
    for of_nobody in ("~nobody-of-that-name/a", "~\0/a"):
        assert resolved_path(of_nobody)[-2:] == tuple(of_nobody.split("/"))


def test_capitals_and_doubled_slashes_make_no_other_file() -> None:
    assert resolved_path("/A//b/") == resolved_path("//a/B")


@pytest.mark.skipif(os.name == "nt", reason="spells of another system are compared as texts")
def test_windows_paths_are_compared_as_such() -> None:
    assert resolved_path("C:\\A\\b") == resolved_path("c:/a/B")


@given(st.text(max_size=200).filter(lambda text: "\0" not in text))
def test_no_text_is_too_odd_to_resolve(text: str) -> None:
    assert isinstance(resolved_path(text), tuple)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_no_arguments_are_too_odd_to_read(value: object) -> None:
    said = mentioned_paths({"path": value})
    assert said.whole or said.paths
