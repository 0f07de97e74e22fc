"""Takes the text out of a web page: a program of its own, as a page may be made to be slow.

It reads HTML from standard input, and writes one line of JSON, `{"title", "date", "text"}`. The
parent kills it at its deadline. It imports nothing of this package.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from typing import Any, Final

MEMORY_BYTES: Final = 1 << 30
"""What it may use: a page of a megabyte needs about 150 MB."""
CPU_S: Final = 10
"""Seconds of processor time, should the parent be gone."""
TEXT_CHARS: Final = 200_000
"""Characters of text that are handed on, far more than is shown of a page."""


def main() -> None:
    """Raises: Exception: the page cannot be read; the parent sees the exit code."""
    _limit()
    logging.disable(logging.CRITICAL)  # it would write what the page holds
    html = sys.stdin.buffer.read()
    from trafilatura import bare_extraction

    found: Any = bare_extraction(
        html, with_metadata=True, include_comments=False, include_tables=True, fast=True
    )
    page = {"title": "", "date": "", "text": ""}
    if found is not None:
        page = {
            "title": found.title or "",
            "date": found.date or "",
            "text": (found.text or "")[:TEXT_CHARS],
        }
    sys.stdout.write(json.dumps(page))


def _limit() -> None:
    with suppress(ImportError, ValueError, OSError):  # Windows has none, others lower ones
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


if __name__ == "__main__":
    main()
