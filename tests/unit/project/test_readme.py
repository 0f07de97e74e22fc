"""The README's commands and code are what a newcomer copies, so they are held to what is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from caal_node.cli.app import app
from caal_node.config.settings import FIELDS

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORKER = (ROOT / "docs" / "livekit.md").read_text(encoding="utf-8")
"""The page with a whole worker."""
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README + WORKER, re.DOTALL)
COMMANDS = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines() if line]


def test_make_has_the_targets_that_it_names() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"^make (\w+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("line", [c for c in COMMANDS if c.startswith("caal-node")])
def test_every_command_is_one_of_the_command_line(line: str) -> None:
    known = {c.name or (c.callback and c.callback.__name__) for c in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    assert line.split()[1] in known


@pytest.mark.parametrize("block", [b for kind, b in BLOCKS if kind == "python"])
def test_every_piece_of_python_parses_and_imports_what_exists(block: str) -> None:
    tree = ast.parse(block, mode="exec", type_comments=False) if "await" not in block else None
    tree = tree or ast.parse(f"async def main():\n{_indented(block)}")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = __import__(node.module, fromlist=[alias.name for alias in node.names])
            assert all(hasattr(module, alias.name) for alias in node.names)


async def test_the_snippet_that_tests_an_agent_passes_with_the_readmes_agent() -> None:
    programs = [block for kind, block in BLOCKS if kind == "python" and "class MyAgent" in block]
    (snippet,) = (block for kind, block in BLOCKS if kind == "python" and "ScriptedModel" in block)
    assert len(programs) == 2
    for program in programs:
        names: dict[str, Any] = {"__name__": "agent"}
        exec(program, names)  # noqa: S102 - the README's own lines
        exec(f"async def main():\n{_indented(dedent(snippet))}", names)  # noqa: S102 - as above
        await names["main"]()


def _indented(block: str) -> str:
    return "".join(f"    {line}\n" for line in block.splitlines())


def test_every_setting_it_names_exists() -> None:
    named = set(re.findall(r"`((?:CAAL|N8N|OLLAMA_HOST|LIVEKIT)\w*)(?:=\w+)?`", README))
    variables = {f"CAAL_{field.upper()}" for field in FIELDS} | {field.upper() for field in FIELDS}
    assert named - variables == set()


def test_every_file_it_points_to_exists() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    for name in ("mcp_servers.json.example", ".env.example"):
        assert name in README
        assert (ROOT / name).is_file()
