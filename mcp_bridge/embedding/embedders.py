"""What makes vectors of texts: the interface of all, and the model that runs in this process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.core.files import read_capped

# The interface of a model in this process, or of a server.

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


if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The model in this process: all-MiniLM-L6-v2, of 22 million parameters and 384 dimensions.
#
# It reads English, and is at https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 under
# Apache-2.0. A text of forty word pieces takes some 20 ms of one core. The model is that of Devlin
# et al., "BERT" (https://arxiv.org/abs/1810.04805), in numpy, with its layers in the names and the
# order of its published weights. A text's vector is the mean over its word pieces, as in Reimers
# and Gurevych, "Sentence-BERT" (https://arxiv.org/abs/1908.10084).

NAME: Final = "all-MiniLM-L6-v2"
WEIGHTS: Final = "model.safetensors"
TOKENIZER: Final = "tokenizer.json"
MAX_PIECES: Final = 256
"""The model was trained to read so much of a text; the rest is cut off."""
MAX_CHARS: Final = 4_096
"""The cap of a text: 256 word pieces of any language have fewer characters."""
MAX_TOKENIZER_BYTES: Final = 16 << 20
Floats: TypeAlias = NDArray[np.float32]

MAX_HEADER_BYTES: Final = 1 << 20
"""A safetensors header has some 100 bytes for each tensor."""
_EPSILON: Final = np.float32(1e-12)
"""The model's own constant in its layers' norms."""
_HEAD_WIDTH: Final = 32
_WORDS: Final = "embeddings.word_embeddings.weight"
_POSITIONS: Final = "embeddings.position_embeddings.weight"
_SEGMENTS: Final = "embeddings.token_type_embeddings.weight"


class MiniLM:
    """Embeds texts, one batch at a time, in a thread of its own. It loads at its first use.

    Args:
        folder: The folder of model.safetensors and tokenizer.json.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.name: Final = NAME
        self._folder: Final = Path(folder)
        self._thread: Final = ThreadPoolExecutor(1, "minilm")
        self._loaded: tuple[Tokenizer, Bert] | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed as `Embedder.embed` says. A batch that nobody waits for is finished."""
        cut = [text[:MAX_CHARS] for text in texts]
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, cut)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        tokenizer, bert = self._loaded = self._loaded or self._load()
        rows = np.empty((len(texts), bert.dimensions), np.float32)
        for number, text in enumerate(texts):
            # The tokenizer refuses a lone surrogate.
            plain = text.encode(errors="replace").decode()
            rows[number] = bert.vector(tokenizer.encode(plain).ids)
        return rows

    def _load(self) -> tuple[Tokenizer, Bert]:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EmbeddingUnavailable(
                'the tokenizers library is not installed; run: pip install "caal-node[embedding]"'
            ) from error
        try:
            path = self._folder / TOKENIZER
            tokenizer = Tokenizer.from_str(read_capped(path, MAX_TOKENIZER_BYTES).decode())
            bert = Bert(read_tensors(self._folder / WEIGHTS))
        except Exception as error:  # the library raises bare Exceptions for a bad file
            raise EmbeddingUnavailable(
                f"{self._folder}: {NAME} cannot be read "
                f"({type(error).__name__}: {str(error)[:120]}); fetch it again"
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_PIECES)  # pyright: ignore[reportUnknownMemberType]  # its keywords have no types
        return tokenizer, bert


def read_tensors(path: str | os.PathLike[str]) -> dict[str, Floats]:
    """Return the float32 tensors of a safetensors file by name; other types are left out.

    The format (https://huggingface.co/docs/safetensors) is eight bytes with the header's length,
    little endian; the header, a JSON object that maps a name to type, shape and place; and the
    numbers. The tensors are views of the file, so only what is used is read, and processes share
    it.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no such file, or not whole.
    """
    raw: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
    length = int.from_bytes(raw[:8].tobytes(), "little")
    if not 0 < length <= min(MAX_HEADER_BYTES, len(raw) - 8):
        raise ValueError("it has no safetensors header")
    numbers = raw[8 + length :]
    try:
        header: Any = json.loads(raw[8 : 8 + length].tobytes())
        entries = {name: entry for name, entry in header.items() if entry.get("dtype") == "F32"}
    except (AttributeError, RecursionError) as error:
        raise ValueError("its header is no safetensors header") from error
    return {name: _tensor(numbers, name, entry) for name, entry in entries.items()}


def _tensor(numbers: NDArray[np.uint8], name: str, entry: Mapping[str, Any]) -> Floats:
    try:
        start, end = entry["data_offsets"]
        if not 0 <= start <= end <= len(numbers):
            raise ValueError("the file ends before it")
        return np.frombuffer(numbers[start:end], "<f4").reshape(entry["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name} is not where the header says, or of another shape") from error


class Bert:
    """The model's forward pass. It is immutable, so `vector` may be called from several threads."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        """Check that `weights` has every tensor.

        Raises:
            ValueError: A tensor is missing, or is not of the shape that it must have.
        """
        self._weights: Final = weights
        words, positions = weights.get(_WORDS), weights.get(_POSITIONS)
        inner = weights.get("encoder.layer.0.intermediate.dense.bias", np.empty(0, np.float32))
        if words is None or positions is None or words.ndim != 2 or positions.ndim != 2:
            raise ValueError("there are no word embeddings in it")
        self.dimensions: Final = int(words.shape[1])
        self.max_pieces: Final = int(positions.shape[0])
        layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
        self._layers: Final = len(layers)
        shapes = _expected_shapes(self.dimensions, len(inner), self._layers)
        for name, shape in shapes.items():
            if name not in weights or weights[name].shape != shape:
                raise ValueError(f"{name} is missing, or not of the shape {shape}")

    def vector(self, pieces: Sequence[int]) -> Floats:
        """Return the vector of one text, given as its word pieces with the marks of its ends.

        Raises:
            ValueError: There are no pieces, too many, or some that the vocabulary does not have.
        """
        words = self._weights[_WORDS]
        count = len(pieces)
        if not 0 < count <= self.max_pieces or not 0 <= min(pieces) <= max(pieces) < len(words):
            raise ValueError("not a text of this model's word pieces")
        positions, segments = self._weights[_POSITIONS], self._weights[_SEGMENTS]
        state = words[list(pieces)] + positions[:count] + segments[0]
        state = self._norm(state, "embeddings.LayerNorm")
        for number in range(self._layers):
            state = self._layer(state, f"encoder.layer.{number}")
        return unit(state.mean(axis=0))

    def _layer(self, state: Floats, layer: str) -> Floats:
        attention = self._attention(state, f"{layer}.attention.self")
        attention = self._dense(attention, f"{layer}.attention.output.dense")
        state = self._norm(state + attention, f"{layer}.attention.output.LayerNorm")
        inner = _gelu(self._dense(state, f"{layer}.intermediate.dense"))
        inner = self._dense(inner, f"{layer}.output.dense")
        return self._norm(state + inner, f"{layer}.output.LayerNorm")

    def _attention(self, state: Floats, name: str) -> Floats:
        count = len(state)
        query, key, value = (
            # (pieces, width) -> (heads, pieces, width of a head)
            self._dense(state, f"{name}.{part}").reshape(count, -1, _HEAD_WIDTH).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.float32(_HEAD_WIDTH**0.5)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ value).swapaxes(0, 1).reshape(count, -1)

    def _dense(self, state: Floats, name: str) -> Floats:
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, state: Floats, name: str) -> Floats:
        state = state - state.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((state * state).mean(axis=-1, keepdims=True) + _EPSILON)
        return state / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(x: Floats) -> Floats:
    """Return x times the normal distribution's share below x, by the error function.

    numpy has none. Abramowitz and Stegun, 7.1.26, is right to 1.5e-7, which is float32's own error.
    """
    scaled = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    tail = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(factor)) * t
    tail *= np.exp(-scaled * scaled) * np.float32(0.5)
    return x * np.where(x < 0, tail, 1 - tail)


def _expected_shapes(width: int, inner: int, layers: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor that the pass uses beside the word and position ones."""
    dense = {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")} | {
        "attention.output.dense": (width, width),
        "intermediate.dense": (inner, width),
        "output.dense": (width, inner),
    }
    shapes: dict[str, tuple[int, ...]] = {_SEGMENTS: (2, width)}
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{number}" for number in range(layers)):
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        for name, shape in dense.items():
            shapes |= {f"{layer}.{name}.weight": shape, f"{layer}.{name}.bias": shape[:1]}
    return shapes | {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}
