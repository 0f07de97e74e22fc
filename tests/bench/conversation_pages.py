"""The worst of the played conversations, without the checks of replies and with them, as a page.

Run: `python -m tests.bench.conversation_pages --record FOLDER --out docs/transcripts.md MODEL ...`,
once `tests.bench.conversations` has played them in FOLDER with `off` and `on`. A conversation is as
bad as its turns are without the checks: what was made up counts three, a call that nobody needed
two, and one that is missing one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.conversations import COLUMNS, table_row

WORST: Final = 20
"""Conversations that are shown."""
SHOWN_CHARS: Final = 160
"""Characters of what was said that a cell shows."""
FIRST_LINES: Final = """# The worst transcripts

Conversations with real small models, as `python -m tests.bench.conversations` has played them: of \
{count} that were played without the checks of replies and of calls, the {shown} worst, and the \
same with all of them at their defaults ([small models](small-models.md)). This page is made by \
`python -m tests.bench.conversation_pages`, and nothing in it is chosen by hand. A call is \
`tool(arguments)`, with how it ended where that is not well. In bold is what the script of the \
tools knows to be wrong: a **claim** that no call covers, a **fact** that is in no result, a \
**call** that nobody needs or that is wrong, and one that is **missing**. Played both ways: {both} \
of {count}.

## All that were played
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """One conversation of one model, played without the checks and with them."""

    model: str
    name: str
    before: Sequence[Mapping[str, Any]]
    after: Sequence[Mapping[str, Any]] = ()
    """It is empty where the conversation was not played with them."""

    @property
    def badness(self) -> int:
        return sum(turn["badness"] for turn in self.before)


def pairs(folder: Path, model: str) -> list[Pair]:
    """Read the conversations that were played without the checks, and the same with them."""
    after = {row["name"]: row["turns"] for row in _played(folder, model, "on")}
    return [
        Pair(model, row["name"], row["turns"], after.get(row["name"], ()))
        for row in _played(folder, model, "off")
    ]


def page(folder: Path, models: Sequence[str]) -> str:
    """Write the page."""
    every = [pair for model in models for pair in pairs(folder, model)]
    worst = sorted(every, key=lambda pair: -pair.badness)[:WORST]
    both = sum(bool(pair.after) for pair in every)
    first = FIRST_LINES.format(count=len(every), shown=len(worst), both=both)
    lines = [first, *_table(folder, models)]
    for pair in worst:
        lines += ["", f"## {pair.name[:1].upper()}{pair.name[1:]} ({pair.model})", ""]
        lines += ["| A person says | Before | After |", "| --- | --- | --- |"]
        for at, before in enumerate(pair.before):
            after = _told(pair.after[at]) if pair.after else "not played"
            lines.append(f"| {_cell(before['say'])} | {_told(before)} | {after} |")
    return "\n".join(lines) + "\n"


def _table(folder: Path, models: Sequence[str]) -> Iterator[str]:
    columns = ("model", *COLUMNS[:-1])
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---' for _ in columns)} |"
    for model in models:
        for checks in ("off", "on"):
            if not (played := _played(folder, model, checks)):
                continue
            cells = table_row(checks, played)[:-1]
            written = (f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells)
            yield f"| {model} | {' | '.join(written)} |"


def _told(turn: Mapping[str, Any]) -> str:
    judged = turn["score"]
    found = [
        *(["claim"] if judged["claims"] else []),
        *(["fact"] if judged["wrong"] else []),
        *(["call"] if judged["needless"] else []),
        *(["missing"] if not judged["right"] and not judged["needless"] else []),
    ]
    marks = "".join(f" **{mark}**" for mark in found)
    calls = "".join(f"`{_call(call)}` " for call in turn["calls"])
    return f"{calls}{_cell(turn['spoken'])}{marks}"


def _call(call: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name}={value}" for name, value in call["arguments"].items())
    ended = "" if call["outcome"] == "ok" else f": {call['outcome']}"
    return _cell(f"{call['tool']}({given}){ended}").replace("`", "'")


def _cell(text: str) -> str:
    said = " ".join(text.split()).replace("|", "/").replace("<", "‹")
    return said if len(said) <= SHOWN_CHARS else f"{said[: SHOWN_CHARS - 1]}…"


def _played(folder: Path, model: str, checks: str) -> Sequence[Mapping[str, Any]]:
    path = folder / f"{model}-{checks}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--out", type=Path, metavar="FILE", required=True)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    given = parser.parse_args()
    given.out.write_text(page(given.record, given.models), encoding="utf-8")


if __name__ == "__main__":
    main()
