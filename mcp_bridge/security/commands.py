"""Finds out what a command runs in the end, and what speaks against it.

Programs are judged by their names: as written, along symbolic links, and behind wrappers, however
deep. A copy of a shell under another name is not seen, and neither is what happens inside a
container.

Servers are started without a shell, so arguments may hold anything. There are three exceptions: a
command that looks like a shell's line is a mistake or worse; some wrappers hand their words to a
shell; and on Windows `npx` is a batch file, which cmd.exe reads with rules that quoting does not
satisfy (CVE-2024-24576, "BatBadBut").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from mcp_bridge.security.environment import loads_code
from mcp_bridge.security.finding import Finding
from mcp_bridge.security.interpreter_table import INTERPRETERS
from mcp_bridge.security.interpreters import NO_SCRIPT, findings_in, first_code
from mcp_bridge.security.programs import located, names, plain_name
from mcp_bridge.security.wrapper_table import WRAPPERS
from mcp_bridge.security.wrappers import Wrapper, wrapped_commands

_SHELLS: Final = frozenset(
    {
        "sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "ash", "hush",
        "nu", "elvish", "xonsh", "yash", "cmd", "powershell", "pwsh", "pwsh-preview", "wsl",
    }
)  # fmt: skip
_OTHER_USERS: Final = frozenset({"sudo", "doas", "su", "pkexec", "runuser", "gsudo", "run0"})
"""These run a program as another user."""
_NO_SERVERS: Final = frozenset(
    {
        "rm", "rmdir", "dd", "shred", "wipefs", "fdisk", "parted", "format", "del", "erase", "mv",
        "chmod", "chown", "shutdown", "reboot", "halt", "poweroff", "init", "telinit", "kill",
        "killall", "pkill", "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ssh", "scp",
        "sftp", "ftp", "tftp", "rsync", "find", "sed", "awk", "gawk", "mawk", "nawk", "ed", "ex",
        "vi", "vim", "nvim", "emacs", "less", "more", "man", "tar", "zip", "at", "batch", "crontab",
        "screen", "tmux", "systemctl", "launchctl", "schtasks", "reg", "eval", "source", "rundll32",
        "regsvr32", "mshta", "wscript", "cscript", "certutil", "bitsadmin", "msiexec", "wmic",
        "forfiles", "concurrently", "watchfiles", "watchexec", "entr", "onchange", "hyperfine",
    }
)  # fmt: skip
"""No MCP server is among these; they destroy, send away or run what their arguments say."""
_MAX_DEPTH: Final = 8
"""So many wrappers in one another are followed."""
_SHELL_CHARS: Final = frozenset(";&|<>$`\"'\\*?(){}[]~#!\n\r")
_NAME_CHARS: Final = frozenset(';&|<>$`"\n\r')
"""Paths may hold brackets and quotes; these they hardly do."""
_BATCH_CHARS: Final = frozenset('%!^&|<>"\n\r')
_BATCH_ENDINGS: Final = (".cmd", ".bat")


def judge(
    command: str,
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    search_path: str | None = None,
    windows: bool = False,
) -> Iterator[Finding]:
    """Yields everything that speaks against running this. It reads the disk to follow links."""
    unprintable = (char for char in command if not char.isprintable())
    if char := _first_char(_NAME_CHARS, [command]) or next(unprintable, ""):
        yield Finding(
            "command",
            f"holds {char!r}, and no shell reads it",
            "write the program alone, and its arguments into args",
            "metacharacters",
        )
    yield from _judge(command, args, _CommandContext(cwd, search_path, windows), "command", 0)


class _CommandContext:
    """Where a command would be looked for, and what of it was judged already."""

    def __init__(self, cwd: Path | None, search_path: str | None, windows: bool) -> None:
        self.windows: Final = windows
        self._cwd: Final = cwd
        self._search_path: Final = search_path
        self._depths: Final[dict[tuple[str, ...], int]] = {}

    def is_new(self, words: tuple[str, ...], depth: int) -> bool:
        """Readings meet again behind most wrappers; each is followed once, where it is least deep.

        Without this their number would double with each word.
        """
        if self._depths.get(words, _MAX_DEPTH + 2) <= depth:
            return False
        self._depths[words] = depth
        return True

    def located(self, command: str) -> str | None:
        try:
            return located(command, self._cwd, self._search_path)
        except (OSError, ValueError, RuntimeError):  # a NUL; a home that is nobody's
            return None


def _judge(
    command: str, args: Sequence[str], context: _CommandContext, key: str, depth: int
) -> Iterator[Finding]:
    program = context.located(command)
    for name in names(command, program):
        yield from _named(name, key)
        yield from _behind(name, args, context, depth)
    if context.windows and (char := char_for_batch_file(program or command, args)):
        reason = f"cmd.exe would read {char!r} in them, since the command is a batch file"
        mend = "start the program behind it (node, python)"
        yield Finding("args", reason, mend, "metacharacters")


def _behind(
    name: str, args: Sequence[str], context: _CommandContext, depth: int, *, of_python: bool = False
) -> Iterator[Finding]:
    """Judges what a program of this name, or a module of Python's, runs of its arguments."""
    if depth > _MAX_DEPTH:
        mend = "start the program itself"
        yield Finding("args", f"has over {_MAX_DEPTH} wrappers in one another", mend, "command")
        return
    if (interpreter := INTERPRETERS.get(name)) is not None:
        code = first_code(interpreter, args)
        if not (of_python and code == NO_SCRIPT):
            yield from _given(name, code)
        for found in findings_in(interpreter, args):
            # A module is looked for in Python's folders, so that no link of the disk says what it
            # is; one that is called like a shell or a tool is most likely a server of that name.
            if found.module and context.is_new(("-m", *found.module), depth):
                module, *rest = found.module
                root = plain_name(module.partition(".")[0])
                yield from _behind(root, rest, context, depth + 1, of_python=True)
    if (wrapper := WRAPPERS.get(name)) is not None:
        yield from _wrapped(name, wrapper, args, context, depth)


def _named(name: str, key: str) -> Iterator[Finding]:
    if name in _SHELLS:
        reason = f"{name} is a shell"
        mend = "start the program itself, or a script by its own path"
    elif name in _OTHER_USERS:
        reason, mend = f"{name} runs as another user", "start the program itself"
    elif name in _NO_SERVERS or name.startswith("mkfs"):
        reason, mend = f"{name} is no MCP server", "name the server's program"
    else:
        return
    yield Finding(key, reason, mend, "command")


def _given(name: str, code: str | None) -> Iterator[Finding]:
    if code:
        mend = "name a file, a module or a package"
        yield Finding("args", f"{name} is given code to run ({code[:40]})", mend, "eval")


def _wrapped(
    name: str, wrapper: Wrapper, args: Sequence[str], context: _CommandContext, depth: int
) -> Iterator[Finding]:
    if wrapper.shell and (char := _first_char(_SHELL_CHARS, args)):
        mend = "start the program itself"
        yield Finding("args", f"{name} has a shell read {char!r}", mend, "metacharacters")
    for inner in wrapped_commands(wrapper, args):
        for variable in loads_code(inner.assigned):
            reason = f"{name} sets {variable[:40]}, which makes programs run other code"
            yield Finding("args", reason, "remove it", "env")
        yield from _given(name, inner.eval)
        if inner.words and context.is_new(inner.words, depth):
            yield from _judge(inner.words[0], inner.words[1:], context, "args", depth + 1)


def char_for_batch_file(program: str, args: Iterable[str]) -> str:
    """Gives the first character that cmd.exe would read, which runs batch files unasked."""
    if not program.lower().rstrip(". ").endswith(_BATCH_ENDINGS):
        return ""
    return _first_char(_BATCH_CHARS, args)


def _first_char(chars: frozenset[str], texts: Iterable[str]) -> str:
    """Gives the first of `chars` that stands in the texts, or an empty text."""
    return next((char for text in texts for char in text if char in chars), "")
