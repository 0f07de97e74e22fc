"""What a reload changed: names by set, written into a bounded answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.control.reports import (
    MAX_REPORT_BYTES,
    ReloadReport,
    bounded,
    from_dict,
    report,
    to_dict,
)

tables = st.dictionaries(st.text(min_size=1, max_size=8), st.sampled_from("ab"), max_size=12)
names = st.lists(st.text(max_size=64), max_size=150).map(tuple)


def test_names_are_added_removed_or_changed_by_their_fingerprint() -> None:
    found = report({"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "1", "d": "1"}, ["n8n"])
    assert found == ReloadReport(3, added=("d",), removed=("a",), changed=("b",), failed=("n8n",))


@given(tables, tables)
def test_the_old_table_and_the_report_give_the_new_names(
    old: dict[str, str], new: dict[str, str]
) -> None:
    found = report(old, new)
    assert (old.keys() - set(found.removed)) | set(found.added) == new.keys()
    assert found.tool_count == len(new)
    assert all(old[name] != new[name] for name in found.changed)
    assert report(new, new) == ReloadReport(len(new))


@given(names, names, names, names)
def test_a_report_always_fits_and_counts_what_it_leaves_out(
    added: tuple[str, ...],
    removed: tuple[str, ...],
    changed: tuple[str, ...],
    failed: tuple[str, ...],
) -> None:
    whole = ReloadReport(99, added, removed, changed, failed)
    kept = bounded(whole)
    assert len(json.dumps(to_dict(kept)).encode()) <= MAX_REPORT_BYTES
    lists = ("added", "removed", "changed", "failed")
    missing = sum(len(getattr(whole, name)) - len(getattr(kept, name)) for name in lists)
    assert kept.omitted == missing
    assert from_dict(json.loads(json.dumps(to_dict(kept)))) == kept


def test_failed_sources_are_kept_before_the_names_of_tools() -> None:
    whole = ReloadReport(900, added=tuple(f"tool_{n}" * 8 for n in range(900)), failed=("n8n",))
    kept = bounded(whole)
    assert kept.failed == ("n8n",)
    assert kept.omitted > 0


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tool_count": "3", "added": [], "removed": [], "changed": [], "failed": []},
        {"tool_count": 3, "added": "abc", "removed": [], "changed": [], "failed": []},
        {"tool_count": 3, "added": [1], "removed": [], "changed": [], "failed": []},
    ],
)
def test_what_is_no_report_is_not_read_as_one(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="a report needs"):
        from_dict(fields)
