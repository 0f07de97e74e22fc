"""The files of people's pages: one for each person, which they may read and edit meanwhile.

All calls block, so they belong in a thread.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from caal_node.toolsets.edited_file import change_text, read_text
from caal_node.toolsets.memory.fact_page import FactPage

T = TypeVar("T")

MAX_BYTES: Final = 256 << 10
"""Bytes of a page: a thousand facts."""
_PLAIN_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_-]+")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)")
"""Names that are devices on Windows."""


class FactFiles:
    """The pages in one folder."""

    def __init__(self, folder: Path, pause: Callable[[float], None] = time.sleep) -> None:
        self.folder: Final = folder
        self._pause: Final = pause

    def path(self, person: str) -> Path:
        """Return the file of a person. No two people have the same one."""
        return self.folder / f"{file_name(person)}.md"

    def read(self, person: str) -> FactPage:
        """Return a person's page; an empty one where there is none yet.

        Raises:
            OSError: It cannot be read.
            ValueError: It is too large, or is not UTF-8.
        """
        return FactPage(read_text(self.path(person), MAX_BYTES, pause=self._pause) or "")

    def change(self, person: str, change: Callable[[FactPage], tuple[FactPage, T]]) -> T:
        """Change a person's page, and return what `change` says beside the new page.

        `change` is called again where the file has changed meanwhile, and may raise.

        Raises:
            OSError: It cannot be read or written, or somebody else is writing it all the time.
            ValueError: It is too large, or is not UTF-8.
        """

        def edit(before: str | None) -> tuple[str | None, T]:
            begun = before or _beginning(person)
            page, said = change(FactPage(begun))
            return (None if page.text == begun else page.text), said

        path = self.path(person)
        return change_text(path, edit, MAX_BYTES, private=True, pause=self._pause)


def file_name(person: str) -> str:
    """Return the name of a person's file, without its ending.

    A plain name stays as it is. Any other gets a digest of all of it behind a "~", which no plain
    name holds, so that nobody can choose a name whose file is another's.
    """
    if _PLAIN_NAME.fullmatch(person) and not _RESERVED.fullmatch(person):
        return person
    digest = hashlib.sha256(person.encode(errors="surrogatepass")).hexdigest()[:16]
    plain = _NOT_PLAIN.sub("-", person.casefold())[:24].strip("-")
    return f"{plain or 'person'}~{digest}"


def _beginning(person: str) -> str:
    name = " ".join(person.split()) or "this person"
    return (
        f"# What is remembered of {name}\n\n"
        'Every line that begins with "- " is a fact. Change, add and delete as you like.\n\n'
    )
