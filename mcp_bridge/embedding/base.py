"""What makes vectors of texts, whatever it is: a model in this process, or a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]
"""Of shape (texts, dimensions), or (dimensions,) for one; each of unit length, so that a product
of two is the cosine between them."""
_LEAST: Final = np.float32(1e-6)
"""A length that rounding alone can leave."""


def unit(vectors: Vectors) -> Vectors:
    """Each of length one. What has no direction stays as it is."""
    squares: Vectors = (vectors * vectors).sum(axis=-1, keepdims=True)
    lengths: Vectors = np.maximum(np.sqrt(squares), _LEAST)
    return vectors / lengths


class Embedder(Protocol):
    """May be asked for several things at once; how many it does at a time is its own matter."""

    @property
    def name(self) -> str:
        """Of the model, version included: vectors of different names cannot be compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text, in their order. Long texts are cut to what the model reads.

        Raises:
            EmbeddingUnavailable: it cannot, and why.
        """
        ...
