"""The process that `pdf_pages` starts: it reads a PDF from standard input, and writes its pages.

The answer is one JSON object: `{"pages": ["...", ...]}`, or `{"fault": "why not"}`. It runs by its
path and imports nothing of this package, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
from typing import Final

MAX_INPUT_BYTES: Final = 32 << 20
MAX_PAGES: Final = 1_000
MAX_CHARS: Final = 2 << 20
"""Characters of all pages: a thick manual has a million. As JSON it is under the parent's limit."""
MEMORY_BYTES: Final = 1 << 30
"""A compressed page may unpack to any size; pypdf needs some 100 MB for a usual file."""


def main() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    logging.disable()
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        answer: dict[str, object] = {"fault": f"it has more than {MAX_INPUT_BYTES >> 20} MB"}
    else:
        answer = _read(data)
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode(errors="replace"))


def _read(data: bytes) -> dict[str, object]:
    try:
        from pypdf import PdfReader
    except ImportError:
        return {"fault": 'to read PDFs, run: pip install "caal-node[documents]"'}
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"fault": "it needs a password"}
        pages, left = list[str](), MAX_CHARS
        for page in reader.pages:
            text = page.extract_text()[:left]
            pages.append(text)
            left -= len(text)
            if left <= 0 or len(pages) >= MAX_PAGES:
                break
    except Exception:  # pypdf raises errors of many kinds for a damaged file, RecursionError too
        return {"fault": "it is damaged, or no PDF"}
    return {"pages": pages}


if __name__ == "__main__":
    main()
