"""Finding tools by words and globs, over names and descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from mcp_bridge.tools import ToolInfo

MAX_PATTERNS: Final = 16
MAX_PATTERN_CHARS: Final = 200
"""Caps on what a model may ask at once: longer than any name, more than any sensible list."""
_WORD: Final = re.compile(r"[^\W_]+")
_IN_NAME: Final = 3
_IN_DESCRIPTION: Final = 1
"""A word of the name says more than one of the prose."""


def discover(patterns: str | Sequence[str], tools: Iterable[ToolInfo]) -> tuple[ToolInfo, ...]:
    """The tools that match any pattern, best first, equals in the order given.

    A pattern with `*`, `?` or `[` is a glob over the exposed name, the tool's own name and the
    description. Anything else is words: a tool matches when it has one of them, and scores by how
    many and where. Upper and lower case are one.
    """
    asked = [patterns] if isinstance(patterns, str) else list(patterns)
    asked = [pattern.strip().lower()[:MAX_PATTERN_CHARS] for pattern in asked[:MAX_PATTERNS]]
    scored = [(sum(_score(pattern, tool) for pattern in asked if pattern), tool) for tool in tools]
    return tuple(tool for score, tool in sorted(scored, key=lambda pair: -pair[0]) if score > 0)


def _score(pattern: str, tool: ToolInfo) -> int:
    names = (tool.name.lower(), tool.tool.lower())
    description = tool.description.lower()
    # A question ends in "?" and is no glob.
    if "*" in pattern or "[" in pattern or ("?" in pattern and " " not in pattern):
        if any(fnmatchcase(name, pattern) for name in names):
            return _IN_NAME
        return _IN_DESCRIPTION if fnmatchcase(description, pattern) else 0
    score = 0
    for word in set(_WORD.findall(pattern)):
        if any(word in name for name in names):
            score += _IN_NAME
        elif word in description:
            score += _IN_DESCRIPTION
    return score
