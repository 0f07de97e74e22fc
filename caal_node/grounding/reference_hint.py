"""A request with what it refers to in brackets: "book the second one (Il Forno)", and with what it
asks of that: "what does the second one (Il Forno, price_eur: 29) cost".

Small models take a name that stands where they need it, and pass over a line that explains it:
tests/bench/references.py compares them. The names are a tool's words, so each is short, on one
line, and cannot close its bracket.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from caal_node.grounding.references import Reference

NAMES_MAX: Final = 12
"""Names that one reference is told by. A longer list is read in the result itself."""
_BRACKETS: Final = re.compile(r"[()\[\]{}<>\"\\]+")


def hinted(request: str, references: Sequence[Reference]) -> str:
    """Return `request` with the names of what is meant behind each reference."""
    said, at = "", 0
    for reference in references:
        begin = request.find(reference.words, max(at, reference.begin))
        names = [_plain(name) for name in reference.names]
        if begin < 0 or not 0 < len(names) <= NAMES_MAX or not all(names):
            continue
        behind = begin + len(reference.words)
        facts = (f"{_plain(key)}: {_plain(value)}" for key, value in reference.facts)
        said += f"{request[at:behind]} ({', '.join((*names, *facts))})"
        at = behind
    return said + request[at:]


def answer_in(references: Sequence[Reference]) -> str:
    """Return what a question asks for, "Il Forno, price_eur: 29"; "" where it is open."""
    return "; ".join(
        ", ".join([*map(_plain, each.names), *(f"{_plain(k)}: {_plain(v)}" for k, v in each.facts)])
        for each in references
        if each.facts
    )


def _plain(text: str) -> str:
    return _BRACKETS.sub(" ", text).strip()
