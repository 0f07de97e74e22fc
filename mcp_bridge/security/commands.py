"""Finds out what a command starts in the end, and what of it its owner has to vouch for.

What passes is a launcher with the arguments that it is known to take, up to the script, module,
package or image that it is told to start; or a program that lies outside of the system's folders.
Those are trusted by the name that the owner reads, and their own arguments are free. Programs are
judged by their names: as written, along symbolic links, and behind launchers, however deep.

Servers are started without a shell, so arguments may hold anything. There are two exceptions: a
command that looks like a shell's line is a mistake or worse; and on Windows `npx` is a batch file,
which cmd.exe reads with rules that quoting does not satisfy (CVE-2024-24576, "BatBadBut").
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Final

from mcp_bridge.core.files import expand_home
from mcp_bridge.security.finding import Finding
from mcp_bridge.security.launcher_table import LAUNCHERS, MODULES, SHELLS, TOOLS
from mcp_bridge.security.launchers import PATTERNS, Launcher, Named, Unknown, read
from mcp_bridge.security.programs import (
    is_of_python,
    is_of_system,
    is_tool,
    located,
    names,
    plain_name,
)

_MAX_DEPTH: Final = 8
"""So many launchers in one another are followed."""
_SHIMS: Final = frozenset({"snap", "mise", "asdf"})
"""Links lead to these, which then start the program of the link's name."""
_SCRIPTS: Final = re.compile(r".*\.(?:py|pyw|[cm]?[jt]sx?)", re.IGNORECASE | re.DOTALL)
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
"""A letter alone before the colon is a drive."""
_PUBLISHED: Final = re.compile(r"(?:https://|jsr:|npm:)[^\s]+")
_PATH: Final = re.compile(r"[/\\.~]|[a-z]:[/\\]", re.IGNORECASE)
_STDIN: Final = re.compile(r"-|/+(?:dev|proc)/.*", re.DOTALL)
_REQUIREMENT: Final = re.compile(r"[\[<>=!~;@\s]")
"""Where the name of a package ends, and its version or what else is wanted of it begins."""
_OF_NPM: Final = ("node_modules", "nodejs")
_MODULE: Final = re.compile(r"[^\W\d_]\w*(?:\.\w+)*")
_CLASS: Final = re.compile(r"(?!(?:javax?|jdk|sun|com\.sun)\.)[\w$]+(?:[./][\w$]+)*")
_NAME_CHARS: Final = frozenset(';&|<>$`"\n\r')
"""Paths may hold brackets and quotes; these they hardly do."""
_BATCH_CHARS: Final = frozenset('%!^&|<>"\n\r')
_BATCH_ENDINGS: Final = (".cmd", ".bat")
_WHAT: Final = {
    "module": "module",
    "package": "package",
    "package by name": "package",
    "command": "program",
    "command of cmd": "program",
}


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a command would be looked for."""

    cwd: Path | None
    search_path: str | None

    def located(self, command: str) -> str | None:
        try:
            return located(command, self.cwd, self.search_path)
        except (OSError, ValueError, RuntimeError):  # a NUL; a home that is nobody's
            return None

    def path(self, name: str) -> str:
        return str((self.cwd or Path()) / expand_home(name))


def judge(
    command: str,
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    search_path: str | None = None,
    windows: bool = False,
) -> Iterator[Finding]:
    """Yields everything that its owner has to vouch for. It reads the disk to follow links."""
    places = _Places(cwd, search_path)
    unprintable = (char for char in command if not char.isprintable())
    if char := _first_char(_NAME_CHARS, [command]) or next(unprintable, ""):
        yield Finding(
            "command",
            f"holds {char!r}, and no shell reads it",
            "write the program alone, and its arguments into args",
            "metacharacters",
        )
    try:
        yield from _program(command, args, places, "command", 0)
    except (OSError, ValueError):  # a path that no system takes
        yield Finding("args", "cannot be looked up", "mend the paths in it", "command")
    if windows and (char := char_for_batch_file(places.located(command) or command, args)):
        reason = f"cmd.exe would read {char!r} in them, since the command is a batch file"
        mend = "start the program behind it (node, python)"
        yield Finding("args", reason, mend, "metacharacters")


def _program(
    command: str, args: Sequence[str], places: _Places, key: str, depth: int
) -> Iterator[Finding]:
    program = places.located(command)
    called = list(dict.fromkeys((*names(command, program), *_launcher_of_script(program or ""))))
    launchers = {id(LAUNCHERS[name]): name for name in reversed(called) if name in LAUNCHERS}
    for name in called:
        if name in SHELLS and name not in LAUNCHERS:
            yield _shell(key, name)
            return
        if name not in LAUNCHERS and name not in _SHIMS & set(called[1:]) and is_tool(name):
            reason = f"{name} is a program of the system, and no launcher of servers that is known"
            yield Finding(key, reason, "name the server's program", "command")
            return
    if launchers:
        for name in launchers.values():
            yield from _launched(name, LAUNCHERS[name], args, places, depth)
    elif program is not None and is_of_system(program):
        reason = f"{called[-1]} is of the system, and no launcher of servers that is known"
        yield Finding(key, reason, "name the server's program", "command")
    else:
        yield from _own(called[0] if called else command, args, places, depth)


def _own(name: str, args: Sequence[str], places: _Places, depth: int) -> Iterator[Finding]:
    """Judges the arguments of what is trusted by its name: they may not lead to a shell.

    A launcher among them is judged where an option follows it, unless it looks like a value.
    """
    before = "--"
    for at, word in enumerate(args):
        for text in (word, word.partition("=")[2]):
            first = text.split(maxsplit=1)[:1]
            if first and plain_name(first[0]) in SHELLS:
                yield _shell("args", f"{text!r} behind {name}")
                return
        inner, behind = LAUNCHERS.get(plain_name(word)), args[at + 1 :]
        is_value = before.startswith("-") and before != "--"
        if inner and not is_value and behind and behind[0].startswith("-"):
            yield from _launched(word, inner, behind, places, depth + 1)
            return
        before = word


def _launched(
    name: str, launcher: Launcher, args: Sequence[str], places: _Places, depth: int
) -> Iterator[Finding]:
    if depth > _MAX_DEPTH:
        reason = f"has over {_MAX_DEPTH} launchers in one another"
        yield Finding("args", reason, "start the program itself", "command")
        return
    match read(launcher, args):
        case Unknown() if name in SHELLS:
            yield _shell("args", name)
        case Unknown(word=""):
            yield _code(f"{name} is told of no {_WHAT.get(launcher.starts, 'script')}", "name one")
        case Unknown(word=word):
            reason = f"{name} is given {word!r}, which is not known to be harmless"
            files = word.startswith("--env-file")
            yield _code(reason, "write its variables into env" if files else "leave it out")
        case Named(starts=starts, what=what, rest=rest):
            yield from _named(name, starts, what, rest, places, depth)


def _named(
    name: str, starts: str, what: str, rest: Sequence[str], places: _Places, depth: int
) -> Iterator[Finding]:
    match starts:
        case "nothing" if name in SHELLS:
            yield _shell("args", name)
        case "nothing":
            yield _code(f"{name} is given {what!r}, which is not known to start a server")
        case "script" | "script or address" | "file":
            if starts == "script or address" and _PUBLISHED.fullmatch(what):
                yield from _package(name, what, rest, places, depth)
                return
            if starts == "file" and not re.search(r"[./\\]", what):
                yield _code(f"{name} is given {what!r}, which is no file")
                return
            yield from _script(name, what, rest, places, depth)
        case "class":
            if what.endswith(".java"):
                yield from _script(name, what, rest, places, depth)
            elif not _CLASS.fullmatch(what):
                yield _code(f"{name} is given {what!r}, which is no class of a server")
        case "module":
            yield from _module(name, what, rest, places, depth)
        case "package" | "package by name":
            if starts == "package by name" and _ADDRESS.match(what):
                yield _code(f"{name} is given {what!r}, which is no package's name")
            else:
                yield from _package(name, what, rest, places, depth)
        case "command":
            # Some launchers have a shell read their first word.
            if re.search(r"^-|^[^/\\]*=|[;&|<>$`\"'\s]", what) and places.located(what) is None:
                yield _code(f"{name} is given {what!r}, which is no program")
            elif _ADDRESS.match(what) or _STDIN.fullmatch(what):
                yield _code(f"{name} is given {what!r}, which is no file")
            elif _SCRIPTS.fullmatch(what):
                yield from _script(name, what, rest, places, depth)
            else:
                yield from _program(what, rest, places, "args", depth + 1)
        case "command of cmd":
            if char := _first_char(_BATCH_CHARS, [what, *rest]):
                reason = f"cmd.exe would read {char!r} in them"
                mend = "start the program itself"
                yield Finding("args", reason, mend, "metacharacters")
            elif plain_name(what) not in LAUNCHERS:
                yield _shell("args", "cmd")
            else:
                yield from _program(what, rest, places, "args", depth + 1)
        case _:  # the owner's own: a task of the project, what runs in a container
            return


def _package(
    name: str, what: str, rest: Sequence[str], places: _Places, depth: int
) -> Iterator[Finding]:
    base = _REQUIREMENT.split(what.removeprefix("npm:"), maxsplit=1)[0]
    if not PATTERNS["package"].fullmatch(what):
        yield _code(f"{name} is given {what!r}, which is no package's name")
    elif _PATH.match(what) or places.located(what) is not None:  # npx runs a file that it is given
        yield from _program(what, rest, places, "args", depth + 1)
    elif not re.search(r"[/\\:]", base) and plain_name(base) in LAUNCHERS.keys() | TOOLS:
        yield from _program(base, rest, places, "args", depth + 1)
    else:
        yield from _own(what, rest, places, depth)


def _script(
    name: str, what: str, rest: Sequence[str], places: _Places, depth: int
) -> Iterator[Finding]:
    path = places.path(what)
    if any(map(_STDIN.fullmatch, (what, os.path.normpath(path), os.path.realpath(path)))):
        yield _code(f"{name} is given {what!r}: what it is sent would be its program")
    elif _ADDRESS.match(what):
        yield _code(f"{name} is given {what!r}, which is no file")
    elif launcher := next(_launcher_of_script(path), None):
        yield from _program(launcher, rest, places, "args", depth + 1)
    elif is_of_system(path) or is_of_python(path):
        yield _code(f"{name} is given {what!r}, which comes with the system or with Python")
    # Whatever else lies there is the owner's own, and so are its arguments.


def _launcher_of_script(path: str) -> Iterator[str]:
    """Yields the launcher or tool that a script is, such as `node_modules/npm/bin/npx-cli.js`."""
    for one in (path, os.path.realpath(path)):
        parts = PureWindowsPath(one).parts
        base = parts[-1].lower() if parts else ""
        candidates = [base]
        if "." in base:
            packages = [after for at, after in itertools.pairwise(parts) if at in _OF_NPM][-1:]
            candidates = (
                [base.partition(".")[0].removesuffix("-cli"), *packages] if packages else []
            )
        yield from [name for name in candidates if name in LAUNCHERS.keys() | TOOLS][:1]


def _module(
    name: str, what: str, rest: Sequence[str], places: _Places, depth: int
) -> Iterator[Finding]:
    root = what.partition(".")[0]
    if not _MODULE.fullmatch(what) or root in sys.stdlib_module_names:
        yield _code(f"{name} is given -m {what}, which is no server but Python's own")
    elif root in MODULES or root.lower() in TOOLS:
        yield from _program(MODULES.get(root, root), rest, places, "args", depth + 1)
    else:
        yield from _own(what, rest, places, depth)


def _shell(key: str, name: str) -> Finding:
    mend = "start the program itself, or a script by its own path"
    return Finding(key, f"{name} is a shell", mend, "command")


def _code(reason: str, mend: str = "name the server's own script, module or package") -> Finding:
    return Finding("args", reason, mend, "eval")


def char_for_batch_file(program: str, args: Iterable[str]) -> str:
    """Gives the first character that cmd.exe would read, which runs batch files unasked."""
    if not program.lower().rstrip(". ").endswith(_BATCH_ENDINGS):
        return ""
    return _first_char(_BATCH_CHARS, args)


def _first_char(chars: frozenset[str], texts: Iterable[str]) -> str:
    """Gives the first of `chars` that stands in the texts, or an empty text."""
    return next((char for text in texts for char in text if char in chars), "")
