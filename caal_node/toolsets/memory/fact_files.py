"""The files of people's pages: one for each person, which they may read and edit meanwhile.

All calls block, so they belong in a thread. A change reads the file anew, under a lock that other
processes of this package respect; an editor does not know it, so the file is read once more before
it is written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from filelock import FileLock, Timeout

from caal_node.toolsets.memory.fact_page import FactPage
from mcp_bridge.core.files import make_private_folder, read_capped, replace_file

T = TypeVar("T")

MAX_BYTES: Final = 256 << 10
"""Bytes of a page: a thousand facts."""
LOCK_S: Final = 5.0
"""Seconds for which another process's change is waited for; one takes milliseconds."""
ATTEMPTS: Final = 3
"""Times that a change is made anew because the file changed under it."""
_PLAIN_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_-]+")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)")
"""Names that are devices on Windows."""


class FactFiles:
    """The pages in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder

    def path(self, person: str) -> Path:
        """Return the file of a person. No two people have the same one."""
        return self.folder / f"{file_name(person)}.md"

    def read(self, person: str) -> FactPage:
        """Return a person's page; an empty one where there is none yet.

        Raises:
            OSError: It cannot be read, or is too large.
        """
        return FactPage(_read(self.path(person)))

    def change(self, person: str, change: Callable[[FactPage], tuple[FactPage, T]]) -> T:
        """Change a person's page, and return what `change` says beside the new page.

        `change` is called again where the file has changed meanwhile, and may raise.

        Raises:
            OSError: It cannot be read or written, or somebody else is writing it all the time.
        """
        path = self.path(person)
        make_private_folder(self.folder)
        try:
            with FileLock(path.with_suffix(".lock"), timeout=LOCK_S, mode=0o600):
                for _ in range(ATTEMPTS):
                    before = _read(path)
                    page, said = change(FactPage(before or _beginning(person)))
                    data = page.text.encode(errors="replace")
                    if len(data) > MAX_BYTES:
                        raise OSError(f"{path.name} has more than {MAX_BYTES >> 10} kB")
                    if _read(path) == before:
                        if page.text != before:
                            replace_file(path, data)
                        return said
        except Timeout as error:
            raise OSError(f"{path.name} is being changed by another process") from error
        raise OSError(f"{path.name} changes all the time")


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


def _read(path: Path) -> str:
    try:
        data = read_capped(path, MAX_BYTES)
    except FileNotFoundError:
        return ""
    except ValueError as error:
        raise OSError(f"{path.name}: {error}") from error
    return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")


def _beginning(person: str) -> str:
    name = " ".join(person.split()) or "this person"
    return (
        f"# What is remembered of {name}\n\n"
        'Every line that begins with "- " is a fact. Change, add and delete as you like.\n\n'
    )
