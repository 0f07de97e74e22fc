"""What a listener says in passing: "mm-hm", "right", "okay"."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from typing import Final

from caal_node.core.prompt_files import read

MAX_CHARS: Final = 60
"""Characters of the longest. More words are meant to be heard."""
MAX_PHRASES: Final = 3
"""Phrases in a row; "okay, okay, okay, okay" wants the other one to stop."""
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_PLAIN: Final = re.compile(r"[\w\s.,;'!\-–—…]*")
"""What one is written with; "right?" asks something."""


def is_backchannel(words: str) -> bool:
    """Say whether all of `words` is what people say while they listen, in one language.

    It is a closed list on purpose: whatever else is said over the agent's words interrupts it.
    """
    text = unicodedata.normalize("NFKC", words[: MAX_CHARS + 1]).replace("’", "'").casefold()
    said = tuple(_WORD.findall(text))
    if not said or len(words) > MAX_CHARS or not _PLAIN.fullmatch(text):
        return False
    return any(_is_made_of(said, phrases) for phrases in _LANGUAGES)


def _is_made_of(said: tuple[str, ...], phrases: tuple[tuple[str, ...], ...]) -> bool:
    for _ in range(MAX_PHRASES):
        first = next((each for each in phrases if said[: len(each)] == each), None)
        if first is None:
            return False
        said = said[len(first) :]
        if not said:
            return True
    return False


_LANGUAGES: Final = tuple(
    tuple(
        sorted((tuple(_WORD.findall(each.casefold())) for each in phrases), key=len, reverse=True)
    )
    for phrases in tomllib.loads(read("backchannels.toml")).values()
)
