"""How an interpreter reads one of its words: code, the script, or an option before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from mcp_bridge.security.interpreter import Interpreter


@dataclass(frozen=True, slots=True)
class CodeFinding:
    code: str = ""
    """The argument that brings code."""
    module: tuple[str, ...] = ()
    """The module that stands in the script's place, and what it is given."""


@dataclass(frozen=True, slots=True)
class ReadOn:
    """Nothing found: reading goes on there."""

    at: int
    sure: bool = True
    """Whether there is no other way to read what came before."""


Step: TypeAlias = Iterator[CodeFinding | ReadOn]
NO_SCRIPT: Final = "no script, so that stdin is its program"
_STDIN: Final = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


def script(interpreter: Interpreter, word: str | None) -> Iterator[CodeFinding]:
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
    """Make runs `x!=y` and `x:=$(shell y)` as it reads them, and its recipes by `SHELL`."""
    name, equals, value = word.partition("=")
    named = name.rstrip(":?+ ") in {"SHELL", ".SHELLFLAGS"}
    return interpreter.assigns and bool(equals) and ("$" in value or name.endswith("!") or named)


def usual(interpreter: Interpreter, words: Sequence[str], at: int) -> Step:
    word = words[at]
    # Node takes either character in its options; no other program has one that `_` makes harmless.
    name = word.partition("=")[0].replace("_", "-")
    for long in interpreter.longs:
        if name == long or (not long.startswith("--") and word.startswith(long)):
            yield CodeFinding(long)
            return
    if name in interpreter.scripts:
        value = word.partition("=")[2] or next(iter(words[at + 1 :]), None)
        yield from script(interpreter, value)
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
            yield from script(interpreter, value or None)
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


def loose(interpreter: Interpreter, words: Sequence[str], at: int) -> Step:
    """PowerShell's options: shortened at will, in any case."""
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
