"""Real MCP servers, as their authors publish them: found in the cache, or installed into it."""

from __future__ import annotations

import hashlib
import sys
import venv
from pathlib import Path
from typing import Final

from caal_node.weights import cache
from tests.stand_ins.node import NotInstalled, find_node, install, installed, obtain_node, run

HERE: Final = Path(__file__).parent
NODE_MAJOR: Final = 20
PYTHON: Final = {
    "time": "python",
    "git": "python",
    "fetch": "python",
    # It wants an mcp below 2, so it lives alone.
    "sqlite": "sqlite",
}
"""Servers from PyPI, each with the list of pinned packages that its environment is made of."""
NODE: Final = ("everything", "filesystem", "memory", "sequential-thinking")


def obtain() -> None:
    """Install all of them once: some 90 s and 250 MB.

    Raises:
        NotInstalled: one cannot be.
    """
    install(HERE, obtain_node(NODE_MAJOR))
    for packages in sorted(set(PYTHON.values())):
        _make(packages)


def command(server: str) -> list[str] | None:
    """What starts a server; None where it is not installed."""
    if server in PYTHON:
        program = _place(PYTHON[server]) / _BIN / f"mcp-server-{server}"
        return [str(program)] if program.is_file() else None
    node, modules = find_node(NODE_MAJOR), installed(HERE)
    if node is None or modules is None:
        return None
    script = modules / "@modelcontextprotocol" / f"server-{server}" / "dist" / "index.js"
    return [str(node), str(script)] if script.is_file() else None


_BIN: Final = "Scripts" if sys.platform == "win32" else "bin"


def _make(packages: str) -> None:
    place = _place(packages)
    if (place / "installed").is_file():
        return
    with cache.locked(place.name, cache.binaries()):
        if (place / "installed").is_file():
            return
        venv.create(place, clear=True)
        python = str(place / _BIN / "python")
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        run([*pip, "--no-compile", "--requirement", str(HERE / f"{packages}.txt")])
        (place / "installed").touch()


def _place(packages: str) -> Path:
    pinned = (HERE / f"{packages}.txt").read_bytes()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(pinned + version.encode()).hexdigest()[:12]
    return cache.binaries() / f"mcp-servers-{packages}-{digest}"


__all__ = ["NODE", "PYTHON", "NotInstalled", "command", "obtain"]
