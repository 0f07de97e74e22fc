"""Which room may import which: the pure ones know no LiveKit, and nobody imports backwards."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PURE = (
    "caal_node/reply_parser",
    "caal_node/context",
    "caal_node/speakable",
    "caal_node/room/cues.py",
    "caal_node/room/cue_policy.py",
    "caal_node/events.py",
    "caal_node/errors.py",
)
"""No LiveKit, no network, no clock: text and numbers in, text and numbers out."""
ALONE = ("mcp_bridge", "n8n")
"""Packages that somebody may use without this one."""
IO = ("livekit", "httpx2", "mcp", "ollama", "asyncio", "socket", "fastapi")


def imported(path: Path) -> set[str]:
    """Top-level names of what a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names


def files(*places: str) -> list[Path]:
    found = [ROOT / place for place in places]
    return [p for place in found for p in ([place] if place.is_file() else place.rglob("*.py"))]


@pytest.mark.parametrize("path", files(*PURE), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_pure_room_does_no_io(path: Path) -> None:
    assert not {n for n in imported(path) if n.partition(".")[0] in IO}


@pytest.mark.parametrize("path", files(*ALONE), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_bridge_and_n8n_stand_alone(path: Path) -> None:
    assert not {n for n in imported(path) if n.partition(".")[0] in ("livekit", "caal_node")}


@pytest.mark.parametrize("path", files("caal_node"), ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_demo_and_the_command_line_import_the_command_line_and_the_demo(
    path: Path,
) -> None:
    if path.is_relative_to(ROOT / "caal_node/cli") or path.is_relative_to(ROOT / "caal_node/demo"):
        return
    assert not {n for n in imported(path) if n.startswith(("caal_node.cli", "caal_node.demo"))}


def test_understanding_a_reply_loads_no_livekit() -> None:
    code = "import sys, caal_node; caal_node.parse_reply; sys.exit('livekit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
