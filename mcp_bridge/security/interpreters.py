"""Finds code that an interpreter is given in its arguments, or by its stdin.

A server is a file or a module that somebody published and named; code among the arguments is what
nobody reads. Only an interpreter's own options are looked at: what follows the script or module is
the script's, and may say `-c` or `-e` as it likes.

An option that is not in the table may have the next word for its value, or not. Both readings are
followed, since a value that was taken for the script would hide all that comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What is known of one interpreter: which words bring code, and which bring the script."""

    letters: str = ""
    """Letters of options that are given code, or a file to load before the script."""
    longs: tuple[str, ...] = ()
    """The same as long options; `--import` stands for `--import=x` too."""
    valued: str = ""
    """Letters of options with another value, joined or in the next word."""
    long_valued: tuple[str, ...] = ()
    joined: str = ""
    """Letters of options whose value is never the next word."""
    flags: str = ""
    """Letters of options without a value."""
    long_flags: tuple[str, ...] = ()
    """Long options without a value, or with one behind `=` alone; `--no-*` stands for all such."""
    settings: tuple[str, ...] = ()
    """Beginnings of values that short options must not have, as they load code."""
    module: str = ""
    """The letter behind which a module's name stands in the script's place."""
    modules: tuple[str, ...] = ()
    """Modules that take code, or read it from stdin."""
    script: str = ""
    """The letter behind which the script's name stands."""
    scripts: tuple[str, ...] = ()
    """Long options behind which it stands."""
    words: tuple[str, ...] = ()
    """Subcommands that take code."""
    runs: tuple[str, ...] = ()
    """Subcommands that run a script: what follows is read as without them."""
    stdin: bool = True
    """Whether it reads its program from stdin where no script is given."""
    loose: bool = False
    """Whether options are shortened at will, without regard to case, and begin with one `-`."""
    mixed: bool = False
    """Whether options may stand behind the script too."""
    assigns: bool = False
    """Whether a word such as `x:=$(shell y)` is code (make)."""


@dataclass(frozen=True, slots=True)
class CodeFinding:
    """Code, or a module, that the interpreter is given."""

    code: str = ""
    """The argument that brings code; empty where none does."""
    module: tuple[str, ...] = ()
    """The module that stands in the script's place, and what it is given."""


@dataclass(frozen=True, slots=True)
class ReadOn:
    """One word brought nothing; reading goes on at another."""

    at: int
    sure: bool = True
    """Whether there is no other way to read what came before."""


Step: TypeAlias = Iterator[CodeFinding | ReadOn]
NO_SCRIPT: Final = "no script, so that stdin is its program"
_STDIN: Final = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


def findings_in(interpreter: Interpreter, words: Sequence[str]) -> Iterator[CodeFinding]:
    """Yields the code that `interpreter` is given by the command line or by stdin, and modules."""
    places = [ReadOn(0)]
    for place in places:  # which grows meanwhile
        for step in _step(interpreter, words, place.at):
            if isinstance(step, ReadOn):
                following = ReadOn(step.at, place.sure and step.sure)
                if following not in places:
                    places.append(following)
            elif place.sure or step.code != NO_SCRIPT:
                yield step


def first_code(interpreter: Interpreter, words: Sequence[str]) -> str | None:
    """Gives the first argument that makes `interpreter` run code that it is given, or None."""
    return next((found.code for found in findings_in(interpreter, words) if found.code), None)


def _step(interpreter: Interpreter, words: Sequence[str], at: int) -> Step:
    if at >= len(words):
        yield from _script(interpreter, None)
        return
    word = words[at]
    if word in interpreter.words:
        yield CodeFinding(word)
    elif word in interpreter.runs:
        yield ReadOn(at + 1)
    elif len(word) < 2 or word[0] not in "-+":
        yield from _script(interpreter, word)
        if interpreter.mixed:
            yield ReadOn(at + 1, sure=False)
    elif word == "--":
        yield from _script(interpreter, next(iter(words[at + 1 :]), None))
    elif interpreter.loose:
        yield from _loose(interpreter, words, at)
    else:
        yield from _usual(interpreter, words, at)


def _script(interpreter: Interpreter, word: str | None) -> Iterator[CodeFinding]:
    if word is None:
        if interpreter.stdin:
            yield CodeFinding(NO_SCRIPT)
    elif word.lower().startswith("data:"):
        yield CodeFinding("data:")
    # Windows' own PowerShell takes any other first word for a command.
    elif interpreter.loose and not word.lower().endswith(".ps1"):
        yield CodeFinding("a command in the place of a script")
    elif word in interpreter.words or word in _STDIN or _assigns_code(interpreter, word):
        yield CodeFinding(word)


def _assigns_code(interpreter: Interpreter, word: str) -> bool:
    """Tells whether make runs a word: `x!=y`, `x:=$(shell y)`, and what sets its `SHELL`."""
    name, equals, value = word.partition("=")
    named = name.rstrip(":?+ ") in {"SHELL", ".SHELLFLAGS"}
    return interpreter.assigns and bool(equals) and ("$" in value or name.endswith("!") or named)


def _usual(interpreter: Interpreter, words: Sequence[str], at: int) -> Step:
    word = words[at]
    # Node takes either character in its options; no other program has one that `_` makes harmless.
    name = word.partition("=")[0].replace("_", "-")
    for long in interpreter.longs:
        if name == long or (not long.startswith("--") and word.startswith(long)):
            yield CodeFinding(long)
            return
    if name in interpreter.scripts:
        value = word.partition("=")[2] or next(iter(words[at + 1 :]), None)
        yield from _script(interpreter, value)
    elif name in interpreter.long_valued:
        yield from _value(words, at, joined="=" in word)
    elif not word.startswith("--"):
        yield from _letters(interpreter, words, at)
    elif _is_one_of(name, interpreter.long_flags):
        yield ReadOn(at + 1)
    # getopt takes any beginning of a name that is not also another's.
    elif long := next((long for long in interpreter.longs if long.startswith(name)), ""):
        yield CodeFinding(long)
    else:
        yield from _unknown(words, at, joined="=" in word)


def _letters(interpreter: Interpreter, words: Sequence[str], at: int) -> Step:
    word, known = words[at], True
    for place, letter in enumerate(word[1:], 1):
        joined = word[place + 1 :]
        value, behind = (joined, at + 1) if joined else ("".join(words[at + 1 : at + 2]), at + 2)
        if letter in interpreter.letters:
            yield CodeFinding(f"-{letter}")
            return
        if letter == interpreter.module:
            if value.partition(".")[0] in interpreter.modules:
                yield CodeFinding(f"-m {value}")
            elif value:
                yield CodeFinding(module=(value, *words[behind:]))
            return
        if letter == interpreter.script:
            yield from _script(interpreter, value or None)
            return
        if letter in interpreter.valued:
            if interpreter.settings and value.startswith(interpreter.settings):
                yield CodeFinding(f"-{letter} {value}")
            yield from _value(words, at, joined=bool(joined))
            return
        if letter in interpreter.joined:
            break
        known = known and letter in interpreter.flags
    yield from _unknown(words, at, joined=known)


def _value(words: Sequence[str], at: int, *, joined: bool) -> Step:
    yield ReadOn(at + 1 if joined else at + 2)
    # Node, for one, takes no value that looks like an option.
    if not joined and any(word.startswith("-") for word in words[at + 1 : at + 2]):
        yield ReadOn(at + 1, sure=False)


def _unknown(words: Sequence[str], at: int, *, joined: bool) -> Step:
    yield ReadOn(at + 1)
    if not joined and at + 1 < len(words):
        yield ReadOn(at + 2, sure=False)


def _is_one_of(name: str, names: Sequence[str]) -> bool:
    return any(
        name.startswith(known[:-1]) if known.endswith("*") else name == known for known in names
    )


def _loose(interpreter: Interpreter, words: Sequence[str], at: int) -> Step:
    """Reads PowerShell's options, which may be shortened at will, in any case."""
    name = "-" + words[at].lstrip("-").lower().partition(":")[0]
    if "-file".startswith(name):
        return
    for long in interpreter.longs:
        if long.startswith(name):
            yield CodeFinding(long)
            return
    if any(option.startswith(name) for option in interpreter.long_valued):
        yield from _value(words, at, joined=False)
    elif any(option.startswith(name) for option in interpreter.long_flags):
        yield ReadOn(at + 1)
    else:
        yield from _unknown(words, at, joined=False)
