"""The interface of whatever makes vectors of texts: a model in this process, or a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]
"""Vectors of shape (texts, dimensions), or (dimensions,) for one text.

Each is of unit length, so the product of two is the cosine between them.
"""
_MIN_LENGTH: Final = np.float32(1e-6)
"""A length that rounding alone can leave."""


def unit(vectors: Vectors) -> Vectors:
    """Scale each vector to length one; one without a direction stays as it is."""
    squares: Vectors = (vectors * vectors).sum(axis=-1, keepdims=True)
    lengths: Vectors = np.maximum(np.sqrt(squares), _MIN_LENGTH)
    return vectors / lengths


class Embedder(Protocol):
    """Makes vectors of texts. It may be asked for several batches at once, and decides itself how
    many it works on at a time."""

    @property
    def name(self) -> str:
        """The model's name and version: vectors of different names cannot be compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, in their order. Long texts are cut to what the model reads.

        Raises:
            EmbeddingUnavailable: The texts cannot be embedded; the message says why.
        """
        ...
