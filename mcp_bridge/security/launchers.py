"""Reads a launcher's arguments up to the server that they name.

Options are those that the launcher is known to take and that cannot bring code. At any other the
reading stops: whether the next word is its value, and what it does, nobody here knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for name, pattern in {
        # Not what looks like an option: two readings of it would differ.
        "": r"(?!-).*",
        "folder": r"(?!-).*",  # where what it names is looked for
        "word": r"\w[\w.+-]*",
        # By its name, by a folder, or by an address where nobody changes it on the way.
        "package": r"(?!-)(?:(?:https|git\+https|git\+ssh|npm|jsr|github|gitlab|bitbucket):"
        r"[^\s;&|$`\"'()]+|[^:\s;&|$`\"'()]+)|[A-Za-z]:[\\/].*",
        "npmjs": r"https://registry\.npmjs\.org/?",
        "pypi": r"https://pypi\.org/simple/?",
        "nuget": r"https://api\.nuget\.org/v3/index\.json",
        "python": r"(?:c?python|pypy)?[-@]?[23](?:\.\d+){0,2}t?",
        # A category with a dot in it is a module that Python loads.
        "warning": r"(?:ignore|default|error|always|module|once)(?:::[A-Za-z]+)?",
        "switch": r"utf8(?:=[01])?|dev|faulthandler|importtime|no_debug_ranges",
        "loader": r"tsx|tsx/esm|tsx/cjs|ts-node/esm|ts-node/register|dotenv/config",
        "unprivileged": r"no-new-privileges(?:[:=]true)?",
        "mount": r"(?:MOUNT|[a-z]:[\\/]+(?!Windows|Program)[^\\/:]+[\\/]+[^\\/:][^:]*)(?::.*)?",
        "long mount": r"(?:type=(?:bind|volume|tmpfs),)?(?:(?:src|source)=MOUNT,)?"
        r"(?:dst|target|destination)=[^,]+(?:,(?:ro|readonly))?",
    }.items()
    for pattern in [
        pattern.replace(
            "MOUNT",
            # A volume, or a folder that is neither the system's nor all of somebody's home.
            r"(?![.\\]|[a-z]:)(?!/+(?:(?:home|root|Users)/*)?(?:[:,]|$))"
            r"(?!.*/\.{1,2}(?:[/:,]|$))(?!.*\.sock\b)(?!/+(?:bin|boot|dev|etc|lib\w*|private|proc|run|sbin|sys|usr|var"
            r"|System)(?:[/:,]|$))[^,:]+",
        )
    ]
}
"""What the value of an option may be."""
_OPTION: Final = re.compile(r"(?P<name>[^=\[]+)(?P<how>=>|=\+|\[=\]|=)?(?P<what>.*)")


@dataclass(frozen=True)
class Launcher:
    """What one program is known to take before the server's own arguments."""

    starts: str
    """What it is told to start: a script, a module, a package, a command, ..."""
    options: str = ""
    """Those that are known: `-u` without a value, `-e=` with any, `-p=python` with one of that
    pattern, `--allow-net[=]` with none but in the same word, `-m=>module` with what is started,
    `--from=+command` with a package, whereupon the first other word is a command."""
    shapes: str = r"(?!)"
    """The pattern of further words that are options."""
    words: Mapping[str, Launcher] = field(default_factory=dict[str, "Launcher"])
    """Subcommands, each with arguments of its own."""
    optional: bool = False
    """Whether nothing need be named."""
    mixed: bool = False
    """Whether its options may also stand behind what is named, up to a `--`."""

    @cached_property
    def known(self) -> Mapping[str, tuple[str, str]]:
        """Each option with how it takes its value, and what the value is."""
        found = [_OPTION.fullmatch(word) for word in self.options.split()]
        return {
            one["name"]: (one["how"] or "", one["what"].replace("_", " ")) for one in found if one
        }


@dataclass(frozen=True, slots=True)
class Named:
    """What a launcher is told to start, and the words that are left for it."""

    starts: str
    what: str
    rest: tuple[str, ...] = ()
    folder: str = ""
    """Where the launcher goes before it looks for that; empty where it stays."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The word at which the reading stopped; empty where nothing was named at all."""

    word: str


def read(launcher: Launcher, words: Sequence[str], folder: str = "") -> Named | Unknown:
    """Reads what `launcher` is told by `words`."""
    starts, named, at = launcher.starts, "", 0
    others: list[str] = []
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            if not named and not launcher.optional:
                named, at = "".join(words[at : at + 1]), at + 1
            break
        if word == "-" or not word.startswith("-"):
            if not named and word in launcher.words:
                return read(launcher.words[word], words[at:], folder)
            if not word or (launcher.mixed and word.startswith("@") and "/" not in word):
                return Unknown(word or "''")  # `@x` is a file of further options
            if named:
                others.append(word)
            named = named or word
            if launcher.mixed:
                continue
            break
        option, value = _option(launcher, word)
        if option is None:
            return Unknown(word)
        how, what = launcher.known.get(option, ("", ""))
        if how in ("", "[=]"):
            continue
        if value is None:
            value, at = "".join(words[at : at + 1]), at + 1
        if not PATTERNS["package" if how == "=+" else "" if how == "=>" else what].fullmatch(value):
            return Unknown(f"{option} {value}")
        if how == "=>":
            return Named(what, value, tuple(words[at:]), folder) if value else Unknown("")
        folder = value if what == "folder" else folder
        starts = what if how == "=+" else starts
    if not named and not launcher.optional:
        return Unknown("")
    return Named(starts, named, (*others, *words[at:]), folder)


def _option(launcher: Launcher, word: str) -> tuple[str | None, str | None]:
    """Gives the option that `word` is, if it is known, and the value in it, if there is one."""
    name, equals, value = word.partition("=")
    how = launcher.known.get(name, ("?", ""))[0]
    if re.fullmatch(launcher.shapes, word) or (how == "" and not equals) or how == "[=]":
        return name, None
    if how != "?" and how:
        return name, value if equals else None
    if not word.startswith("--"):  # single letters stand together: `-it`, `-uW ignore`, `-v/x:/y`
        for place, letter in enumerate(word[1:], 2):
            option = f"-{letter}"
            how = launcher.known.get(option, ("?", ""))[0]
            if how == "?" or how == "[=]":
                return None, None
            if how:
                return option, word[place:].removeprefix("=") or None
        return "-", None
    return None, None
