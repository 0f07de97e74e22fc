"""Redacts text that comes in pieces of any size, such as a reply on its way to captions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from caal_node.redaction.secret_shapes import MAX_KEY_CHARS, PEM_CHARS

_PEM: Final = "-----BEGIN "
_PEM_END: Final = "-----END "


class StreamRedaction:
    """Passes on whole words, redacted; the last one is held back until it has ended.

    A private key is many lines, so it is held back from its first to its last.
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
        held = self._held
        if (begin := held.rfind(_PEM)) >= 0:
            end = held.find(_PEM_END, begin)
            is_closed = end >= 0 and "-----" in held[end + len(_PEM_END) :]
            if not is_closed and len(held) - begin < PEM_CHARS:
                return begin
        space = max(held.rfind(" "), held.rfind("\n"))
        if space < 0 and len(held) > MAX_KEY_CHARS:
            return len(held)
        return space + 1
