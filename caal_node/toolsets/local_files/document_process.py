"""Takes a document apart, in a thread or as the program of a child that can be killed.

A PDF is a program in all but name, and of a long text one step of C holds the event loop, thread or
not. The child gets the file as standard input, and writes a line of JSON for each thing found.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from caal_node.toolsets.local_files.file_text import (
    MAX_FILE_BYTES,
    PDF,
    DocumentText,
    NoText,
    Section,
    passages_of,
    spoken_title,
    text_of,
)

PASSAGES: Final = "passages"
PART_CHARS: Final = 3_000
"""Characters of a file that one call gives: 750 tokens, four minutes of speech."""
MAX_PAGES: Final = 1_000
MAX_CHARS: Final = 2 << 20
"""Characters of all pages: a thick manual has a million."""


def main() -> None:
    """Answer in the lines that `answer` yields, or in one with the fault."""
    name, wanted = sys.argv[1:]
    data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    try:
        lines = list(answer(data, name, wanted))
    except NoText as why:
        lines = [{"fault": str(why)}]
    for line in lines:
        written = json.dumps(line, ensure_ascii=False).encode(errors="replace")
        sys.stdout.buffer.write(written + b"\n")


def answer(data: bytes, name: str, wanted: str) -> Iterator[Any]:
    """Yield the title and then a document's passages, each with its place; or one part of its text,
    by its number from 1, and how many parts there are.

    Raises:
        NoText: It cannot be read, or has no text.
    """
    document = _pages(data, name) if name.lower().endswith(PDF) else text_of(data, name)
    if wanted == PASSAGES:
        yield document.title
        yield from ([each.place, each.text] for each in passages_of(document))
        return
    text, at = document.text, (int(wanted) - 1) * PART_CHARS
    yield text[at : at + PART_CHARS] if at >= 0 else ""
    yield max(1, -(-len(text) // PART_CHARS))


def _pages(data: bytes, name: str) -> DocumentText:
    if len(data) > MAX_FILE_BYTES:
        raise NoText(f"it has more than {MAX_FILE_BYTES >> 20} MB")
    try:
        from pypdf import PdfReader
    except ImportError:
        raise NoText('to read PDFs, run: pip install "caal-node[documents]"') from None
    try:
        reader = PdfReader(io.BytesIO(data))
        is_locked = reader.is_encrypted and not reader.decrypt("")
        pages = [] if is_locked else _texts(reader)
    except Exception:  # pypdf raises errors of many kinds for a damaged file, RecursionError too
        raise NoText("it is damaged, or no PDF") from None
    if is_locked:
        raise NoText("it needs a password")
    sections = (Section(f"page {at}", page) for at, page in enumerate(pages, 1) if page)
    if not (found := tuple(sections)):
        raise NoText("it has no text, only pictures of it")
    return DocumentText(spoken_title(name), found)


def _texts(reader: Any) -> list[str]:
    pages, left = list[str](), MAX_CHARS
    for page in reader.pages:
        text: str = page.extract_text()[:left]
        pages.append(text.strip())
        left -= len(text)
        if left <= 0 or len(pages) >= MAX_PAGES:
            break
    return pages
