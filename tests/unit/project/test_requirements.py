"""tests/requirements.md says which tests hold which behaviour; this holds the file to the truth."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
MANIFEST = TESTS / "requirements.md"
_NAMED = re.compile(r"`((?:unit|contract|e2e)/[\w/]+\.py)(?:::(\w+))?`")


def named() -> list[tuple[str, str]]:
    return _NAMED.findall(MANIFEST.read_text(encoding="utf-8"))


def test_every_test_that_the_manifest_names_exists() -> None:
    missing = [
        f"{file}::{test}" if test else file
        for file, test in named()
        if not (TESTS / file).is_file()
        or (test and not re.search(rf"\bdef {test}\b", (TESTS / file).read_text(encoding="utf-8")))
    ]
    assert not missing


def test_every_test_file_is_named_in_the_manifest() -> None:
    files = {
        str(path.relative_to(TESTS))
        for folder in ("unit", "contract", "e2e")
        for path in (TESTS / folder).rglob("test_*.py")
    }
    assert files - {file for file, _ in named()} == set()


def test_every_behaviour_names_a_test() -> None:
    rows = [
        line
        for line in MANIFEST.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith(("| Behaviour", "| ---"))
    ]
    assert rows
    assert [row for row in rows if not _NAMED.search(row)] == []
