"""Reads one allowed file, whichever kind it is: a short text here, all else in a child process."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from caal_node.core.errors import ConfigError
from caal_node.models.child_process import AT_ONCE_BYTES, TooMuchSaid, answer_of
from caal_node.toolsets.local_files.allowed_folders import AllowedPath
from caal_node.toolsets.local_files.file_text import (
    MAX_FILE_BYTES,
    MAX_TEXT_BYTES,
    PASSAGES,
    PDF,
    NoText,
    Passage,
    answer,
    too_large,
)

READ_S: Final = 60.0
"""Seconds for one file: a PDF of 300 pages takes ten on a slow core."""
MAX_OUTPUT_BYTES: Final = 8 << 20
_CHILD: Final = "caal_node.toolsets.local_files.file_text"


@dataclass(frozen=True, slots=True)
class DocumentPassages:
    """What a document is called, and all that it says."""

    title: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file's text; "" where it has fewer parts."""

    text: str
    parts: int


def require_pypdf() -> None:
    """Say whether PDFs can be read. It looks on the disk.

    Raises:
        ConfigError: The library is missing.
    """
    if importlib.util.find_spec("pypdf") is None:
        raise ConfigError('to read PDFs, run: pip install "caal-node[documents]".')


async def read_passages(file: AllowedPath) -> DocumentPassages:
    """Read a text, Markdown or PDF file, cut into passages.

    Raises:
        NoText: It has no text that could be read.
        OSError: It is gone, or may not be read.
    """
    title, *rows = await _read(file, PASSAGES)
    return DocumentPassages(str(title), tuple(Passage(str(row[0]), str(row[1])) for row in rows))


async def read_part(file: AllowedPath, number: int) -> FilePart:
    """Read the part of such a file that has this number, from 1. It raises the same."""
    text, parts = await _read(file, str(min(max(number, 0), MAX_TEXT_BYTES)))
    return FilePart(str(text), int(parts))


async def _read(file: AllowedPath, wanted: str) -> list[Any]:
    is_pdf = file.name.lower().endswith(PDF)
    most = MAX_FILE_BYTES if is_pdf else MAX_TEXT_BYTES
    if file.size > most:
        raise too_large(most)
    handle = await asyncio.to_thread(file.open)
    try:
        if not is_pdf and file.size <= AT_ONCE_BYTES:
            return await asyncio.to_thread(_here, handle, file, wanted)
        output = await answer_of(
            _CHILD, (file.name, wanted), handle, deadline_s=READ_S, max_bytes=MAX_OUTPUT_BYTES
        )
    except TimeoutError:
        raise NoText(f"it takes longer than {READ_S:.0f} s to read") from None
    except TooMuchSaid:
        raise NoText("it has too much text") from None
    finally:
        await asyncio.to_thread(handle.close)
    return await asyncio.to_thread(_parsed, output)


def _here(handle: BinaryIO, file: AllowedPath, wanted: str) -> list[Any]:
    return list(answer(handle.read(AT_ONCE_BYTES), file.name, wanted))


def _parsed(output: bytes) -> list[Any]:
    # Line by line, as one step of C for all of it would hold the event loop.
    try:
        lines: list[Any] = [json.loads(line) for line in output.splitlines()]
    except ValueError:
        lines = []
    match lines:
        case []:
            raise NoText("it is damaged, or too large to read")
        case [{"fault": why}, *_]:
            raise NoText(str(why))
        case _:
            return lines
