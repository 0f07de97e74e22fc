"""An MCP server with five hundred tools: `python -m tests.stand_ins.many_tools [NAME ...]`.

The first fifty are those of tests/stand_ins/fifty_tools.py. The others are made of
tests/data/many_tools.txt: every subject there (a dishwasher, an invoice, a run) has the operations
of its kind, with its own words, parameters and choices. So there are many that are alike, as in a
real home with sixteen machines, and none is a numbered copy. Every second subject is described as
Python servers do it. With names as its arguments it has those tools only.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from mcp_types import Tool

from tests.stand_ins import fifty_tools

TABLE: Final = Path(__file__).parents[1] / "data" / "many_tools.txt"


@cache
def tools() -> tuple[Tool, ...]:
    """All five hundred, in a fixed order, in which subjects of every kind follow each other."""
    kinds = [list(_of_kind(part)) for part in TABLE.read_text("utf-8").split("\n[")[1:]]
    # By turns, so that the first hundred already have something of each kind.
    longest = max(map(len, kinds))
    subjects = [kind[at] for at in range(longest) for kind in kinds if at < len(kind)]
    return (*fifty_tools.tools(), *(tool for subject in subjects for tool in subject))


def _of_kind(part: str) -> Iterator[list[Tool]]:
    """Yield the tools of each subject of a kind, whose first line ends with its columns."""
    header, *lines = part.strip().splitlines()
    columns = header.partition("] ")[2].split(" | ")
    operations = [line for line in lines if line and not line.startswith("*")]
    subjects = [line.removeprefix("* ") for line in lines if line.startswith("*")]
    for number, subject in enumerate(subjects):
        words = dict(zip(columns, subject.split(" | "), strict=True))
        yield [
            fifty_tools.described(operation.format(**words), as_python=number % 2 == 0)
            for operation in operations
        ]


if __name__ == "__main__":
    asyncio.run(fifty_tools.serve(fifty_tools.chosen(tools(), sys.argv[1:])))
