"""Vectors of texts from a table of English words: meaning that needs no model.

A word's vector is the one that all-MiniLM-L6-v2 gives to the word alone, in fewer dimensions, as
whole numbers, and the smaller the more often the word is used. A text's vector is the sum of its
words'. This is how Model2Vec (https://github.com/MinishLab/model2vec) makes a table of a model; the
weights of words are those of Arora et al., "A Simple but Tough-to-Beat Baseline for Sentence
Embeddings". `python -m tests.word_vectors` makes the table, `word_vectors.npz`, of MiniLM's weights
(Apache-2.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.embedding.embedders import Vectors, unit

MAX_CHARS: Final = 1_024
"""Characters of a text that are read: a minute of speech, and all of a tool's."""
_TABLE: Final = Path(__file__).with_name("word_vectors.npz")
_WORD: Final = re.compile(r"[a-z]+|[0-9]+")


def embed(texts: Sequence[str]) -> Vectors:
    """Return one row for each text, all zeros where no word is known.

    A text of `MAX_CHARS` takes half a millisecond at most. The table is read at the first use.
    """
    places, rows = table()
    found = np.zeros((len(texts), rows.shape[1]), np.float32)
    for number, text in enumerate(texts):
        words = _WORD.findall(text[:MAX_CHARS].lower())
        known = [places[word] for word in words if word in places]
        found[number] = rows[known].sum(axis=0, dtype=np.int32)
    return unit(found)


@cache
def table() -> tuple[Mapping[str, int], NDArray[np.int8]]:
    """Return each word's place, and the words' vectors: 16,000 of 96 numbers, 1.5 MB."""
    with np.load(_TABLE, allow_pickle=False) as read:
        words = read["words"].tobytes().decode().split("\n")
        return {word: place for place, word in enumerate(words)}, read["rows"]
