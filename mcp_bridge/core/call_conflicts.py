"""Decides which calls of one reply may run side by side, and which must wait for which.

Two calls conflict when one of them may change what the other uses. A call that is not known to
read only is taken to write. What a call uses: the paths among its arguments, or else its whole
source (a server, an agent). So

- readers never wait for each other;
- a writer waits for what touches the same path, or a folder above or below it, whatever its
  source; and for what touches its source without a path, since that could be anything there. A
  writer with a path whose arguments also hold a text that may name something else
  (`"new_name": "b.txt"`, `"to": "archive"`) may touch anything there, too;
- calls of different sources without a path in common never wait.

Nothing here reads the disk but `resolved_path`, which makes the paths that are compared.
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

PathParts: TypeAlias = tuple[str, ...]

MAX_PATHS: Final = 64
"""So many paths of one call are looked at."""
MAX_PATH_CHARS: Final = 4_096
"""Linux's PATH_MAX; a longer text is no path."""
_MAX_VALUES: Final = 2_000
_MAX_DEPTH: Final = 12
"""So many values and levels of one call's arguments are looked through."""
_PATH_KEY: Final = re.compile(
    r"(^|_)(paths?|files?|file_?names?|file_?paths?|folders?|dirs?|directory|directories|src|dest|"
    r"destination|source|target)(_|$)"
)
"""Names of arguments that hold paths, in snake case."""
_ANYWHERE_KEY: Final = re.compile(
    r"(^|_)(command|cmd|script|code|shell|sql|args?|argv|cwd|root)(_|$)"
)
"""Names of arguments by which a call may work anywhere."""
_CONTENT_KEY: Final = re.compile(
    r"(^|_)(contents?|text|texts|body|data|message|comment|description|summary|encoding|language|"
    r"(old|new)_str(ing)?|replacement)$"
)
"""Names of arguments that say what to write and not where, in snake case."""
_FILE_NAME: Final = re.compile(r"[^/\\]*[^\s/\\.]\.(?=\w*[A-Za-z])\w{1,8}")
"""The form of a file's name."""
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FULL_PATH: Final = re.compile(r"/|~/|~$|[A-Za-z]:[\\/]|file:/")
_ROOTED_PATH: Final = re.compile(r"(~?/|\.{1,2}(/|$)|~$|[A-Za-z]:[\\/]|\\\\|file:)")
_RELATIVE_PATH: Final = re.compile(r"[^\s/\\:*?\"<>|]+([/\\][^\s/\\:*?\"<>|]+)+[/\\]?")
_WINDOWS_PATH: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")


@dataclass(frozen=True, slots=True)
class CallAccess:
    """What one call uses, and whether the call may change it."""

    source: str
    """The owner of the state. Two calls of one source without paths may touch the same thing."""
    writes: bool
    paths: tuple[PathParts, ...] = ()
    """The resolved paths, as their parts. Without any the call may use the whole source."""
    whole: bool = False
    """Whether the call may use the whole source besides the paths."""


def conflict(one: CallAccess, other: CallAccess) -> bool:
    """Tells whether two calls must not run at the same time, in whichever order."""
    if not (one.writes or other.writes):
        return False
    if one.source == other.source and (_uses_anything(one) or _uses_anything(other)):
        return True
    return any(_one_contains_other(a, b) for a in one.paths for b in other.paths)


def _uses_anything(access: CallAccess) -> bool:
    return access.whole or not access.paths


def _one_contains_other(one: PathParts, other: PathParts) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


@dataclass(frozen=True, slots=True)
class MentionedPaths:
    """What a call's arguments say of where it works."""

    paths: tuple[str, ...] = ()
    whole: bool = True
    """Whether the call may work elsewhere in its source, too. This is False only where every text
    that looks like a path is a full one and stands under a name that is for paths, and no other
    text may be the name of a file or a target."""


def mentioned_paths(arguments: Mapping[str, Any], *, writes: bool = True) -> MentionedPaths:
    """Finds the paths among a call's arguments, however deep.

    A text is a path by its form (`/a`, `~/a`, `./a`, `C:\\a`, `file:///a`, `a/b.txt`), or by the
    name of its argument (`path`, `outputFile`, `repo_dir`).

    Args:
        writes: Any other text on one line may be a writer's target, unless its argument's name is
            for content. For a reader only a text with the form of a file's name may be one, since
            what is looked for and how (`query`, `mode`) need not make it wait for writers.
    """
    found: dict[str, bool] = {}
    sure = True
    for seen, (key, value, deep) in enumerate(_texts(arguments, "", _MAX_DEPTH)):
        if deep or seen == _MAX_VALUES or len(found) == MAX_PATHS:
            sure = False
            break
        name = _WORD_START.sub("_", key).lower().replace("-", "_")
        sure = sure and not _ANYWHERE_KEY.search(name)
        named = _PATH_KEY.search(name) is not None
        if _may_be_path(value) and (
            named or _ROOTED_PATH.match(value) or _RELATIVE_PATH.fullmatch(value)
        ):
            found[value] = True
            sure = sure and named and _FULL_PATH.match(value) is not None
            continue
        lines = value.splitlines() if named else (value,)
        if not _CONTENT_KEY.search(name) and any(_may_name(line, writes) for line in lines):
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
    """Tells whether a text without the form of a path may say which file is meant."""
    bare = value.strip()  # as many tools do
    return _may_be_path(bare) and (writes or _FILE_NAME.fullmatch(bare) is not None)


def _texts(value: object, key: str, depth: int) -> Iterator[tuple[str, str, bool]]:
    """Yields each text with the name of its argument, and True where it lies too deep."""
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


def resolved_path(path: str) -> PathParts:
    """Gives a path's parts with links followed, from the working folder where it is relative.

    This reads the disk. Capitals are made small, since some disks do not tell them apart; where one
    does, two calls wait for each other that need not. What cannot be looked up stays as written.
    """
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path) or path
    if os.name == "nt" or _WINDOWS_PATH.match(path):
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
