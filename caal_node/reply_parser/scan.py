"""Finding the first of very many markers in running text, in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_END = ""


def _trie(words: Iterable[str]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for char in word:
            node = node.setdefault(char, {})
        node[_END] = {}
    return root


def _pattern(node: dict[str, Any]) -> str:
    branches = [
        re.escape(char) + _pattern(child) for char, child in sorted(node.items()) if char != _END
    ]
    if not branches:
        return ""
    if _END not in node:
        # The text may end inside a marker; then the match is the marker's beginning.
        branches.append(r"\Z")
    else:
        branches.append("")
    return "(?:" + "|".join(branches) + ")"


def prefix_pattern(words: Iterable[str]) -> str:
    """A regular expression for any of `words`, or the beginning of one at the text's end."""
    node = _trie(words)
    branches = [re.escape(char) + _pattern(child) for char, child in sorted(node.items())]
    return "(?:" + "|".join(branches) + ")"
