"""uv.lock has what pyproject.toml asks for, and names public packages with their hashes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
UPDATE = "run: uv lock"
Wanted = tuple[str, frozenset[str], SpecifierSet, str]
"""A requirement: name, extras, versions, and the extra of ours that asks for it."""


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _lock() -> dict[str, Any]:
    return tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))


def _wanted() -> Iterator[Wanted]:
    project = _project()
    extras: dict[str, list[str]] = project["optional-dependencies"]
    for extra, texts in (("", project["dependencies"]), *extras.items()):
        for text in texts:
            asked = Requirement(text)
            name = canonicalize_name(asked.name)
            yield name, frozenset(asked.extras), asked.specifier, extra


def _locked() -> Iterator[Wanted]:
    (ours,) = (each for each in _lock()["package"] if each["name"] == "caal-node")
    for each in ours["metadata"]["requires-dist"]:
        marker = each.get("marker", "")
        extra = marker.partition("extra == '")[2].partition("'")[0]
        versions = SpecifierSet(each.get("specifier", ""))
        yield each["name"], frozenset(each.get("extras", ())), versions, extra


def test_it_was_made_of_the_requirements_as_they_are() -> None:
    assert set(_locked()) == set(_wanted()), UPDATE
    assert _lock()["requires-python"] == _project()["requires-python"]


def test_the_version_that_it_has_of_each_is_allowed() -> None:
    found: dict[str, list[str]] = {}
    for package in _lock()["package"]:
        found.setdefault(package["name"], []).append(package["version"])
    for name, _, versions, _ in _wanted():
        assert found[name], name
        assert all(versions.contains(each, prereleases=True) for each in found[name]), UPDATE


def test_every_file_is_pypis_and_has_a_hash() -> None:
    for package in _lock()["package"]:
        if package["name"] == "caal-node":
            continue
        assert package["source"] == {"registry": "https://pypi.org/simple"}
        files = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
        assert files, package["name"]
        for file in files:
            assert urlsplit(file["url"])[:2] == ("https", "files.pythonhosted.org")
            assert file["hash"].startswith("sha256:")
