"""Which calls of one reply may run side by side, and which must wait for which.

Two calls conflict when one of them may change what the other uses. A call that is not known to
read only is taken to write. What a call uses: the paths among its arguments, or else its whole
source (a server, an agent). So

- readers never wait for each other;
- a writer waits for what touches the same path, or a folder above or below it, whatever its
  source; and for what touches its source without a path, since that could be anything there. A
  writer with a path whose arguments also hold a text that may name something else
  (`"new_name": "b.txt"`, `"to": "archive"`) may touch anything there, too;
- calls of different sources without a path in common never wait.

Pure: paths come resolved_path (`resolved_path` does it, and reads the disk).
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from mcp_bridge.core.files import expand_home

Parts: TypeAlias = tuple[str, ...]

MAX_PATHS: Final = 64
"""Paths of one call that are looked at."""
MAX_PATH_CHARS: Final = 4_096
"""Linux's PATH_MAX; a longer text is no path."""
_VALUES: Final = 2_000
_DEPTH: Final = 12
"""Of arguments that are looked through."""
_KEY: Final = re.compile(
    r"(^|_)(paths?|files?|file_?names?|file_?paths?|folders?|dirs?|directory|directories|src|dest|"
    r"destination|source|target)(_|$)"
)
"""Names of arguments that hold paths, in snake case."""
_ANYWHERE: Final = re.compile(r"(^|_)(command|cmd|script|code|shell|sql|args?|argv|cwd|root)(_|$)")
"""Names of arguments by which a call may work anywhere."""
_CONTENT: Final = re.compile(
    r"(^|_)(contents?|text|texts|body|data|message|comment|description|summary|encoding|language|"
    r"(old|new)_str(ing)?|replacement)$"
)
"""Names of arguments that say what to write and not where, in snake case."""
_FILE_NAME: Final = re.compile(r"[^/\\]*[^\s/\\.]\.(?=\w*[A-Za-z])\w{1,8}")
"""A file's name by its form."""
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FULL: Final = re.compile(r"/|~/|~$|[A-Za-z]:[\\/]|file:/")
_ROOTED: Final = re.compile(r"(~?/|\.{1,2}(/|$)|~$|[A-Za-z]:[\\/]|\\\\|file:)")
_RELATIVE: Final = re.compile(r"[^\s/\\:*?\"<>|]+([/\\][^\s/\\:*?\"<>|]+)+[/\\]?")
_WINDOWS: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")


@dataclass(frozen=True, slots=True)
class CallAccess:
    """What one call uses, and whether it may change it."""

    source: str
    """Whose state it is. Two calls of one source without paths may touch the same thing."""
    writes: bool
    paths: tuple[Parts, ...] = ()
    """Resolved, as their parts. Empty: the whole source."""
    whole: bool = False
    """The whole source besides the paths."""


def conflict(one: CallAccess, other: CallAccess) -> bool:
    """Whether the two must not run at the same time. The same either way round."""
    if not (one.writes or other.writes):
        return False
    if one.source == other.source and (_anything(one) or _anything(other)):
        return True
    return any(_nested(a, b) for a in one.paths for b in other.paths)


def plan(calls: Sequence[CallAccess]) -> tuple[tuple[int, ...], ...]:
    """For each call the numbers of those before it that it waits for, in the model's order."""
    return tuple(
        tuple(before for before in range(at) if conflict(calls[before], call))
        for at, call in enumerate(calls)
    )


def _anything(access: CallAccess) -> bool:
    return access.whole or not access.paths


def _nested(one: Parts, other: Parts) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


@dataclass(frozen=True, slots=True)
class MentionedPaths:
    """What a call's arguments say of where it works."""

    paths: tuple[str, ...] = ()
    whole: bool = True
    """Whether it may work elsewhere in its source, too. False only where every text that looks
    like a path is a full one and stands under a name that is for paths, and no other text may be
    the name of a file or a target."""


def mentioned_paths(arguments: Mapping[str, Any], *, writes: bool = True) -> MentionedPaths:
    """The paths among a call's arguments, however deep.

    A text is one by its form (`/a`, `~/a`, `./a`, `C:\\a`, `file:///a`, `a/b.txt`), or by the name
    of its argument (`path`, `outputFile`, `repo_dir`).

    Args:
        writes: Of a writer any other text on one line may be a target, unless its argument's name
            is for content; of a reader only one with the form of a file's name, since what is
            looked for and how (`query`, `mode`) need not keep it waiting for writers elsewhere.
    """
    found: dict[str, bool] = {}
    sure = True
    for seen, (key, value, deep) in enumerate(_texts(arguments, "", _DEPTH)):
        if deep or seen == _VALUES or len(found) == MAX_PATHS:
            sure = False
            break
        name = _CAPITAL.sub("_", key).lower().replace("-", "_")
        sure = sure and not _ANYWHERE.search(name)
        named = _KEY.search(name) is not None
        if _may_be_path(value) and (named or _ROOTED.match(value) or _RELATIVE.fullmatch(value)):
            found[value] = True
            sure = sure and named and _FULL.match(value) is not None
            continue
        lines = value.splitlines() if named else (value,)
        if not _CONTENT.search(name) and any(_may_name(line, writes) for line in lines):
            sure = False
    return MentionedPaths(tuple(found), whole=not (found and sure))


def _may_be_path(value: str) -> bool:
    return (
        0 < len(value) <= MAX_PATH_CHARS
        and "\0" not in value
        and "\n" not in value
        and ("://" not in value or value.startswith("file:"))
    )


def _may_name(value: str, writes: bool) -> bool:
    """Whether a text without the form of a path may say which file is meant."""
    bare = value.strip()  # as many tools do
    return _may_be_path(bare) and (writes or _FILE_NAME.fullmatch(bare) is not None)


def _texts(value: object, key: str, depth: int) -> Iterator[tuple[str, str, bool]]:
    """Each text with the name of its argument; True in the end where it lies too deep."""
    if depth == 0:
        yield key, "", True
    elif isinstance(value, str):
        yield key, value, False
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, object]", value).items():
            yield from _texts(inner, str(name), depth - 1)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _texts(inner, key, depth - 1)


def resolved_path(path: str) -> Parts:
    """A path's parts with links followed, from the working folder where it is relative.

    Reads the disk. Capitals are made small: some disks do not tell them apart, and where one does,
    two calls wait for each other that need not. What cannot be looked up stays as it is written.
    """
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path) or path
    if os.name == "nt" or _WINDOWS.match(path):
        if os.name == "nt":
            path = _real(path)
        return tuple(part.casefold() for part in PureWindowsPath(path).parts)
    real = unicodedata.normalize("NFC", _real(path))
    # Two slashes in front, which POSIX leaves to the system, are one on all of today's.
    return tuple(part.casefold() for part in PurePosixPath("/" + real.lstrip("/")).parts)


def _real(path: str) -> str:
    whole = os.path.abspath(expand_home(path))  # noqa: PTH100 - texts in, texts out
    try:
        return os.path.realpath(whole)
    except (OSError, ValueError):
        return whole
