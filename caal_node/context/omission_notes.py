"""Writes and reads the notes that replace the omitted part of a value.

A shortened value may be shortened once more, as when a kept result has less room later. The first
note is then read to keep the true total: `… 12 of 40 shown` becomes `… 5 of 40 shown`, not
`… 5 of 13`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

KEY: Final = "…"
"""The key under which an object has its note."""

_ITEMS: Final = re.compile(r"… \d+ of (at least )?(\d+) shown")
_KEYS: Final = re.compile(r"\d+ of (at least )?(\d+) keys shown")
_TEXT: Final = re.compile(r"… \(\d+ of (at least )?(\d+) characters shown\)\Z")
_NOTE_CHARS: Final = 80
"""No note has more characters."""


@dataclass(frozen=True, slots=True)
class OmittedTotal:
    """How much there is in all, or at least, where `open` says that the rest was never read."""

    count: int
    open: bool = False

    def __str__(self) -> str:
        return f"at least {self.count}" if self.open else str(self.count)


def items_note(shown: int, total: OmittedTotal) -> str:
    return f"… {shown} of {total} shown"


def keys_note(shown: int, total: OmittedTotal) -> str:
    return f"{shown} of {total} keys shown"


def text_note(shown: int, total: OmittedTotal) -> str:
    return f"… ({shown} of {total} characters shown)"


def noted_items(values: Sequence[Any]) -> OmittedTotal | None:
    """Read the total from the note at a list's end; a list that was never cut gives None."""
    return _read(_ITEMS, values[-1]) if values else None


def noted_keys(members: Mapping[Any, Any]) -> OmittedTotal | None:
    """Read the total from an object's note; an object that was never cut gives None."""
    return _read(_KEYS, members.get(KEY))


def split_text(text: str) -> tuple[int, OmittedTotal]:
    """Return how many characters are in front of the note, and how many there were originally."""
    tail = text[-_NOTE_CHARS:]
    if match := _TEXT.search(tail):
        return len(text) - len(tail) + match.start(), OmittedTotal(
            int(match[2]), match[1] is not None
        )
    return len(text), OmittedTotal(len(text))


def mark_unread(value: object) -> None:
    """Add notes to the last members of a value whose text was read only in part.

    The last list or object of each level may go on in the unread part; all others are whole.
    """
    while isinstance(value, (list, dict)):
        total = OmittedTotal(len(cast(list[Any], value)), open=True)
        if isinstance(value, list):
            values = cast(list[Any], value)
            last = values[-1] if values else None
            values.append(items_note(total.count, total))
        else:
            members = cast(dict[str, Any], value)
            last = next(reversed(members.values()), None)
            members[KEY] = keys_note(total.count, total)
        value = last


def _read(pattern: re.Pattern[str], note: object) -> OmittedTotal | None:
    if not isinstance(note, str) or len(note) > _NOTE_CHARS:
        return None
    match = pattern.fullmatch(note)
    return OmittedTotal(int(match[2]), match[1] is not None) if match else None
