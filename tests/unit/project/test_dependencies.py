"""What the product imports is what pyproject.toml says that it needs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
OURS = ("caal_node", "mcp_bridge", "n8n")


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _packages() -> dict[str, str]:
    """Return each outside package that is imported, with a file that does."""
    found: dict[str, str] = {}
    for top in (*OURS, "livekit"):
        for path in (ROOT / top).rglob("*.py"):
            for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
                found[name.partition(".")[0]] = str(path.relative_to(ROOT))
    return {
        name: path
        for name, path in found.items()
        if name not in OURS and name not in sys.stdlib_module_names
    }


@cache
def _distributions() -> Mapping[str, list[str]]:
    """It reads what every installed distribution consists of."""
    return packages_distributions()


@cache
def _declared() -> set[str]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for each in extras.values() for one in each)]
    return {_plain(re.split(r"[\[<>=~!; ]", one)[0]) for one in wanted}


def _plain(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


@pytest.mark.parametrize(("package", "path"), sorted(_packages().items()))
def test_each_package_that_is_imported_is_declared(package: str, path: str) -> None:
    brought_by = {_plain(name) for name in _distributions().get(package, ())}
    assert brought_by & _declared(), f"{path} imports {package}: {brought_by or 'not installed'}"
