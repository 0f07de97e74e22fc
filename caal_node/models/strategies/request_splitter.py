"""Whether one request holds several wishes: "dim the lights and play some jazz".

Small models answer the first and forget the second. A request counts as two where a word that
joins stands between two parts which different tools fit; "tea and sugar" fits one tool, or none.
"""

from __future__ import annotations

import re
from typing import Final

from caal_node.models.strategies.bm25 import ToolRelevance
from caal_node.models.strategies.word_lists import JOINERS, words

WISHES_MAX: Final = 3
PART_WORDS: Final = 2
"""A part shorter than that is a list's last item, not a wish."""
_WORDS: Final = "|".join(sorted(map(re.escape, JOINERS), key=len, reverse=True))
_JOINS: Final = re.compile(rf"(?:\s*[,;.]\s*|\s+)(?:{_WORDS})\s+|\s*[;.!?]\s+", re.IGNORECASE)


def wishes(request: str, fitting: ToolRelevance, *, least: float) -> tuple[str, ...]:
    """The parts of `request` that are wishes of their own; one part where it is one wish.

    `least` is the score from which a tool fits a part at all.
    """
    parts: list[str] = []
    tools: list[str] = []
    for part in _JOINS.split(request.strip()):
        scores = fitting.scores(part)
        tool = max(scores, key=lambda name: scores[name], default="")
        stands = len(words(part)) >= PART_WORDS and tool and scores[tool] >= least
        if stands and tool not in tools:
            parts.append(part)
            tools.append(tool)
        elif parts:
            parts[-1] = f"{parts[-1]} {part}"
    return tuple(parts[:WISHES_MAX]) if len(parts) > 1 else (request,)
