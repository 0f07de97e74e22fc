"""A streamed text in clauses, so that each can be judged before it is heard.

A clause ends with its sentence, its line, a semicolon, a colon or a dash, or before a comma that
joins another clause to it ("..., but the door is open"). Nothing is added, lost or changed: the
clauses of a text, joined, are that text, and they are the same however it was cut into pieces.
"""

from __future__ import annotations

import re
from typing import Final

CLAUSE_CHARS: Final = 400
"""Characters of one clause, some 25 seconds of speech: a longer one is cut there, as nobody waits
longer for a reply to begin."""
_JOINERS: Final = ("and", "but", "so", "then", "while", "although", "though", "however")
_AHEAD_CHARS: Final = 16
"""Characters behind a comma by which the word that follows it is known."""
_END: Final = re.compile(
    r"[.!?…;:][\"')\]”’*_]*\s|\n|\s[-–—]\s|—"
    rf"|,\s(?=(?:{'|'.join(_JOINERS)})\s)"
)


class ClauseSplitter:
    """Takes a text in pieces of any size, and gives each clause once its end is known."""

    def __init__(self) -> None:
        self._held = ""

    @property
    def held(self) -> str:
        """The beginning of a clause whose end is not known yet."""
        return self._held

    def feed(self, text: str) -> list[str]:
        """Return the clauses that `text` ends, each with the white space behind it."""
        self._held += text
        clauses: list[str] = []
        at = 0
        while (end := self._end(at)) is not None:
            clauses.append(self._held[at:end])
            at = end
        self._held = self._held[at:]
        return clauses

    def finish(self) -> str:
        """Return what is left, which may be nothing, and begin anew."""
        rest, self._held = self._held, ""
        return rest

    def _end(self, at: int) -> int | None:
        """Return where the clause that begins at `at` ends; None if that is not known yet."""
        most = at + CLAUSE_CHARS
        end = _END.search(self._held, at, most + _AHEAD_CHARS)
        if end is not None and end.end() <= most:
            return end.end()
        if len(self._held) < most + _AHEAD_CHARS:
            return None
        space = self._held.rfind(" ", at, most)
        return space + 1 if space > at else most
