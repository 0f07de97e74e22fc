"""Finds out which words of a program's arguments are another program that it runs.

Options are read as each wrapper reads them. Where one is not known, both readings count: that it
stands alone, and that the word behind it is its value. So nothing hides behind an option that is
missing here; a harmless command may be refused, and `allow` lets it in.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_ASSIGNED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How one program's arguments lead to the program that it runs."""

    flags: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options whose value follows, or is joined to them."""
    long_valued: tuple[str, ...] = ()
    """Long options whose value may be the next word."""
    long_flags: tuple[str, ...] = ()
    """Long options without a value."""
    operands: int = 0
    """The number of words before the program: the seconds of timeout, the file of flock."""
    subcommands: tuple[str, ...] = ()
    """The first word must be one of these, else nothing is run; without any there is no such
    word."""
    evals: tuple[str, ...] = ()
    """Options whose value is itself a command line for a shell."""
    split: tuple[str, ...] = ()
    """Options whose value is split into words and run (`env -S`)."""
    modules: tuple[str, ...] = ()
    """Options whose value is a Python module, with all that follows for its arguments."""
    shell: bool = False
    """Whether a shell reads the words."""
    bare: bool = False
    """Whether the program may stand there without a subcommand too."""
    dashed: bool = False
    """Whether other words may stand before the `--` behind which the program is."""
    scoped: bool = False
    """Whether the program may have an environment before it: `test:python`."""


@dataclass(frozen=True, slots=True)
class WrappedCommand:
    """What a wrapper runs, in one reading of its options."""

    words: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    """The names of variables that are set for the program."""
    eval: str = ""
    """The option that holds a command line."""


def wrapped_commands(wrapper: Wrapper, words: Sequence[str]) -> Iterator[WrappedCommand]:
    """Yields what `wrapper` runs when it is given `words`, in every reading."""
    for start in _starts(wrapper, words):
        yield from _read(wrapper, words[start:])


def _starts(wrapper: Wrapper, words: Sequence[str]) -> Iterator[int]:
    """Yields where the words behind the subcommand begin; an option's value may have its name."""
    if wrapper.bare or not wrapper.subcommands:
        yield 0
    for subcommand in wrapper.subcommands:
        parts = subcommand.split()
        for at in range(len(words)):
            if list(words[at : at + len(parts)]) == parts:
                yield at + len(parts)
                if wrapper.dashed and "--" in words[at:]:
                    yield words.index("--", at) + 1


def _read(wrapper: Wrapper, words: Sequence[str]) -> Iterator[WrappedCommand]:
    at, operands, unsure = 0, wrapper.operands, False
    assigned: list[str] = []
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            yield WrappedCommand(_scoped(wrapper, words[at + operands :]), tuple(assigned))
            return
        if named := _ASSIGNED.match(word):
            assigned.append(named[1])
        elif word.startswith("-") and len(word) > 1:
            option = _option(wrapper, word)
            if option.name in wrapper.evals:
                yield WrappedCommand(assigned=tuple(assigned), eval=option.name)
            elif option.name in (*wrapper.split, *wrapper.modules):
                value, rest = option.joined, words[at:]
                if option.takes_next:
                    value, rest = "".join(rest[:1]), rest[1:]
                if option.name in wrapper.modules:
                    yield WrappedCommand(("python", "-m", value, *rest), tuple(assigned))
                    return
                yield WrappedCommand(assigned=tuple(assigned))
                yield from _read(wrapper, [*_split(value), *rest])
                return
            at += option.takes_next
            unsure = not option.known
            continue
        elif operands:
            operands -= 1
        else:
            yield WrappedCommand(_scoped(wrapper, words[at - 1 :]), tuple(assigned))
            if not unsure:
                return
        unsure = False
    yield WrappedCommand(assigned=tuple(assigned))


def _scoped(wrapper: Wrapper, words: Sequence[str]) -> tuple[str, ...]:
    program, *rest = words or ("",)
    if wrapper.scoped:
        program = program.rpartition(":")[2]
    return (program, *rest) if program else ()


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    joined: str = ""
    """The value, where it is in the same word."""
    takes_next: bool = False
    known: bool = True


def _option(wrapper: Wrapper, word: str) -> _Option:
    special = (*wrapper.evals, *wrapper.split, *wrapper.modules)
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        if name in wrapper.long_flags:
            return _Option(name)
        takes = (*special, *wrapper.long_valued)
        # getopt takes any beginning of a name that is not also another's.
        full = name if name in takes else next((n for n in takes if n.startswith(name)), "")
        return _Option(full or name, value, bool(full) and not equals, bool(full or equals))
    for at, letter in enumerate(word[1:], 1):
        joined = word[at + 1 :]
        if f"-{letter}" in special or letter in wrapper.valued:
            return _Option(f"-{letter}", joined, not joined)
        if letter not in wrapper.flags:
            return _Option(word, known=False)
    return _Option(word)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
