"""Writes a new note as a Markdown file, and never over another one."""

from __future__ import annotations

import re
from itertools import count, islice
from pathlib import Path
from typing import Final

from caal_node.toolsets.edited_file import new_text

MAX_TITLE_CHARS: Final = 60
TITLE_WORDS: Final = 6
"""Words of a note that become its title where nobody has said one."""
MAX_SAME: Final = 100
"""Notes of one title. Their names get numbers."""
_NOT_IN_NAMES: Final = re.compile(r"[^\w ,'()+&-]+")
_SPACE: Final = re.compile(r"\s+")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
"""Names that are devices on Windows."""


def title_of(title: str, text: str) -> str:
    """Return a note's title, as a file may be called: what was said, else its first words."""
    said = title if title.strip() else " ".join(text.split()[:TITLE_WORDS])
    plain = _SPACE.sub(" ", _NOT_IN_NAMES.sub(" ", said)).strip(" .,'")[:MAX_TITLE_CHARS].strip()
    if not plain or _RESERVED.fullmatch(plain):
        return f"Note {plain}".strip()
    return plain[0].upper() + plain[1:]


def write_note(folder: Path, title: str, text: str) -> Path:
    """Write a note into `folder`, which is made if it is missing, and return its path.

    Raises:
        OSError: It cannot be written.
    """
    names = (f"{title}.md" if number == 1 else f"{title} {number}.md" for number in count(1))
    for name in islice(names, MAX_SAME):
        try:
            new_text(folder / name, f"# {title}\n\n{text.strip()}\n", private=True)
        except FileExistsError:
            continue
        return folder / name
    raise FileExistsError(f"there are {MAX_SAME} notes of this title")
