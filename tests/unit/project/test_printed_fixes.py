"""What messages tell people to type: each command is parsed, each variable and extra is one."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer
import typer.main

from caal_node.cli.app import app
from caal_node.cli.checks.local import NOT_SETTINGS
from caal_node.config.file import variable
from caal_node.config.settings import FIELDS

ROOT: Final = Path(__file__).parents[3]
TOPS: Final = ("caal_node", "mcp_bridge", "n8n")
COMMAND: Final = re.compile(r"\bcaal-node((?: +(?!and\b|or\b)[^\s,;:)`\"']+)+)")
"""The words behind the program's name, up to what ends a clause."""
CODE: Final = re.compile(r"```\w*\n(.*?)```|`([^`\n]+)`", re.DOTALL)
"""What stands as code on a page."""
EXTRA: Final = re.compile(r"caal-node\[([\w,-]+)\]")
VARIABLE: Final = re.compile(r"\bCAAL_[A-Z0-9_]*[A-Z0-9]\b")
INCOMPLETE: Final = re.compile(r"Missing parameter|requires an argument")
PROSE: Final = ("X", "lists", "(form")
"""These words follow the program's name where a sentence speaks of it."""
OF_TESTS: Final = frozenset({"CAAL_TEST_GGUF"})


def shown_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module with its line, but for docstrings; values in it are `X`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(value) for value in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (str(v.value) if isinstance(v, ast.Constant) else "X" for v in node.values)
            yield node.lineno, "".join(parts)


@cache
def everything_shown() -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            place = path.relative_to(ROOT)
            found += [(f"{place}:{line}", text) for line, text in shown_texts(path)]
    for path in sorted((ROOT / "prompts").iterdir()):
        if path.is_file():
            found.append((f"prompts/{path.name}", path.read_text(encoding="utf-8")))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for part in map("".join, CODE.findall(page.read_text(encoding="utf-8"))):
            found += [(page.name, line.partition(" #")[0]) for line in part.split("\n")]
    return tuple(found)


def commands() -> Iterator[tuple[str, str]]:
    for place, text in everything_shown():
        for found in COMMAND.finditer(text):
            words = found[1].strip().rstrip(".").replace("{", "").replace("}", "")
            if words.split()[0] not in PROSE:
                yield place, words


@pytest.mark.parametrize(
    ("words", "place"), sorted({w: p for p, w in reversed([*commands()])}.items())
)
def test_a_command_that_a_message_names_can_be_typed(words: str, place: str) -> None:
    command: Any = typer.main.get_command(app)  # of the click that typer brings
    left = shlex.split(words)
    while left and left[0] in (known := getattr(command, "commands", {})):
        command = known[left.pop(0)]
    known = getattr(command, "commands", None)
    assert not (known and left and not left[0].startswith("-")), f"{place}: {words}: no {left[0]!r}"
    try:
        command.make_context("caal-node", left)
    except typer.Exit:
        return  # it has printed its version
    except Exception as error:
        # A page may speak of a command by its name; what a message prints is typed as it is.
        if not (place.endswith(".md") and INCOMPLETE.search(str(error))):
            pytest.fail(f"{place}: caal-node {words}: {error}")


def test_an_extra_that_a_message_names_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = set(project["optional-dependencies"])
    named = {
        extra
        for _, text in everything_shown()
        for found in EXTRA.finditer(text)
        for extra in found[1].split(",")
    }
    assert named - {"X"} <= known
    assert "embedded" in named


def test_a_variable_that_a_message_names_is_one() -> None:
    known = {variable(name) for name in FIELDS} | NOT_SETTINGS | OF_TESTS
    unknown = {
        (place, name)
        for place, text in everything_shown()
        for name in VARIABLE.findall(text)
        if name not in known and not name.endswith("_X")
    }
    assert not unknown
