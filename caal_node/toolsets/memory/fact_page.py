"""A person's page of facts: a Markdown file of which every line "- ..." is a fact.

Pure: text in, text out. A person may write anything else on the page, which stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

MAX_FACT_CHARS: Final = 300
"""Characters of one fact: two or three sentences."""
_FACT: Final = re.compile(r"[ \t]{0,8}[-*+][ \t](?P<text>.*\S)")
_DAY: Final = re.compile(r"[ \t]\((\d{4}-\d\d-\d\d)\)$")
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class KeptFact:
    """One fact of a page."""

    line: int
    """The number of its line, from 0."""
    text: str
    day: str = ""
    """The day on which it was told, such as `2026-11-23`; "" where nobody has written one."""


@dataclass(frozen=True, slots=True)
class FactPage:
    """A page as it stands in its file. Every change gives a new one."""

    text: str = ""

    @property
    def facts(self) -> list[KeptFact]:
        """Its facts, in their order."""
        rows = enumerate(self._lines())
        found = ((at, match["text"].strip()) for at, line in rows if (match := _FACT.match(line)))
        return [_fact(at, text) for at, text in found]

    def added(self, text: str, day: date) -> FactPage:
        """Return the page with one more fact, at its end."""
        new = "\r\n" if "\r\n" in self.text else "\n"
        end = "" if not self.text or self.text.endswith("\n") else new
        return FactPage(f"{self.text}{end}{_line(text, day)}{new}")

    def replaced(self, fact: KeptFact, text: str, day: date) -> FactPage:
        """Return the page with another text in a fact's place."""
        lines = self._lines()
        end = "\r" if lines[fact.line].endswith("\r") else ""
        lines[fact.line] = _line(text, day) + end
        return self._of(lines)

    def without(self, fact: KeptFact) -> FactPage:
        """Return the page without a fact."""
        lines = self._lines()
        del lines[fact.line]
        return self._of(lines)

    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def _of(self, lines: list[str]) -> FactPage:
        return FactPage("\n".join(lines))


def plain_fact(text: str) -> str:
    """Return a fact as it may stand on one line, without a full stop at its end."""
    return _SPACE.sub(" ", text).strip(" .-*+#")


def _fact(line: int, text: str) -> KeptFact:
    day = _DAY.search(text)
    return KeptFact(line, text[: day.start()].rstrip(), day[1]) if day else KeptFact(line, text)


def _line(text: str, day: date) -> str:
    return f"- {plain_fact(text)} ({day.isoformat()})"
