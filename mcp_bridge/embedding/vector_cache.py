"""Vectors that are made once for each text, and kept in memory and on disk.

The disk has one file for each embedder, in numpy's .npz format: the SHA-256 of the embedder's name,
those of the texts, and the vectors as float16, which moves a cosine by less than 0.001. Rows stand
in the order of their last use, and the oldest go first. A damaged file is reported and made anew:
losing one costs only the time to embed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.core.files import read_capped, replace_file
from mcp_bridge.embedding.base import Embedder, Vectors, unit

logger = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 16 << 20
"""It holds 20,000 texts of 384 dimensions."""
_FORMAT_BYTES: Final = 1_024
"""More than the .npz format adds to the numbers."""
_DIGEST_BYTES: Final = 32

BATCH: Final = 4
"""Texts are embedded so many at a time. A request waits for the batch before it, which takes 0.3 s
on a slow core."""
BATCH_S: Final = 60.0
"""The deadline of a batch: a server may have to load the model first."""
WRITE_EVERY: Final = 64
"""New vectors are written to disk in such steps, so that a short session leaves some."""
_SAME_MODEL: Final = 0.98
"""From this cosine of a text's cached and fresh vectors on, the model counts as the same. float16
and the rounding of other processors leave 0.999."""


class VectorCache:
    """Reads and writes vectors on disk, which blocks. A bad disk is logged and never raises."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)

    def read(self, embedder: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of those of `texts` that are known, by text."""
        rows = self._load(embedder)
        known = ((text, rows.get(_digest(text))) for text in texts)
        return {text: unit(row.astype(np.float32)) for text, row in known if row is not None}

    def add(self, embedder: str, vectors: Mapping[str, Vectors]) -> None:
        """Keep `vectors`, by text and all of one length, beside those that are there."""
        if not vectors:
            return
        new = {_digest(text): row.astype("<f2") for text, row in vectors.items()}
        (shape,) = {row.shape for row in new.values()}
        # What another process has added meanwhile stays.
        rows = {
            digest: row
            for digest, row in self._load(embedder).items()
            if row.shape == shape and digest not in new
        } | new
        max_rows = (MAX_FILE_BYTES - _FORMAT_BYTES) // (_DIGEST_BYTES + 2 * shape[0])
        kept = list(rows.items())[-max_rows:]
        data = BytesIO()
        np.savez(
            data,
            embedder=np.frombuffer(_digest(embedder), np.uint8),
            digests=np.frombuffer(b"".join(digest for digest, _ in kept), np.uint8),
            rows=np.stack([row for _, row in kept]),
        )
        path = self._path(embedder)
        try:
            replace_file(path, data.getvalue())
        except OSError as error:
            logger.warning("the vectors %s cannot be written (%s)", path, error.strerror)

    def _path(self, embedder: str) -> Path:
        return self._folder / f"{_digest(embedder).hex()[:16]}.vectors"

    def _load(self, embedder: str) -> dict[bytes, Any]:
        """Return the float16 rows of a file by their texts' digests."""
        path = self._path(embedder)
        try:
            data = read_capped(path, MAX_FILE_BYTES)
            with np.load(BytesIO(data), allow_pickle=False) as arrays:
                whole = sum(member.file_size for member in arrays.zip.infolist()) <= MAX_FILE_BYTES
                if not whole or arrays["embedder"].tobytes() != _digest(embedder):
                    raise ValueError("it is too large, or another embedder's")
                digests, rows = arrays["digests"].tobytes(), arrays["rows"]
            if rows.ndim != 2 or rows.dtype != "<f2" or len(digests) != len(rows) * _DIGEST_BYTES:
                raise ValueError("digests and rows do not belong together")
        except FileNotFoundError:
            return {}
        except OSError as error:
            logger.warning("the vectors %s cannot be read (%s)", path, error.strerror)
            return {}
        except Exception:  # numpy and zipfile raise errors of many kinds for a damaged file
            logger.warning("the file of vectors %s is damaged; it is made anew", path)
            return {}
        starts = range(0, len(digests), _DIGEST_BYTES)
        return dict(zip((digests[at : at + _DIGEST_BYTES] for at in starts), rows, strict=True))


class CachingEmbedder:
    """An embedder that makes each vector once; without a `cache` on disk, once a run."""

    def __init__(self, embedder: Embedder, cache: VectorCache | None) -> None:
        self._embedder: Final = embedder
        self._cache: Final = cache
        self._vectors: Mapping[str, Vectors] = {}
        """The vectors of the texts that were asked for last, by text."""

    async def vectors(self, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the texts' vectors by text. Those of other texts are forgotten, except on disk.

        Raises:
            EmbeddingUnavailable, TimeoutError: They cannot be embedded.
            Exception: The embedder raised it.
        """
        found = {text: self._vectors[text] for text in texts if text in self._vectors}
        found |= await self._cached([text for text in texts if text not in found])
        missing = [text for text in texts if text not in found]
        unwritten: dict[str, Vectors] = {}
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            unwritten |= zip(batch, await self.embed(batch, BATCH_S), strict=True)
            if len(unwritten) >= WRITE_EVERY or start + BATCH >= len(missing):
                await self._write(unwritten)
                found, unwritten = found | unwritten, {}
        self._vectors = {text: found[text] for text in texts}
        if missing:
            logger.info("%d texts of tools embedded: %s", len(missing), self._embedder.name)
        return self._vectors

    async def embed(self, texts: Sequence[str], deadline_s: float) -> Vectors:
        """Return a fresh row for each text, whatever is cached.

        Raises:
            EmbeddingUnavailable, TimeoutError: They cannot be embedded.
            Exception: The embedder raised it.
        """
        async with asyncio.timeout(deadline_s):
            rows = await self._embedder.embed(texts)
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise EmbeddingUnavailable(f"{self._embedder.name} gave no row for each text")
        return rows

    async def _cached(self, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the vectors on disk, if the model is still the one that made them.

        To see that, one text is embedded again, which also loads the model before a request.
        """
        if (cache := self._cache) is None or not texts:
            return {}
        cached = await asyncio.to_thread(cache.read, self._embedder.name, texts)
        if not cached:
            return {}
        text, old = next(iter(cached.items()))
        (new,) = await self.embed([text], BATCH_S)
        if new.shape == old.shape and float(new @ old) >= _SAME_MODEL:
            return cached
        logger.warning("%s makes other vectors than before; all are made anew", self._embedder.name)
        return {}

    async def _write(self, vectors: Mapping[str, Vectors]) -> None:
        if self._cache is not None:
            await asyncio.to_thread(self._cache.add, self._embedder.name, dict(vectors))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
