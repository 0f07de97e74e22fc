"""Vectors kept on disk, so that only new texts are embedded: one file for each embedder.

A file is a line of JSON (version, embedder, dimensions, rows, SHA-256 of what follows), then the
texts' SHA-256 digests of 32 bytes each, then the rows as little-endian float16, which moves a
cosine by less than 0.001. Rows stand in the order of their last use, and the oldest go first. A
file that is not whole is told of and made anew; nothing here is ever needed, a lost file costs the
time to embed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from mcp_bridge.core.files import replace_file
from mcp_bridge.embedding.port import Vectors, unit

logger = logging.getLogger(__name__)

VERSION: Final = 1
MAX_FILE_BYTES: Final = 16 << 20
"""20,000 texts of 384 dimensions."""
_DIGEST: Final = 32
_HEADER_MAX: Final = 1_024
_HALF: Final = 2
"""Bytes of a float16."""


class KeptVectors:
    """Reads and writes the disk: call it beside the event loop. Never raises for a bad disk."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)

    def read(self, embedder: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """Text -> row, for those of `texts` that are known."""
        rows = self._rows(self._path(embedder), embedder)
        known = ((text, rows.get(_digest(text))) for text in texts)
        return {text: _unit(row) for text, row in known if row is not None}

    def add(self, embedder: str, vectors: Mapping[str, Vectors]) -> None:
        """Keeps `vectors`, text -> row, beside those that are there. All have one length."""
        if not vectors:
            return
        path = self._path(embedder)
        new = {_digest(text): row.astype("<f2").tobytes() for text, row in vectors.items()}
        width = len(next(iter(new.values())))
        # Whatever another process has added meanwhile stays.
        rows = {
            digest: row for digest, row in self._rows(path, embedder).items() if len(row) == width
        }
        rows = {digest: row for digest, row in rows.items() if digest not in new} | new
        room = (MAX_FILE_BYTES - _HEADER_MAX) // (_DIGEST + width)
        kept = dict(list(rows.items())[-room:])
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(path, _written(embedder, kept, width))
        except OSError as error:
            logger.warning("the vectors %s cannot be written (%s)", path, error.strerror)

    def _path(self, embedder: str) -> Path:
        return self._folder / f"{hashlib.sha256(embedder.encode()).hexdigest()[:16]}.vectors"

    def _rows(self, path: Path, embedder: str) -> dict[bytes, bytes]:
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            logger.warning("the vectors %s cannot be read (%s)", path, error.strerror)
            return {}
        try:
            return _parsed(data, embedder)
        except (ValueError, KeyError, TypeError, RecursionError):
            logger.warning("the file of vectors %s is damaged; it is made anew", path)
            return {}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _unit(row: bytes) -> Vectors:
    return unit(np.frombuffer(row, "<f2").astype(np.float32))


def _written(embedder: str, rows: Mapping[bytes, bytes], width: int) -> bytes:
    body = b"".join((*rows, *rows.values()))
    header = {
        "version": VERSION,
        "embedder": embedder[:200],
        "dimensions": width // _HALF,
        "rows": len(rows),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return json.dumps(header).encode() + b"\n" + body


def _parsed(data: bytes, embedder: str) -> dict[bytes, bytes]:
    """Raises: ValueError, KeyError, TypeError, RecursionError: no whole file of `embedder`."""
    line, _, body = data[:_HEADER_MAX].partition(b"\n")
    header = cast("Mapping[str, Any]", json.loads(line))
    body = data[len(line) + 1 :]
    count, width = header["rows"], header["dimensions"] * _HALF
    if (
        len(data) > MAX_FILE_BYTES
        or header["version"] != VERSION
        or header["embedder"] != embedder[:200]
        or width < _HALF
        or len(body) != count * (_DIGEST + width)
        or header["sha256"] != hashlib.sha256(body).hexdigest()
    ):
        raise ValueError("it is not what it says")
    values = body[count * _DIGEST :]
    return {
        body[at * _DIGEST : (at + 1) * _DIGEST]: values[at * width : (at + 1) * width]
        for at in range(count)
    }
