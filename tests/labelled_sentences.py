"""The labelled sentences of tests/data/sentences; its README tells of labels and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from caal_node.language.judge import Task

FOLDER: Final = Path(__file__).parent / "data" / "sentences"
HELD_OUT: Final = "held_out"
LABELS: Final[dict[Task, tuple[str, ...]]] = {
    "clause": ("done", "looked", "underway", "promise", "state", "offer", "refusal", "other"),
    "request": (
        *("command", "lookup", "talk", "knowledge", "chat"),
        *("aside", "yes", "no", "correction", "cancel"),
    ),
    "answer": ("answers", "hedges", "no_access", "nothing", "unsure"),
    "addressee": ("agent", "chat", "others"),
    "second_thought": ("on", "back", "edit"),
}
GO_ON: Final = ("command", "lookup", "talk", "knowledge", "chat")
"""Labels of requests that take nothing back."""
HARDER: Final = frozenset(
    {
        *("deck_ward_and_stage", "hens_kids_and_guests"),
        *("verleih_kueche_buehne", "station_stall_schule_wohnung"),
        *("farmhouse_and_yard", "night_shift_and_teenager"),
        *("werkstatt_und_auto", "chor_und_grosse_kueche"),
    }
)
"""Held-out files whose writers were asked for what a linear model confuses."""
OF_REQUESTS: Final = {"aside": "others", "chat": "chat"}
"""Whom a request is for, by its label; else the agent."""


@dataclass(frozen=True, slots=True)
class Sentence:
    label: str
    text: str
    language: str
    topic: str
    """The name of its file."""


def sentences(task: Task, *, held_out: bool = False, folder: Path = FOLDER) -> Sequence[Sentence]:
    """Return the sentences of a task in all languages, file by file.

    Those of requests also say whom they are for.

    Raises:
        ValueError: a line has no label of the task; the message names file and line.
    """
    pattern = f"*/{HELD_OUT}/*.txt" if held_out else "*/*.txt"
    found = list[Sentence]()
    for file in sorted((folder / task).glob(pattern)):
        language = file.relative_to(folder / task).parts[0]
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            label, _, text = line.partition(": ")
            if label not in LABELS[task] or not text.strip():
                raise ValueError(
                    f"{file}:{number}: write `label: sentence`, with a label of {task}"
                )
            found.append(Sentence(label, text.strip(), language, file.stem))
    if task == "addressee":
        asked = sentences("request", held_out=held_out, folder=folder)
        found += (replace(each, label=OF_REQUESTS.get(each.label, "agent")) for each in asked)
    if task == "second_thought":
        known = {(each.language, each.text.casefold()) for each in found}
        asked = sentences("request", held_out=held_out, folder=folder)
        found += (
            replace(each, label="on")
            for each in asked
            if each.label in GO_ON and (each.language, each.text.casefold()) not in known
        )
    return found
