"""Finds a file or a folder by what a person calls it: "the pancake recipe", "recipes/pancakes.md".

A path is taken as it is. Else the words are compared with the names of all files in the allowed
folders, without endings and marks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from caal_node.core.errors import InvalidArguments
from caal_node.policy.heard_words import stem
from caal_node.toolsets.local_files.allowed_folders import AllowedFolders, AllowedPath
from caal_node.toolsets.local_files.file_text import spoken_title

MAX_CHARS: Final = 1_000
"""Characters of what a file is called."""
MAX_NAMED: Final = 8
"""Names that a message for the model lists."""
_WORD: Final = re.compile(r"[^\W_]+")
_SMALL: Final = frozenset(
    """a about an called document file folder for from in list md my named note of on open our pdf
    please read show text that the this to txt what which with your""".split()  # noqa: SIM905 - a list of words reads better as words
)


def find_path(folders: AllowedFolders, said: str, *, folder: bool) -> AllowedPath:
    """Return the one file, or folder, that a person means. It reads the disk.

    Raises:
        InvalidArguments: There is none, or there are several; the message names those.
        ToolRefused: It is outside of the allowed folders.
    """
    path = said.strip().strip("\"'`")
    kind = "folder" if folder else "file"
    if not path or len(path) > MAX_CHARS or "\0" in path:
        raise InvalidArguments(f"Say which {kind}.")
    found = folders.at(path)
    if found is not None and found.is_folder is folder:
        return found
    named = _named(path, [each for each in folders.walk() if each.is_folder is folder])
    if len(named) == 1:
        return named[0]
    if not named:
        raise InvalidArguments(f"There is no {kind} {path!r}; list_directory shows what there is.")
    names = ", ".join(each.shown for each in named[:MAX_NAMED])
    raise InvalidArguments(f"Several {kind}s may be meant; ask which, or take one of: {names}.")


def _named(said: str, paths: Sequence[AllowedPath]) -> list[AllowedPath]:
    """Return the paths that the words fit: those called just so, else those that have them all, and
    one of them in the name itself."""
    wanted = _words(said)
    own = [(each, _words(spoken_title(each.name))) for each in paths]
    just_so = [each for each, words in own if words == wanted]
    some = [each for each, words in own if words & wanted and wanted <= _words(each.shown)]
    return (just_so or some) if wanted else []


def _words(text: str) -> frozenset[str]:
    found = _WORD.findall(text.casefold())
    return frozenset(stem(word) for word in found if word not in _SMALL)
