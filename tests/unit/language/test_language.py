"""Labelled sentences, what a text is to a linear model, and what one learns from few sentences."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import cast, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.language.judge import BUCKETS, READ_CHARS, Judge, Task, judge_of, ngrams
from tests.labelled_sentences import HARDER, LABELS, Sentence, sentences
from tests.train import judged, source_of, train

TASKS = cast("tuple[Task, ...]", get_args(Task))
FEW = [
    Sentence(label, text, "en", "few")
    for label, texts in {
        "answers": ("It is sunny in Oslo.", "Your train leaves at six.", "The lamp is on."),
        "hedges": ("I cannot browse the web.", "I have no live data.", "I cannot look online."),
        "no_access": ("I cannot see your mails.", "I cannot read your files.", "I see no home."),
        "nothing": ("There are no timers.", "No mails were found.", "There are no notes."),
        "unsure": ("That depends.", "I am not sure.", "Please check your lease."),
    }.items()
    for text in texts
]


@given(st.text(max_size=600))
def test_the_numbers_of_a_text_are_in_order_and_in_bounds(text: str) -> None:
    found = ngrams(text)
    assert len(found) > 0
    assert (np.diff(found) > 0).all()
    assert found[0] >= 0
    assert found[-1] < BUCKETS


def test_capitals_apostrophes_and_figures_count_for_nothing() -> None:
    assert ngrams("I’ve set 8 Alarms.").tolist() == ngrams("i've set 12 alarms.").tolist()
    assert ngrams("I've set it.").tolist() != ngrams("Have I set it?").tolist()


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    begin = "lamp " * (READ_CHARS // 5)
    assert ngrams(begin + "door " * 100_000).tolist() == ngrams(begin).tolist()


@given(st.text(max_size=80))
def test_odds_of_any_text_are_shares_of_one(text: str) -> None:
    odds = FROM_FEW.odds(text)
    assert list(odds) == list(LABELS["answer"])
    assert sum(odds.values()) == pytest.approx(1)
    assert min(odds.values()) >= 0


def test_what_was_learned_is_known_again_and_carries_over() -> None:
    assert [label for _, label, _ in judged(FROM_FEW, FEW)] == [each.label for each in FEW]
    odds = FROM_FEW.odds("I cannot browse live data on the web.")
    assert max(odds, key=lambda label: odds[label]) == "hedges"


def test_the_same_sentences_give_the_same_file(tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    FROM_FEW.save(one)
    train("answer", FEW).save(other)
    assert one.read_bytes() == other.read_bytes()
    assert Judge.load(one).odds("There are no lamps.") == FROM_FEW.odds("There are no lamps.")


@pytest.mark.parametrize("task", TASKS)
def test_every_sentence_has_a_label_and_stands_there_once(task: Task) -> None:
    found = sentences(task)
    assert {each.label for each in found} == set(LABELS[task])
    assert {each.language for each in found} == {"en", "de"}
    texts = Counter((each.language, each.text.casefold()) for each in found)
    assert [text for text, count in texts.items() if count > 1] == []


def test_a_line_without_a_label_of_its_task_is_told_with_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "answer" / "en"
    folder.mkdir(parents=True)
    (folder / "one.txt").write_text("# Topic: none.\nanswers: Six.\ndone: Six.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"one\.txt:3: write `label: sentence`"):
        sentences("answer", folder=tmp_path)


@pytest.mark.parametrize("task", TASKS)
def test_the_package_has_learned_from_the_sentences_as_they_are(task: Task) -> None:
    """Run `python -m tests.train TASK --keep` where this fails."""
    known = sentences(task)
    judge = judge_of(task)
    assert judge.source == source_of(known)
    right = sum(label == sentence.label for sentence, label, _ in judged(judge, known))
    assert right / len(known) > 0.97


@pytest.mark.parametrize(
    ("task", "harder", "least"),
    [
        *(("clause", False, 0.85), ("request", False, 0.84), ("answer", False, 0.87)),
        *(("clause", True, 0.83), ("request", True, 0.77)),
    ],
)
def test_what_nobody_has_read_is_judged_about_as_well_as_the_docs_say(
    task: Task, harder: bool, least: float
) -> None:
    asked = sentences(task, held_out=True)
    held_out = [each for each in asked if (each.topic in HARDER) == harder]
    right = sum(label == sentence.label for sentence, label, _ in judged(judge_of(task), held_out))
    assert right / len(held_out) >= least


FROM_FEW = train("answer", FEW)
