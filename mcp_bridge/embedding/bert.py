"""The forward pass of a small BERT, in numpy: word pieces in, one vector of unit length out.

The model is that of Devlin et al., "BERT" (https://arxiv.org/abs/1810.04805), its layers in the
names and the order of its published weights; the vector is the mean over all pieces, as Reimers
and Gurevych have it in "Sentence-BERT" (https://arxiv.org/abs/1908.10084).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.embedding.base import unit

Floats: TypeAlias = NDArray[np.float32]

_EPSILON: Final = np.float32(1e-12)
"""The model's own, in its layers' norms."""
_HEAD_WIDTH: Final = 32
_INPUT: Final = "embeddings"
_LAYER: Final = "encoder.layer"


class Bert:
    """Immutable; `vector` may be called from several threads."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        """Raises: ValueError: a tensor is missing, or is not of the shape that it must have."""
        self._weights: Final = weights
        words = weights.get(f"{_INPUT}.word_embeddings.weight")
        places = weights.get(f"{_INPUT}.position_embeddings.weight")
        if words is None or places is None or words.ndim != 2 or places.ndim != 2:
            raise ValueError("no word embeddings in it")
        self.dimensions: Final = int(words.shape[1])
        self.pieces_max: Final = int(places.shape[0])
        self._layers: Final = _layers(weights)
        for name, shape in _shapes(self.dimensions, self._layers, _inner(weights)):
            if name not in weights or weights[name].shape != shape:
                raise ValueError(f"{name} is missing, or not of the shape {shape}")

    def vector(self, pieces: Sequence[int]) -> Floats:
        """Of one text, given as the numbers of its word pieces, the marks of its ends included.

        Raises:
            ValueError: there are none, or too many; a number is none of the vocabulary's.
        """
        words = self._weights[f"{_INPUT}.word_embeddings.weight"]
        count = len(pieces)
        if not 0 < count <= self.pieces_max or not 0 <= min(pieces) <= max(pieces) < len(words):
            raise ValueError("not a text of this model's word pieces")
        state = (
            words[list(pieces)]
            + self._weights[f"{_INPUT}.position_embeddings.weight"][:count]
            + self._weights[f"{_INPUT}.token_type_embeddings.weight"][0]
        )
        state = self._normed(state, f"{_INPUT}.LayerNorm")
        for number in range(self._layers):
            state = self._layer(state, f"{_LAYER}.{number}")
        return unit(state.mean(axis=0))

    def _layer(self, state: Floats, at: str) -> Floats:
        seen = self._linear(
            self._attention(state, f"{at}.attention.self"), f"{at}.attention.output.dense"
        )
        state = self._normed(state + seen, f"{at}.attention.output.LayerNorm")
        inner = _gelu(self._linear(state, f"{at}.intermediate.dense"))
        return self._normed(
            state + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm"
        )

    def _attention(self, state: Floats, at: str) -> Floats:
        count = len(state)
        query, key, value = (
            # (pieces, width) -> (heads, pieces, width of a head)
            self._linear(state, f"{at}.{part}").reshape(count, -1, _HEAD_WIDTH).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.float32(_HEAD_WIDTH**0.5)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ value).swapaxes(0, 1).reshape(count, -1)

    def _linear(self, state: Floats, at: str) -> Floats:
        return state @ self._weights[f"{at}.weight"].T + self._weights[f"{at}.bias"]

    def _normed(self, state: Floats, at: str) -> Floats:
        state = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt((state * state).mean(axis=-1, keepdims=True) + _EPSILON)
        return state / spread * self._weights[f"{at}.weight"] + self._weights[f"{at}.bias"]


def _gelu(x: Floats) -> Floats:
    """x times the normal distribution's share below x, by the error function.

    numpy has none. Abramowitz and Stegun, 7.1.26, is right to 1.5e-7, which is float32's own.
    """
    ahead = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * ahead)
    tail = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(factor)) * t
    tail *= np.exp(-ahead * ahead) * np.float32(0.5)
    return x * np.where(x < 0, tail, 1 - tail)


def _layers(weights: Mapping[str, Floats]) -> int:
    numbers = {name.split(".")[2] for name in weights if name.startswith(f"{_LAYER}.")}
    return len(numbers)


def _inner(weights: Mapping[str, Floats]) -> int:
    """Width inside a layer."""
    first = weights.get(f"{_LAYER}.0.intermediate.dense.bias")
    return 0 if first is None else len(first)


def _shapes(width: int, layers: int, inner: int) -> Sequence[tuple[str, tuple[int, ...]]]:
    """Every tensor that the pass uses besides the words' and the places', and its shape."""
    square, norm = (width, width), "LayerNorm"
    found: list[tuple[str, tuple[int, ...]]] = [
        (f"{_INPUT}.token_type_embeddings.weight", (2, width)),
        (f"{_INPUT}.{norm}.weight", (width,)),
        (f"{_INPUT}.{norm}.bias", (width,)),
    ]
    for number in range(layers):
        at = f"{_LAYER}.{number}"
        parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
        for part in (*parts, "attention.output.dense"):
            found += [(f"{at}.{part}.weight", square), (f"{at}.{part}.bias", (width,))]
        for part in (f"attention.output.{norm}", f"output.{norm}"):
            found += [(f"{at}.{part}.weight", (width,)), (f"{at}.{part}.bias", (width,))]
        found += [
            (f"{at}.intermediate.dense.weight", (inner, width)),
            (f"{at}.intermediate.dense.bias", (inner,)),
            (f"{at}.output.dense.weight", (width, inner)),
            (f"{at}.output.dense.bias", (width,)),
        ]
    return found
