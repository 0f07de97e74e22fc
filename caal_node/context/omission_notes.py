"""The notes that stand where something is not shown, and how to read them again.

A cut value may be cut once more (a kept result, shown in less room). Reading the note of the
first cut keeps the true total: `… 12 of 40 shown` becomes `… 5 of 40 shown`, not `… 5 of 13`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

KEY: Final = "…"
"""The key of an object's note."""

_ITEMS: Final = re.compile(r"… \d+ of (at least )?(\d+) shown")
_KEYS: Final = re.compile(r"\d+ of (at least )?(\d+) keys shown")
_TEXT: Final = re.compile(r"… \(\d+ of (at least )?(\d+) characters shown\)\Z")
_NOTE_CHARS: Final = 80
"""Characters of the longest note, generously."""


@dataclass(frozen=True, slots=True)
class OmittedTotal:
    """How much there is in all. `open`: there may be more, the rest was never read."""

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
    """The total that a note at the list's end tells; None where the list was never cut."""
    return _read(_ITEMS, values[-1]) if values else None


def noted_keys(members: Mapping[Any, Any]) -> OmittedTotal | None:
    """The total that an object's note tells; None where the object was never cut."""
    return _read(_KEYS, members.get(KEY))


def split_text(text: str) -> tuple[int, OmittedTotal]:
    """Characters in front of the note, and how many there were before an earlier cut."""
    tail = text[-_NOTE_CHARS:]
    if match := _TEXT.search(tail):
        return len(text) - len(tail) + match.start(), OmittedTotal(
            int(match[2]), match[1] is not None
        )
    return len(text), OmittedTotal(len(text))


def mark_unread(value: object) -> None:
    """Put notes on the right edge of a value whose text was read only to a point.

    What is on that edge may go on in the part that was not read; everything else is whole.
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
