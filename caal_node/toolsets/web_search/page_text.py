"""The text of a page's HTML, taken out in a process that can be killed."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from caal_node.core.errors import ToolBroke, ToolTimeout
from caal_node.models.child_process import environment_without_keys
from caal_node.toolsets.http_service import spoken

EXTRACTION_S: Final = 8.0
"""Seconds for one page. An article takes one, half of it for loading the library."""
UNREADABLE: Final = "I can't read that page."
_PROGRAM: Final = Path(__file__).with_name("page_extraction.py")


@dataclass(frozen=True, slots=True)
class PageText:
    """What a page says: a paragraph of the text a line."""

    title: str
    date: str
    text: str


async def text_of(html: bytes) -> PageText:
    """Return the text of a page, without its menus and advertisements.

    Raises:
        ToolTimeout: it takes too long.
        ToolBroke: it cannot be read.
    """
    # The program is started by its path, so that nothing of this package is loaded in it.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_PROGRAM)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment_without_keys(),
    )
    try:
        async with asyncio.timeout(EXTRACTION_S):
            output, _ = await process.communicate(html)
    except TimeoutError as error:
        failure = ToolTimeout(f"the page's text was not found in {EXTRACTION_S:g} seconds.")
        raise spoken(failure, UNREADABLE) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        found: object = json.loads(output) if process.returncode == 0 else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise spoken(ToolBroke("the page cannot be read."), UNREADABLE)
    page = cast("dict[str, Any]", found)
    return PageText(*(str(page.get(name) or "") for name in ("title", "date", "text")))
