"""What is known of one interpreter: which of its words bring code, and which bring the script."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interpreter:
    letters: str = ""
    """Short options that are given code, or a file to load before the script."""
    longs: tuple[str, ...] = ()
    """Long ones; `--import` stands for `--import=x` too."""
    valued: str = ""
    """Short options with another value, joined or next."""
    long_valued: tuple[str, ...] = ()
    joined: str = ""
    """Short options whose value is never the next word."""
    flags: str = ""
    """Short options without a value."""
    long_flags: tuple[str, ...] = ()
    """Long ones, or with a value behind `=` alone; `--no-*` stands for all that begin so."""
    settings: tuple[str, ...] = ()
    """Beginnings of what short options must not be set to, as it loads code."""
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
