"""Makes the table of words in `mcp_bridge/embedding`: `python -m tests.word_vectors`.

It needs all-MiniLM-L6-v2 in the cache (`python -m caal_node.weights all-minilm-l6-v2`), and takes
ten minutes. The same weights make the same table, but for the last digit of a processor's sums.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from caal_node import weights
from mcp_bridge.embedding import semantic_index
from mcp_bridge.embedding.embedders import TOKENIZER, WEIGHTS, Bert, Vectors, read_tensors

WORDS: Final = 16_000
"""The most used words; MiniLM's vocabulary stands about in that order."""
DIMENSIONS: Final = 96
RARE: Final = 1e-4
"""A word that makes up this share of all words counts half as much as a very rare one."""
FITTED: Final = 8_000
"""The directions that are kept are those in which the first words differ most."""
STEPS: Final = 127


def make(folder: Path) -> tuple[list[str], NDArray[np.int8]]:
    """Return the words, and a row of whole numbers for each."""
    vocabulary: dict[str, int] = json.loads((folder / TOKENIZER).read_text())["model"]["vocab"]
    start, end = vocabulary["[CLS]"], vocabulary["[SEP]"]
    in_order = sorted(vocabulary, key=lambda word: vocabulary[word])
    words = [word for word in in_order if re.fullmatch(r"[a-z]+|[0-9]+", word)][:WORDS]
    bert = Bert(read_tensors(folder / WEIGHTS))
    full: Vectors = np.stack([bert.vector([start, vocabulary[word], end]) for word in words])
    full -= full.mean(axis=0)
    _, _, directions = np.linalg.svd(full[:FITTED], full_matrices=False)
    used = 1 / (np.arange(1, len(words) + 1) * np.log(len(words)))  # Zipf's law
    rows: NDArray[np.float64] = full @ directions[:DIMENSIONS].T * (RARE / (RARE + used))[:, None]
    return words, np.rint(rows * (STEPS / np.abs(rows).max())).astype(np.int8)


def main() -> None:
    folder = weights.present(weights.MINILM)
    if folder is None:
        raise SystemExit(f"run first: python -m caal_node.weights {weights.MINILM.key}")
    words, rows = make(folder)
    path = Path(semantic_index.__file__).with_name("word_vectors.npz")
    named = np.frombuffer("\n".join(words).encode(), np.uint8)
    np.savez_compressed(path, words=named, rows=rows)
    print(f"{path}: {len(words)} words, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
