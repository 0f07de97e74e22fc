"""Trains a judge of sentences: `python -m tests.train TASK`, with TASK clause, request, answer,
addressee or second_thought.

It reads tests/data/sentences/TASK, and says how well the sentences of each file are judged by what
was learned from all others. `--keep` writes what was learned from all of them where the package
reads it; `--held-out` judges the sentences that are held out by it, which nobody reads.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, cast

import numpy as np

from caal_node.language.judge import BUCKETS, Judge, Task, ngrams, weights_file
from tests.labelled_sentences import LABELS, Sentence, sentences

SLACK: Final = 20.0
"""How much less the size of weights counts than what is judged wrongly; see `C` of scikit-learn."""
LEAST: Final = 2
"""Sentences that an n-gram has to stand in."""
STEPS: Final = 127
"""Steps between a weight of nothing and the largest."""

BALANCED: Final[Mapping[Task, str | None]] = {
    "clause": "balanced",
    "answer": "balanced",
    "request": None,
}
"""Whether each label counts as much as another, or by how many sentences it has: people order and
ask more often than they cancel."""


def train(task: Task, known: Sequence[Sentence]) -> Judge:
    """Return a judge that has learned from the sentences."""
    # scikit-learn and SciPy have no types of their own.
    from scipy.sparse import csr_matrix  # pyright: ignore[reportMissingTypeStubs]
    from sklearn.linear_model import LogisticRegression  # pyright: ignore

    rows = [ngrams(sentence.text) for sentence in known]
    counts = Counter(int(number) for row in rows for number in row)
    kept = np.array([counts[number] >= LEAST for number in range(BUCKETS)])
    ends = np.cumsum([0, *(len(row) for row in rows)])
    values = np.concatenate([kept[row] / np.sqrt(len(row)) for row in rows])
    matrix = cast("Any", csr_matrix)((values, np.concatenate(rows), ends), (len(rows), BUCKETS))
    learner = cast("Any", LogisticRegression)(
        C=SLACK, max_iter=2_000, class_weight=BALANCED.get(task)
    )
    learner.fit(matrix, [sentence.label for sentence in known])
    labels = LABELS[task]
    order = [list(learner.classes_).index(label) for label in labels]
    weights = np.asarray(learner.coef_[order].T, dtype=np.float64)
    largest = np.abs(weights).max(axis=0)
    whole = np.round(weights / largest * STEPS).astype(np.int8)
    scale = (largest / STEPS).astype(np.float32)
    bias = learner.intercept_[order].astype(np.float32)
    return Judge(labels, whole, scale, bias, source_of(known))


def source_of(known: Sequence[Sentence]) -> str:
    """Return a checksum of sentences and of how they are read and learned."""
    read = [[*map(int, ngrams(sentence.text))] for sentence in known]
    labels = [sentence.label for sentence in known]
    return sha256(
        repr((read, labels, BUCKETS, SLACK, LEAST, STEPS, BALANCED)).encode()
    ).hexdigest()[:16]


def judged(judge: Judge, asked: Sequence[Sentence]) -> list[tuple[Sentence, str, float]]:
    """Return each sentence with the likeliest label and its odds."""
    found = list[tuple[Sentence, str, float]]()
    for sentence in asked:
        odds = judge.odds(sentence.text)
        label = max(odds, key=lambda label: odds[label])
        found.append((sentence, label, odds[label]))
    return found


def report(task: Task, found: Sequence[tuple[Sentence, str, float]], *, misses: int) -> None:
    """Print how many are right, by language and label, and the worst mistakes."""
    for language in sorted({sentence.language for sentence, _, _ in found}):
        own = [each for each in found if each[0].language == language]
        right = sum(sentence.label == label for sentence, label, _ in own)
        print(f"{task} {language}: {right} of {len(own)} right ({right / len(own):.1%})")
        for label in LABELS[task]:
            of_label = [said for sentence, said, _ in own if sentence.label == label]
            taken = Counter(of_label)
            others = ", ".join(f"{n} {said}" for said, n in taken.most_common() if said != label)
            wrongly = sum(s.label != label and said == label for s, said, _ in own)
            print(
                f"  {label:10} {taken[label]:4} of {len(of_label):4}"
                f"  taken for: {others or 'nothing else'}; {wrongly} others taken for it"
            )
    wrong = sorted((each for each in found if each[0].label != each[1]), key=lambda each: -each[2])
    for sentence, label, odds in wrong[:misses]:
        print(f"  {odds:.2f} {label} instead of {sentence.label}: {sentence.text}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=LABELS)
    parser.add_argument("--keep", action="store_true", help="write the package's weights")
    parser.add_argument("--held-out", action="store_true", help="judge the sentences held out")
    parser.add_argument("--misses", type=int, default=0, help="print so many mistakes")
    given = parser.parse_args()
    task: Task = given.task
    known = sentences(task)
    judge = train(task, known)
    if given.held_out:
        report(task, judged(judge, sentences(task, held_out=True)), misses=given.misses)
    elif not given.keep:
        found = list[tuple[Sentence, str, float]]()
        for topic in sorted({sentence.topic for sentence in known}):
            others = [sentence for sentence in known if sentence.topic != topic]
            own = [sentence for sentence in known if sentence.topic == topic]
            found += judged(train(task, others), own)
        print("Each file judged by what was learned from the others:")
        report(task, found, misses=given.misses)
    if given.keep:
        file = weights_file(task)
        judge.save(file)
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB, of {len(known)} sentences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
