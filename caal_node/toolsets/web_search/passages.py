"""Chooses what a model reads of a page: the paragraphs that share words with a question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from caal_node.policy.heard_words import COMMON, stems
from caal_node.toolsets.web_search.results import cut_text

PARAGRAPHS_MAX: Final = 400
"""Paragraphs of a page that are compared; more is an index and no text."""
PARAGRAPH_CHARS: Final = 600
"""Characters of one paragraph that are shown, so that one does not hide all others."""
CUT_CHARS: Final = 80
"""Characters below which the beginning of a further paragraph says nothing."""
_HEAD_SCORE: Final = 0.5
"""What the first paragraph is worth by its place: it says what the page is about, and a paragraph
with a word of the question is worth more."""


def passages(text: str, question: str, limit: int) -> str:
    """Return the parts of `text` that fit a question best, in the page's order.

    Args:
        text: A page's text, a paragraph a line.
        question: What is to be answered; "" takes the page's beginning.
        limit: Characters of the whole at most.
    """
    rows = [" ".join(row.split()) for row in text.splitlines()]
    rows = [row for row in rows if row][:PARAGRAPHS_MAX]
    asked = stems(question) - COMMON
    ranked = sorted(range(len(rows)), key=lambda at: (-_score(rows[at], asked, at), at))
    return "\n".join(rows_within(rows, ranked, limit))


def rows_within(rows: list[str], ranked: Iterable[int], limit: int) -> list[str]:
    """Return the best of `rows`, cut, in their own order, that together fit into `limit`."""
    chosen: dict[int, str] = {}
    left = limit
    for at in ranked:
        row = cut_text(rows[at], min(PARAGRAPH_CHARS, left)) if left > 0 else ""
        if not row or (chosen and row != rows[at] and len(row) < CUT_CHARS):
            break
        chosen[at] = row
        left -= len(row) + 1  # and the end of its line
    return [chosen[at] for at in sorted(chosen)]


def _score(row: str, asked: frozenset[str], at: int) -> float:
    """Return how many words of the question a paragraph has; earlier ones win where that is equal.

    A heading, of a few words, is little by itself.
    """
    found = len(asked & stems(row))
    return found * (1.0 if len(row) > 60 else 0.5) + (_HEAD_SCORE if at == 0 else 0.0)
