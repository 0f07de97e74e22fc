"""A folder of lists, each a Markdown file that is named after it."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, TypeVar

from caal_node.core.errors import ToolBroke
from caal_node.policy.heard_words import stem, words
from caal_node.toolsets.edited_file import change_text, read_text
from caal_node.toolsets.lists.markdown_list import new_list
from mcp_bridge.core.files import no_folder

T = TypeVar("T")

FILE_MAX_BYTES: Final = 262_144
"""Bytes of one list: 2,000 things with a note each."""
LISTS_MAX: Final = 100
"""Files of the folder that are taken for lists."""
NAME_CHARS_MAX: Final = 40
"""Characters of a new list's name; what is longer is no name."""
ALIKE: Final = 0.8
"""How like two names have to be for one to be a mishearing of the other: "chopping" is."""
BUYING: Final = frozenset({"shopping", "grocery", "groceries", "food", "supermarket", "buy"})
"""Names of the list of what is to be bought, of which a household has one."""
_DOING: Final = frozenset({"todo", "do", "task", "tasks", "chore", "chores"})
_LEFT_OUT: Final = frozenset({"my", "our", "the", "a", "list", "lists", "to"})


@dataclass(frozen=True, slots=True)
class ListFile:
    """One list: what it is called, and its file, which may not exist yet."""

    name: str
    path: Path

    @property
    def is_to_buy(self) -> bool:
        return bool(BUYING.intersection(words(self.name)))


class ListFolder:
    """The lists of a household. Its methods block, so they belong in a thread.

    Raises:
        ToolBroke: from each method, where a file or the folder cannot be read or written; the
            words for the person say which list.
    """

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder

    def lists(self) -> tuple[ListFile, ...]:
        """Return all lists, by name."""
        try:
            if (other := no_folder(self._folder)) is not None:
                raise NotADirectoryError(errno.ENOTDIR, f"{other} is a file and no folder")
            paths = sorted(self._folder.glob("*.md"))
        except OSError as error:
            raise _broken(error, "your lists", "read") from error
        known = [path for path in paths if not path.name.startswith(".") and path.is_file()]
        return tuple(ListFile(_spoken_name(path.stem), path) for path in known[:LISTS_MAX])

    def find(self, said: str) -> ListFile | None:
        """Return the list that is called so, or so in other words, or nearly so."""
        wanted, lists = _compared(said), self.lists()
        if not wanted:
            return None
        exact = [each for each in lists if _compared(each.name) == wanted]
        if exact:
            return exact[0]
        near = [
            (SequenceMatcher(None, _kept(said), _kept(each.name)).ratio(), each) for each in lists
        ]
        score, best = max(near, key=lambda pair: pair[0], default=(0.0, None))
        return best if score >= ALIKE else None

    def named(self, said: str) -> ListFile:
        """Return the list that is called so, or a new one of that name.

        Raises:
            ToolBroke: the name has no letters, is too long, or there are LISTS_MAX lists.
        """
        if (found := self.find(said)) is not None:
            return found
        name = "to-do" if _compared(said) == "todo" else _kept(said)
        if not name or len(name) > NAME_CHARS_MAX:
            raise _refused(f"{said[:NAME_CHARS_MAX]!r} is no name for a list.")
        if len(self.lists()) >= LISTS_MAX:
            raise _refused(f"There are {LISTS_MAX} lists already.")
        return ListFile(_spoken_name(name), self._folder / f"{name}.md")

    def text(self, which: ListFile) -> str:
        """Return a list's text, "" where its file is gone."""
        try:
            return read_text(which.path, FILE_MAX_BYTES) or ""
        except (OSError, ValueError) as error:
            raise _broken(error, f"the {which.name} list", "read") from error

    def change(self, which: ListFile, edit: Callable[[str], tuple[str, T]]) -> T:
        """Change a list by `edit`, which gets its text, and return what it has told.

        A list that is not there is begun, and stays away where nothing comes onto it.
        """

        def edit_text(before: str | None) -> tuple[str | None, T]:
            begun = before or new_list(which.name.capitalize())
            text, told = edit(begun)
            return (None if text == begun else text), told

        try:
            return change_text(which.path, edit_text, FILE_MAX_BYTES)
        except (OSError, ValueError) as error:
            raise _broken(error, f"the {which.name} list", "change") from error


def _spoken_name(stem_: str) -> str:
    name = re.sub(r"[_\s]+", " ", stem_).strip().lower()
    return re.sub(r"(?<=\w) list$", "", name) or name


def _compared(name: str) -> str:
    """Return a name by which two are the same list: "groceries" and "my shopping list" are."""
    kept = _kept(name).split()
    if BUYING.intersection(kept):
        return "shopping"
    if len(kept) == 1 and kept[0] in _DOING:
        return "todo"
    return " ".join(map(stem, kept))


def _kept(name: str) -> str:
    found = words(name)
    return " ".join([word for word in found if word not in _LEFT_OUT] or found)


def _broken(error: Exception, what: str, way: str) -> ToolBroke:
    said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    failure = ToolBroke(f"{what} could not be {'read' if way == 'read' else 'changed'}: {said}.")
    failure.words = f"I can't {way} {what} right now."
    return failure


def _refused(why: str) -> ToolBroke:
    failure = ToolBroke(why)
    failure.words = why
    return failure
