"""Reads a PDF in a process of its own, which has a deadline and a limit of memory.

A PDF is a program in all but name, and one that is broken or made to harm keeps a reader busy for
ever: it runs where it can be killed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import BinaryIO, Final

from caal_node.core.errors import ConfigError
from caal_node.toolsets.local_files.file_text import DocumentText, NoText, Section, spoken_title

READ_S: Final = 60.0
"""Seconds for one file: a manual of 300 pages takes ten on a slow core."""
MAX_OUTPUT_BYTES: Final = 8 << 20
_CHILD: Final = Path(__file__).with_name("pdf_process.py")
_NEEDED: Final = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""All that the child gets of the environment, so that it has no key."""


def require_pypdf() -> None:
    """Say whether PDFs can be read. It looks on the disk.

    Raises:
        ConfigError: The library is missing.
    """
    if importlib.util.find_spec("pypdf") is None:
        raise ConfigError('to read PDFs, run: pip install "caal-node[documents]".')


async def pages_of(file: BinaryIO, name: str) -> DocumentText:
    """Read the text of a PDF's pages. The caller opens the file, and closes it.

    Raises:
        NoText: It cannot be read, or has no text.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_CHILD)),
        stdin=file,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _NEEDED if name in os.environ},
        limit=MAX_OUTPUT_BYTES,
    )
    try:
        async with asyncio.timeout(READ_S):
            output = await _all_of(process)
            await process.wait()
    except TimeoutError:
        raise NoText(f"it takes longer than {READ_S:.0f} s to read") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return await asyncio.to_thread(_parsed, output, name)


async def _all_of(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        return b""
    try:
        await process.stdout.readexactly(MAX_OUTPUT_BYTES + 1)
    except asyncio.IncompleteReadError as whole:
        return whole.partial
    raise NoText("it has too much text")


def _parsed(output: bytes, name: str) -> DocumentText:
    try:
        answer = json.loads(output)
        if fault := answer.get("fault"):
            raise NoText(str(fault))
        pages = [str(page).strip() for page in answer["pages"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NoText("it is damaged, or too large to read") from None
    sections = (Section(f"page {at}", page) for at, page in enumerate(pages, 1) if page)
    if not (found := tuple(sections)):
        raise NoText("it has no text, only pictures of it")
    return DocumentText(spoken_title(name), found)
