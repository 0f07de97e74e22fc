"""Texts that people wrote, made fit for one line of a prompt, a log or a voice."""

from __future__ import annotations

import re
from typing import Final

# Control characters, and those that turn the direction of text around: nothing an author needs
# here, and a way to hide words from the person who reads the notes.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """Make all line ends one kind and take out the characters that do not show."""
    text = text.encode("utf-8", errors="replace").decode()
    return _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, limit: int) -> str:
    """Put a text on one line of at most `limit` characters."""
    return " ".join(text.split())[:limit]


def clip(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters; an ellipsis shows where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
