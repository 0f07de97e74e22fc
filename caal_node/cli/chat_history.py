"""The lines that a person has typed to the agent, kept from one chat to the next."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from mcp_bridge.core.files import make_private_folder, open_regular, read_capped, replace_file

FILE_NAME: Final = "chat-history"
KEPT_BYTES: Final = 256 << 10
"""Some 4,000 lines. A file that has grown to twice as much is cut to the last of them."""
_READ_BYTES: Final = 64 << 20
"""A longer file is none of ours."""
_ENTRY: Final = b"\n# "
"""An entry begins with a comment that says when it was typed."""


def open_history(path: Path, *, max_chars: int) -> History:
    """Return the history in the file `path`, which is made for its user alone.

    Lines are cut to `max_chars`. Where the file cannot be used, lines are kept until the chat ends.
    """
    try:
        make_private_folder(path.parent)
        if not path.exists():
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        with open_regular(path):
            path.chmod(0o600)
        if path.stat().st_size > 2 * KEPT_BYTES:
            tail = read_capped(path, _READ_BYTES)[-KEPT_BYTES:]
            replace_file(path, tail[max(tail.find(_ENTRY), 0) :])
    except (OSError, ValueError):
        return InMemoryHistory()
    return _CappedHistory(path, max_chars)


class _CappedHistory(FileHistory):
    """A file whose lines are cut, and that may vanish or fill up without ending the chat."""

    def __init__(self, path: Path, max_chars: int) -> None:
        super().__init__(str(path))
        self._max_chars = max_chars

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string[: self._max_chars])
        except OSError:
            return
