"""What a text quotes: somebody else says it."""

from __future__ import annotations

import re
from typing import Final

_QUOTED: Final = re.compile(r"\"[^\"]*(?:\"|$)|“[^”]*(?:”|$)|«[^»]*(?:»|$)|„[^“”]*(?:[“”]|$)")


def without_quotes(text: str) -> str:
    """Return a text without what stands in quotation marks; one that is not closed goes on to its
    end."""
    return _QUOTED.sub(" ", text)
