"""Each promise of docs/security.md has attacks that hold it, and no attack is without a promise."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.attack.runner import all_attacks

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "security.md"


@cache
def promised() -> dict[str, list[str]]:
    """The table's rows: a promise, and the areas or attacks that are named for it."""
    _, table = PAGE.read_text(encoding="utf-8").split("## Each promise and its attacks\n")
    table, *_ = re.split(r"^#", table, flags=re.MULTILINE)
    rows = (line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|"))
    return {row[0]: re.findall(r"`([^`]+)`", row[1]) for row in list(rows)[2:]}


def test_each_promise_names_attacks_that_there_are() -> None:
    known = {one.name for one in all_attacks()} | {one.area for one in all_attacks()}
    assert len(promised()) > 10
    for promise, named in promised().items():
        assert named, promise
        assert set(named) <= known, promise


def test_each_attack_holds_a_promise() -> None:
    named = {name for names in promised().values() for name in names}
    assert not [one.name for one in all_attacks() if not {one.name, one.area} & named]


@pytest.mark.parametrize(
    ("page", "said"),
    [("README.md", r"attacks by .*, of (\d+), that"), ("docs/figures.md", r"(\d+) attacks of")],
)
def test_the_pages_say_how_many_attacks_there_are(page: str, said: str) -> None:
    found = re.findall(said, (ROOT / page).read_text(encoding="utf-8"))
    assert found == [str(len(all_attacks()))]
