"""What of talk is left alone, and what of requests, by its words alone.

Run: `python -m tests.bench.overheard REQUESTS.txt TALK.txt`, a line of words each, talk in its
order. The sets behind the docs' figures are public ones that are not in the repository.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from caal_node.language.addressee import OVERHEARD, OVERHEARD_IN_TALK, overheard
from caal_node.language.backchannels import is_backchannel
from tests.bench.table import print_table

IN_A_ROW: Final = (1, 2, 3)
"""Lines that one turn may have: television seldom pauses behind each."""


def row(name: str, said: Sequence[str]) -> list[str]:
    scores = [overheard(words) for words in said]
    alone = [[score >= limit for score in scores] for limit in (OVERHEARD, OVERHEARD_IN_TALK)]
    shares = [*alone, [is_backchannel(words) for words in said]]
    return [name, str(len(said)), *(f"{100 * sum(hits) / len(said):.1f} %" for hits in shares)]


def main() -> None:
    requests, talk = (Path(name).read_text(encoding="utf-8").splitlines() for name in sys.argv[1:3])
    rows = [row("requests", requests)]
    for count in IN_A_ROW:
        turns = [" ".join(talk[at : at + count]) for at in range(0, len(talk), count)]
        rows.append(row(f"talk, {count} in a row", turns))
    columns = ["words", "turns", "left alone", "left alone behind the agent's", "backchannels"]
    print_table("what is left alone", columns, rows)


if __name__ == "__main__":
    main()
