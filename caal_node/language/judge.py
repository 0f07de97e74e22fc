"""A linear model over n-grams: odds for each label of a task, in a tenth of a millisecond.

`python -m tests.train` makes the weights that come with the package (`TASK.npz` beside this file)
from the sentences in tests/data/sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caal_node.language.ngrams import ngrams

Task: TypeAlias = Literal["clause", "request", "answer"]
"""Which judge: what a clause of an answer does, what a person wants, how an answer stands to what
was asked."""


class Judge:
    """Judges texts of one task.

    Args:
        labels: The task's labels.
        weights: One row of whole numbers for each n-gram, a column for each label.
        scale: What one of these is worth, for each label.
        bias: What each label has before anything was read.
        source: A checksum of what it has learned from.
    """

    def __init__(
        self,
        labels: Sequence[str],
        weights: NDArray[np.int8],
        scale: NDArray[np.float32],
        bias: NDArray[np.float32],
        source: str = "",
    ) -> None:
        self.labels: Final = tuple(labels)
        self.source: Final = source
        self._weights: Final = weights
        self._scale: Final = scale
        self._bias: Final = bias

    def odds(self, text: str) -> Mapping[str, float]:
        """Return how likely each label is; together they are 1."""
        found = ngrams(text)
        sums = self._weights[found].sum(axis=0, dtype=np.int32) * self._scale
        logits = sums / np.sqrt(len(found)) + self._bias
        raised = np.exp(logits - logits.max())
        return dict(zip(self.labels, (raised / raised.sum()).tolist(), strict=True))

    def save(self, path: Path) -> None:
        """Write the weights; the same judge gives the same bytes."""
        np.savez_compressed(
            path,
            labels=np.array(self.labels),
            weights=self._weights,
            scale=self._scale,
            bias=self._bias,
            source=np.array(self.source),
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the judge that was saved there.

        Raises:
            OSError: there is no such file.
        """
        with np.load(path, allow_pickle=False) as read:
            labels = [str(label) for label in read["labels"]]
            source = str(read["source"])
            return cls(labels, read["weights"], read["scale"], read["bias"], source)


@cache
def judge_of(task: Task) -> Judge:
    """Return the judge of a task that comes with the package. It is read once, in some 10 ms."""
    return Judge.load(weights_file(task))


def weights_file(task: Task) -> Path:
    """Return where the weights of a task lie."""
    return Path(__file__).with_name(f"{task}.npz")
