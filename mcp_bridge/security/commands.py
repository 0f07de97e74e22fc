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

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from mcp_bridge.security.finding import Finding
from mcp_bridge.security.launcher_table import LAUNCHERS, SHELLS
from mcp_bridge.security.launchers import Launcher, Named, Unknown, read
from mcp_bridge.security.programs import (
    Places,
    is_of_system,
    is_tool,
    launcher_of_script,
    names,
    plain_name,
)
from mcp_bridge.security.started import BATCH_CHARS, code, first_char, judged, shell

_MAX_DEPTH: Final = 8
"""So many launchers in one another are followed."""
_SHIMS: Final = frozenset({"snap", "mise", "asdf"})
"""Links lead to these, which then start the program of the link's name."""
_NAME_CHARS: Final = frozenset(';&|<>$`"\n\r')
"""Paths may hold brackets and quotes; these they hardly do."""
_BATCH_ENDINGS: Final = (".cmd", ".bat")
_WHAT: Final = {
    "module": "module",
    "package": "package",
    "package by name": "package",
    "command": "program",
    "command of cmd": "program",
}


def judge(
    command: str,
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    search_path: str | None = None,
    windows: bool = False,
) -> Iterator[Finding]:
    """Yields everything that its owner has to vouch for. It reads the disk to follow links."""
    places = Places(cwd, search_path)
    unprintable = (char for char in command if not char.isprintable())
    if char := first_char(_NAME_CHARS, [command]) or next(unprintable, ""):
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
    command: str, args: Sequence[str], places: Places, key: str, depth: int
) -> Iterator[Finding]:
    program = places.located(command)
    scripts = launcher_of_script(program) if program is not None else ()
    called = list(dict.fromkeys((*names(command, program), *scripts)))
    launchers = {id(LAUNCHERS[name]): name for name in reversed(called) if name in LAUNCHERS}
    for name in called:
        if name in SHELLS and name not in LAUNCHERS:
            yield shell(key, name)
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


def _own(name: str, args: Sequence[str], places: Places, depth: int) -> Iterator[Finding]:
    """Judges the arguments of what is trusted by its name: they may not lead to a shell.

    A launcher among them is judged where an option follows it, unless it looks like a value.
    """
    before = "--"
    for at, word in enumerate(args):
        for text in (word, word.partition("=")[2]):
            first = text.split(maxsplit=1)[:1]
            if first and plain_name(first[0]) in SHELLS:
                yield shell("args", f"{text!r} behind {name}")
                return
        inner, behind = LAUNCHERS.get(plain_name(word)), args[at + 1 :]
        is_value = before.startswith("-") and before != "--"
        if inner and not is_value and behind and behind[0].startswith("-"):
            yield from _launched(word, inner, behind, places, depth + 1)
            return
        before = word


def _launched(
    name: str, launcher: Launcher, args: Sequence[str], places: Places, depth: int
) -> Iterator[Finding]:
    if depth > _MAX_DEPTH:
        reason = f"has over {_MAX_DEPTH} launchers in one another"
        yield Finding("args", reason, "start the program itself", "command")
        return
    match read(launcher, args):
        case Unknown() if name in SHELLS:
            yield shell("args", name)
        case Unknown(word=""):
            yield code(f"{name} is told of no {_WHAT.get(launcher.starts, 'script')}", "name one")
        case Unknown(word=word):
            reason = f"{name} is given {word!r}, which is not known to be harmless"
            files = word.startswith("--env-file")
            yield code(reason, "write its variables into env" if files else "leave it out")
        case Named() as named:
            places = places.within(named.folder)
            for step in judged(name, named, places):
                if isinstance(step, Finding):
                    yield step
                elif step.trusted:
                    yield from _own(step.command, step.args, places, depth)
                else:
                    yield from _program(step.command, step.args, places, "args", depth + 1)


def char_for_batch_file(program: str, args: Iterable[str]) -> str:
    """Gives the first character that cmd.exe would read, which runs batch files unasked."""
    if not program.lower().rstrip(". ").endswith(_BATCH_ENDINGS):
        return ""
    return first_char(BATCH_CHARS, args)
