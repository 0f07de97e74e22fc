"""Judges what a launcher is told to start: a script, a module, a package, a program.

Each is trusted by the name that the owner reads. What only looks like one is not: stdin, an
address, what comes with the system or with Python, or another launcher.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from mcp_bridge.security.finding import Finding
from mcp_bridge.security.launcher_table import LAUNCHERS, MODULES, SHELLS, TOOLS
from mcp_bridge.security.launchers import PATTERNS, Named
from mcp_bridge.security.programs import (
    Places,
    is_of_python,
    is_of_system,
    launcher_of_script,
    plain_name,
)

_SCRIPTS: Final = re.compile(r".*\.(?:py|pyw|[cm]?[jt]sx?)", re.IGNORECASE | re.DOTALL)
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
"""A letter alone before the colon is a drive."""
_PUBLISHED: Final = re.compile(r"(?:https://|jsr:|npm:)[^\s]+")
_PATH: Final = re.compile(r"[/\\.~]|[a-z]:[/\\]", re.IGNORECASE)
_STDIN: Final = re.compile(r"-|/+(?:dev|proc)/.*", re.DOTALL)
_REQUIREMENT: Final = re.compile(r"[\[<>=!~;@\s]")
"""Where the name of a package ends, and its version or what else is wanted of it begins."""
_MODULE: Final = re.compile(r"[^\W\d_]\w*(?:\.\w+)*")
_CLASS: Final = re.compile(r"(?!(?:javax?|jdk|sun|com\.sun)\.)[\w$]+(?:[./][\w$]+)*")
BATCH_CHARS: Final = frozenset('%!^&|<>"\n\r')
"""What cmd.exe reads, quoted or not."""


@dataclass(frozen=True, slots=True)
class Inner:
    """What is started behind a launcher, with its arguments, to be judged in its turn."""

    command: str
    args: tuple[str, ...]
    trusted: bool = False
    """Whether it is trusted by its name, so that its arguments alone are looked at."""


def judged(name: str, named: Named, places: Places) -> Iterator[Finding | Inner]:
    """Judges what `name` is told to start: yields objections, and what is to be judged further."""
    starts, what, rest = named.starts, named.what, named.rest
    match starts:
        case "nothing" if name in SHELLS:
            yield shell("args", name)
        case "nothing":
            yield code(f"{name} is given {what!r}, which is not known to start a server")
        case "script" | "script or address" | "file":
            if starts == "script or address" and _PUBLISHED.fullmatch(what):
                yield from _package(name, what, rest, places)
                return
            if starts == "file" and not re.search(r"[./\\]", what):
                yield code(f"{name} is given {what!r}, which is no file")
                return
            yield from _script(name, what, rest, places)
        case "class":
            if what.endswith(".java"):
                yield from _script(name, what, rest, places)
            elif not _CLASS.fullmatch(what):
                yield code(f"{name} is given {what!r}, which is no class of a server")
        case "module":
            yield from _module(name, what, rest)
        case "package" | "package by name":
            if starts == "package by name" and _ADDRESS.match(what):
                yield code(f"{name} is given {what!r}, which is no package's name")
            else:
                yield from _package(name, what, rest, places)
        case "command":
            # Some launchers have a shell read their first word.
            if re.search(r"^-|^[^/\\]*=|[;&|<>$`\"'\s]", what) and places.located(what) is None:
                yield code(f"{name} is given {what!r}, which is no program")
            elif _ADDRESS.match(what) or _STDIN.fullmatch(what):
                yield code(f"{name} is given {what!r}, which is no file")
            elif _SCRIPTS.fullmatch(what):
                yield from _script(name, what, rest, places)
            else:
                yield Inner(what, rest)
        case "command of cmd":
            if char := first_char(BATCH_CHARS, [what, *rest]):
                reason = f"cmd.exe would read {char!r} in them"
                mend = "start the program itself"
                yield Finding("args", reason, mend, "metacharacters")
            elif plain_name(what) not in LAUNCHERS:
                yield shell("args", "cmd")
            else:
                yield Inner(what, rest)
        case _:  # the owner's own: a task of the project, what runs in a container
            return


def _package(
    name: str, what: str, rest: tuple[str, ...], places: Places
) -> Iterator[Finding | Inner]:
    base = _REQUIREMENT.split(what.removeprefix("npm:"), maxsplit=1)[0]
    if not PATTERNS["package"].fullmatch(what):
        yield code(f"{name} is given {what!r}, which is no package's name")
    elif _PATH.match(what) or places.located(what) is not None:  # npx runs a file that it is given
        yield Inner(what, rest)
    elif not re.search(r"[/\\:]", base) and plain_name(base) in LAUNCHERS.keys() | TOOLS:
        yield Inner(base, rest)
    else:
        yield Inner(what, rest, trusted=True)


def _script(
    name: str, what: str, rest: tuple[str, ...], places: Places
) -> Iterator[Finding | Inner]:
    path = places.path(what)
    if any(map(_STDIN.fullmatch, (what, os.path.normpath(path), os.path.realpath(path)))):
        yield code(f"{name} is given {what!r}: what it is sent would be its program")
    elif _ADDRESS.match(what):
        yield code(f"{name} is given {what!r}, which is no file")
    elif launcher := next(launcher_of_script(path), None):
        yield Inner(launcher, rest)
    elif is_of_system(path) or is_of_python(path):
        yield code(f"{name} is given {what!r}, which comes with the system or with Python")
    # Whatever else lies there is the owner's own, and so are its arguments.


def _module(name: str, what: str, rest: tuple[str, ...]) -> Iterator[Finding | Inner]:
    root = what.partition(".")[0]
    if not _MODULE.fullmatch(what) or root in sys.stdlib_module_names:
        yield code(f"{name} is given -m {what}, which is no server but Python's own")
    elif root in MODULES or root.lower() in TOOLS:
        yield Inner(MODULES.get(root, root), rest)
    else:
        yield Inner(what, rest, trusted=True)


def shell(key: str, name: str) -> Finding:
    mend = "start the program itself, or a script by its own path"
    return Finding(key, f"{name} is a shell", mend, "command")


def code(reason: str, mend: str = "name the server's own script, module or package") -> Finding:
    return Finding("args", reason, mend, "eval")


def first_char(chars: frozenset[str], texts: Iterable[str]) -> str:
    """Gives the first of `chars` that stands in the texts, or an empty text."""
    return next((char for text in texts for char in text if char in chars), "")
