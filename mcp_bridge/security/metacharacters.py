"""Characters that a shell, or Windows' cmd.exe, does not take as they stand.

Servers are started without a shell, so arguments may hold anything. There are three exceptions: a
command that looks like a shell's line is a mistake or worse; some wrappers hand their words to a
shell; and on Windows `npx` is a batch file, which cmd.exe reads with rules that quoting does not
satisfy (CVE-2024-24576, "BatBadBut").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_SHELL: Final = frozenset(";&|<>$`\"'\\*?(){}[]~#!\n\r")
_NAME: Final = frozenset(';&|<>$`"\n\r')
"""Paths may hold brackets and quotes; these they hardly do."""
_BATCH: Final = frozenset('%!^&|<>"\n\r')
_BATCH_ENDINGS: Final = (".cmd", ".bat")


def in_a_name(command: str) -> str:
    """The first such character of a command, or an empty text."""
    return _first(_NAME, [command]) or next((c for c in command if not c.isprintable()), "")


def for_a_shell(args: Iterable[str]) -> str:
    return _first(_SHELL, args)


def for_a_batch_file(program: str, args: Iterable[str]) -> str:
    """Cmd.exe is what runs a batch file, with no word about it."""
    if not program.lower().rstrip(". ").endswith(_BATCH_ENDINGS):
        return ""
    return _first(_BATCH, args)


def _first(chars: frozenset[str], texts: Iterable[str]) -> str:
    return next((char for text in texts for char in text if char in chars), "")
