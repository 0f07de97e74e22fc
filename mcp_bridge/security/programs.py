"""Finds the program that a command means: where it lies, its names, and whether it is a system's.

A program in one of the system's folders was put there with the system; servers are put elsewhere,
by npm, pip, go, cargo, Homebrew or their owner. `node_modules` counts as elsewhere, wherever it is.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Final

from mcp_bridge.core.files import expand_home
from mcp_bridge.security.launcher_table import LAUNCHERS, TOOLS

# Launchers that may have to download what they start, so that a first start takes minutes.

_RUNNERS: Final = frozenset(
    (
        *("npx", "npm", "pnpm", "yarn", "bunx", "bun", "deno"),
        *("uvx", "uv", "pipx", "poetry", "pdm"),
        *("docker", "podman", "dnx", "go", "cargo"),
    )
)
OFFLINE: Final[Mapping[str, str]] = {
    "UV_OFFLINE": "1",
    "npm_config_offline": "true",
    "YARN_ENABLE_NETWORK": "0",
    "PIP_NO_INDEX": "1",
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
    "HF_HUB_OFFLINE": "1",
}
"""Variables by which runners, and what they start, fetch nothing; docker, bun, deno, dnx, pdm and
poetry have none."""
_BEHIND: Final = frozenset(("cmd", "env", "wsl"))
"""These start what their arguments say."""


def package_runner(command: str, args: Sequence[str]) -> str:
    """Gives the name of the package runner that a command is; "" where it is none."""
    name = plain_name(command)
    if name in _BEHIND:
        name = next((word for one in args if (word := plain_name(one)) in _RUNNERS), "")
    return name if name in _RUNNERS else ""


_MAX_LINKS: Final = 16
"""So many symbolic links are followed by name; real chains have two or three."""
_ENDINGS: Final = (".exe", ".cmd", ".bat", ".com", ".ps1")
_VERSION_CHARS: Final = 40
_VERSION: Final = re.compile(r"[-._]?\d[\d.]*t?$")
"""`python3.13t`, `perl5.36`, `node-22`."""
_SYSTEM_BIN: Final = os.pathsep.join(
    ("/bin", "/usr/bin", "/sbin", "/usr/sbin")
    if sys.platform != "win32"
    else (r"C:\Windows\System32", r"C:\Windows", r"C:\Windows\System32\WindowsPowerShell\v1.0")
)
_SYSTEM: Final = re.compile(
    r"/(?:bin|sbin|lib\w*|System|usr/(?!local/|src/)[^/]+)/|[a-z]:\\windows\\", re.IGNORECASE
)
_NPM_FOLDERS: Final = ("node_modules", "nodejs")
"""Global packages of npm lie below /usr on many systems; /usr/share/nodejs is Debian's folder."""


def located(command: str, cwd: Path | None, search_path: str | None) -> str | None:
    """Gives the absolute path of the program, or None where there is none. This reads the disk.

    A command with a slash in it is looked for from the folder that it is started in.
    """
    command = expand_home(command)
    if cwd is not None and os.path.dirname(command):  # noqa: PTH120 - `./x` and `x` differ here
        command = str(cwd / command)
    found = shutil.which(command, path=search_path)
    return str(Path(found).absolute()) if found else None


@dataclass(frozen=True, slots=True)
class Places:
    """Where a command would be looked for."""

    cwd: Path | None
    search_path: str | None

    def located(self, command: str) -> str | None:
        try:
            return located(command, self.cwd, self.search_path)
        except (OSError, ValueError, RuntimeError):  # a NUL; a home that is nobody's
            return None

    def within(self, folder: str) -> Places:
        """Gives the same, seen from `folder`."""
        return replace(self, cwd=Path(self.path(folder))) if folder else self

    def path(self, name: str) -> str:
        return str((self.cwd or Path()) / expand_home(name))


def names(command: str, program: str | None) -> Iterator[str]:
    """Yields the command's plain names: as written, at each link, and where the links end.

    A program may look at the name that it is called by (busybox does), and a link may hide one.
    """
    seen: set[str] = set()
    for name in (command, *_links(program)):
        if (short := plain_name(name)) and short not in seen:
            seen.add(short)
            yield short


def plain_name(name: str) -> str:
    """Removes folder, case, ending and version: `/usr/bin/Python3.11.exe` becomes `python`."""
    base = PureWindowsPath(name).name.lower().rstrip(". ")  # which knows both slashes
    base = base.partition("@")[0] or base
    for ending in _ENDINGS:
        base = base.removesuffix(ending)
    return base[:-_VERSION_CHARS] + _VERSION.sub("", base[-_VERSION_CHARS:]) or base


def is_tool(name: str) -> bool:
    """Tells whether a program of this plain name belongs to the system. This reads the disk."""
    if name in TOOLS:
        return True
    found = shutil.which(name, path=_SYSTEM_BIN)
    return found is not None and is_of_system(found)


def is_of_system(path: str) -> bool:
    """Tells whether a file, links followed, lies in a folder of the system."""
    real = os.path.realpath(path)
    return bool(_SYSTEM.match(real)) and not set(_NPM_FOLDERS) & set(Path(real).parts)


def is_of_python(path: str) -> bool:
    """Tells whether a file is of Python's own library, which holds modules that run code."""
    for folder in Path(os.path.realpath(path)).parents:
        if folder.name in {"site-packages", "dist-packages"}:
            return False
        if (folder / "os.py").exists() and (folder / "site.py").exists():
            return True
    return False


def launcher_of_script(path: str) -> Iterator[str]:
    """Yields the launcher or tool that a script is, such as `node_modules/npm/bin/npx-cli.js`."""
    for one in (path, os.path.realpath(path)):
        parts = PureWindowsPath(one).parts
        base = parts[-1].lower() if parts else ""
        candidates = [base]
        if "." in base:
            packages = [after for at, after in itertools.pairwise(parts) if at in _NPM_FOLDERS][-1:]
            candidates = (
                [base.partition(".")[0].removesuffix("-cli"), *packages] if packages else []
            )
        yield from [name for name in candidates if name in LAUNCHERS.keys() | TOOLS][:1]


def _links(program: str | None) -> Iterator[str]:
    if program is None:
        return
    at = program
    for _ in range(_MAX_LINKS):
        yield at
        try:
            at = os.path.join(os.path.dirname(at), os.readlink(at))  # noqa: PTH115, PTH118, PTH120 - text is all that is wanted
        except OSError:
            break
    yield os.path.realpath(program)
