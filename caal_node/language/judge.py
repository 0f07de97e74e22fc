"""A linear model over n-grams: odds for each label of a task, in a tenth of a millisecond.

`python -m tests.train` makes the weights that come with the package (`TASK.npz` beside this file)
from the sentences in tests/data/sentences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

# A text as numbers that a linear model reads: its words and letters, one to five in a row, hashed.
#
# The numbers are made alike where a model is trained and where it is used, so a change here makes
# every weights file wrong: `tests/unit/language/test_language.py` says so.

BUCKETS: Final = 1 << 15
"""Numbers there are. Two n-grams that share one are told apart by the others around them."""
READ_CHARS: Final = 400
"""Characters of a text that are read: half a minute of speech."""
WORDS: Final = range(1, 4)
LETTERS: Final = range(2, 6)
"""How many words or letters stand in one n-gram."""
_TOKEN: Final = re.compile(r"[^\W\d]+(?:'[^\W\d]+)*|\d+|[?!.,;:…\"“”„«»]")
_ALIKE: Final = str.maketrans({"’": "'", "‘": "'", "`": "'", "ß": "ss"})
_KNOWN_WORDS: Final = 4_096


def ngrams(text: str) -> NDArray[np.int64]:
    """Return the numbers of a text's n-grams, each once and in order; a text of nothing has one.

    Capitals count for nothing, as a speech recogniser may write none, and neither do figures.
    """
    plain = text[:READ_CHARS].translate(_ALIKE).lower()
    words = ["^", *("0" if token[0].isdigit() else token for token in _TOKEN.findall(plain)), "$"]
    found = {
        _number(" ".join(words[at : at + length]))
        for length in WORDS
        for at in range(len(words) - length + 1)
    }
    for word in words:
        found.update(_letters(word))
    return np.fromiter(sorted(found), dtype=np.int64, count=len(found))


@lru_cache(_KNOWN_WORDS)
def _letters(word: str) -> tuple[int, ...]:
    """Return the numbers of the letters of a word, whose begin and end count as one each."""
    padded = f"<{word}>"
    return tuple(
        _number(f"#{padded[at : at + length]}")
        for length in LETTERS
        for at in range(len(padded) - length + 1)
    )


def _number(ngram: str) -> int:
    return crc32(ngram.encode()) % BUCKETS


# What a text quotes: somebody else says it.

_QUOTED: Final = re.compile(r"\"[^\"]*(?:\"|$)|“[^”]*(?:”|$)|«[^»]*(?:»|$)|„[^“”]*(?:[“”]|$)")


def without_quotes(text: str) -> str:
    """Return a text without what stands in quotation marks; one that is not closed goes on to its
    end."""
    return _QUOTED.sub(" ", text)


Task: TypeAlias = Literal["clause", "request", "answer", "addressee", "second_thought"]
"""Which judge: what a clause of an answer does, what a person wants, how an answer stands to what
was asked, whom words are for, whether words take back or correct those before them."""


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
