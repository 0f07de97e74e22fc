"""Emoji, faces and drawn signs: what has no sound."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

EMOJI: Final = re.compile(
    "[\U0001f000-\U0001fbff☀-➿⬀-⯿⌀-⏿■-◿"
    "️︎⃣\U000e0020-\U000e007f\ufffc\u200b\ufeff\u00ad™®]"
    "|(?<=[\U0001f000-\U0001fbff☀-➿️])\u200d"
)
"""Unicode's emoji and picture blocks, and characters that are not to be seen."""
STARS: Final = re.compile("[★⭐]️?(?:[★⭐]️?)+")
_FACE: Final = re.compile(
    r"(?:[:;=][-'o^]?(?:\)+|\(+|D+|[PpOo3*|\\/\]\[])|[xX]D+|</?3+|\([:;]|\^_*\^|-_+-|T_T|>_+<|[oO]_[oO]"
    r"|\\o/|¯\\_\(ツ\)_/¯|ʕ\S+ʔ)(?P<end>[.,!?]*)"
)
_WRITING: Final = frozenset("©°№√∞∑∏∫∂∆±×÷−≤≥≠≈")
"""Signs that belong to writing: a word of them alone is no drawing."""
_SYMBOLS: Final = ("So", "Sk", "Sm", "Cn", "Co")
"""Unicode's categories of which drawings are made; letters and punctuation are none of them."""


def without_pictures(word: str) -> str:
    """`word` without what is only seen; empty when nothing else is in it."""
    if word.isascii():
        if (face := _FACE.fullmatch(word)) is not None:
            return face["end"]
        return word
    if (face := _FACE.fullmatch(word)) is not None:
        return face["end"]
    word = EMOJI.sub("", word)
    return "" if _is_drawing(word) else word


def _is_drawing(word: str) -> bool:
    """`(╯°□°)╯︵`, `┻━┻`, `───`: no letter, no digit, and signs that no text has."""
    if any(c.isalnum() for c in word):
        return False
    odd = (c for c in word if not c.isascii() and c not in _WRITING)
    return any(unicodedata.category(c) in _SYMBOLS for c in odd)
