"""Programs that run code which stands in their arguments, or comes by their stdin.

A server is a file or a module that somebody published and named; code among the arguments is what
nobody reads. Only an interpreter's own options are looked at: what follows the script or module is
the script's, and may say `-c` or `-e` as it likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Interpreter:
    letters: str = ""
    """Short options that are given code, or a file to load before the script."""
    longs: tuple[str, ...] = ()
    """Long ones; `--import` stands for `--import=x` too."""
    valued: str = ""
    """Short options with another value, joined or next."""
    long_valued: tuple[str, ...] = ()
    module: str = ""
    """The letter behind which a module's name stands in the script's place."""
    modules: tuple[str, ...] = ()
    """Modules that take code, or read it from stdin."""
    script: str = ""
    """The letter behind which the script's name stands."""
    words: tuple[str, ...] = ()
    """Subcommands that take code."""
    runs: tuple[str, ...] = ()
    """Subcommands that run a script: what follows is read as without them."""
    stdin: bool = True
    """Whether it reads its program from stdin where no script is given."""
    loose: bool = False
    """Whether options are shortened at will, without regard to case, and begin with one `-`."""


NO_SCRIPT: Final = "no script, so that stdin is its program"


def code_in(interpreter: Interpreter, words: Sequence[str]) -> str | None:
    """The argument that makes `interpreter` run code of the command line or of stdin; or None."""
    rest = iter(words)
    for word in rest:
        if word in interpreter.words:
            return word
        if word in interpreter.runs:
            continue
        if len(word) < 2 or word[0] not in "-+":
            return _script(interpreter, word)
        if word == "--":
            return _script(interpreter, next(rest, None))
        read = _loose if interpreter.loose else _option
        verdict = read(interpreter, word, rest)
        if verdict is not _GO_ON:
            return verdict
    return _script(interpreter, None)


_GO_ON: Final = "-"
"""No verdict: an option that brings no code."""


def _script(interpreter: Interpreter, word: str | None) -> str | None:
    if word is None:
        return NO_SCRIPT if interpreter.stdin else None
    if word.lower().startswith("data:"):
        return "data:"
    # Windows' own PowerShell takes any other first word for a command.
    if interpreter.loose and not word.lower().endswith(".ps1"):
        return "a command in the place of a script"
    return word if word in interpreter.words else None


def _option(interpreter: Interpreter, word: str, rest: Iterator[str]) -> str | None:
    """The option, where it brings code; None, where the script or a module follows."""
    name = word.partition("=")[0]
    for long in interpreter.longs:
        if name == long or (not long.startswith("--") and word.startswith(long)):
            return long
    if name in interpreter.long_valued:
        if name == word:
            next(rest, None)
        return _GO_ON
    if word.startswith("--"):
        return _GO_ON
    for at, letter in enumerate(word[1:], 1):
        joined = word[at + 1 :]
        if letter in interpreter.letters:
            return f"-{letter}"
        if letter == interpreter.module:
            module = (joined or next(rest, "")).partition(".")[0]
            return f"-m {module}" if module in interpreter.modules else None
        if letter in interpreter.valued or letter == interpreter.script:
            if not joined:
                next(rest, None)
            return None if letter == interpreter.script else _GO_ON
    return _GO_ON


def _loose(interpreter: Interpreter, word: str, rest: Iterator[str]) -> str | None:
    name = "-" + word.lstrip("-").lower().partition(":")[0]
    if "-file".startswith(name):
        return None
    for long in interpreter.longs:
        if long.startswith(name):
            return long
    if any(option.startswith(name) for option in interpreter.long_valued):
        next(rest, None)
    return _GO_ON
