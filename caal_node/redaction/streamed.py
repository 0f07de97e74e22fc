"""Redacts text that comes in pieces of any size, such as a reply on its way to captions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from caal_node.redaction.secret_shapes import MAX_KEY_CHARS, PEM_CHARS

_PEM: Final = "-----BEGIN "
_PEM_END: Final = "-----END "
_PEM_DASHES: Final = "-----"

NUMBER_CHARS: Final = 64
"""Characters of words with digits that are held back together, as the parts of one number are."""


class StreamRedaction:
    """Passes on whole words, redacted; the last one is held back until it has ended.

    A number in groups (`+47 22 33 44 55`) is held back as one word, and a private key, which is
    many lines, from its first to its last.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact: Final = redact
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be said of the text by now."""
        self._held += piece
        whole = self._whole()
        ready, self._held = self._held[:whole], self._held[whole:]
        return self._redact(ready) if ready else ""

    def finish(self) -> str:
        """Return the rest, as nothing follows it."""
        ready, self._held = self._held, ""
        return self._redact(ready)

    def _whole(self) -> int:
        """Return where the text may be cut: between words, and in no number and no private key."""
        held = self._held
        begin = held.rfind(_PEM)
        key_end = _private_key_end(held, begin) if begin >= 0 else 0
        if key_end is None:
            return begin
        whole = max(held.rfind(" "), held.rfind("\n")) + 1
        if not whole and len(held) > MAX_KEY_CHARS:
            whole = len(held)
        while whole > 0 and len(held) - whole < NUMBER_CHARS:
            before = max(held.rfind(" ", 0, whole - 1), held.rfind("\n", 0, whole - 1)) + 1
            if not any(char.isdigit() for char in held[before:whole]):
                break
            whole = before
        return begin if begin < whole < key_end else whole


def _private_key_end(text: str, begin: int) -> int | None:
    """Return where the private key that begins there ends; None while its end is to come."""
    end = text.find(_PEM_END, begin)
    closing = text.find(_PEM_DASHES, end + len(_PEM_END)) if end >= 0 else -1
    if closing >= 0:
        return closing + len(_PEM_DASHES)
    return None if len(text) - begin < PEM_CHARS else begin
