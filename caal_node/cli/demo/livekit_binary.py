"""Finds a livekit-server program, or builds one with Go."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from caal_node.weights import cache

# The newest whose go.mod has no replace directive; `go install` refuses later ones.
VERSION = "1.13.5"
# 75 s with an empty cache on two cores; a slow line gets four times that.
BUILD_DEADLINE_S = 300.0

_SUFFIX = ".exe" if sys.platform == "win32" else ""


def find_server() -> Path | None:
    """Return `livekit-server` on PATH, else the one built earlier, else None."""
    if found := shutil.which("livekit-server"):
        return Path(found)
    return _built() if _built().is_file() else None


def obtain_server(console: Console | None = None) -> Path | None:
    """Return what `find_server` finds, else build one; None without Go or where the build fails.

    It blocks, for about a minute where it builds. A build that fails is reported in one line.

    Raises:
        ConfigError: the cache cannot be written.
    """
    if found := find_server():
        return found
    go = shutil.which("go")
    if go is None:
        return None
    console = console or Console(stderr=True)
    with cache.locked("livekit-server", cache.binaries()):
        if _built().is_file():
            return _built()
        notice = f"Building livekit-server {VERSION} with Go, about a minute the first time"
        console.print(notice, highlight=False)
        with console.status("go install"):
            failure = _build(go)
    if failure:
        console.print(f"livekit-server cannot be built ({failure})", highlight=False, markup=False)
        return None
    return _built()


def _built() -> Path:
    return cache.binaries() / f"livekit-server-{VERSION}{_SUFFIX}"


def _build(go: str) -> str | None:
    """Build into a folder of its own and move the result; return why it failed, if it did."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=cache.binaries()) as folder:
        package = f"github.com/livekit/livekit-server/cmd/server@v{VERSION}"
        try:
            done = subprocess.run(
                [go, "install", package],
                env={**os.environ, "GOBIN": folder},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=BUILD_DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not ready after {BUILD_DEADLINE_S:.0f} s"
        except OSError as error:
            return str(error)
        program = Path(folder) / f"server{_SUFFIX}"
        if done.returncode != 0 or not program.is_file():
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            return (lines or ["no reason given"])[-1][:200]
        program.replace(_built())
    return None
