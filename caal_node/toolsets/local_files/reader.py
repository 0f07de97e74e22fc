"""Reads one allowed file, whichever kind it is."""

from __future__ import annotations

import asyncio
from typing import Final

from caal_node.toolsets.local_files.allowed_folders import AllowedPath
from caal_node.toolsets.local_files.file_text import (
    MAX_FILE_BYTES,
    MAX_TEXT_BYTES,
    PDF,
    DocumentText,
    NoText,
    text_of,
)
from caal_node.toolsets.local_files.pdf_pages import pages_of

_TOO_LARGE: Final = f"it has more than {MAX_FILE_BYTES >> 20} MB"


async def read_document(file: AllowedPath) -> DocumentText:
    """Read a text, Markdown or PDF file.

    Raises:
        NoText: It has no text that could be read.
        OSError: It is gone, or may not be read.
    """
    if file.size > MAX_FILE_BYTES:
        raise NoText(_TOO_LARGE)
    if not file.name.lower().endswith(PDF):
        return await asyncio.to_thread(_text, file)
    handle = await asyncio.to_thread(file.open)
    try:
        return await pages_of(handle, file.name)
    finally:
        await asyncio.to_thread(handle.close)


def _text(file: AllowedPath) -> DocumentText:
    with file.open() as handle:
        return text_of(handle.read(MAX_TEXT_BYTES + 1), file.name)
