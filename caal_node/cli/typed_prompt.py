"""The prompt of `caal-node chat` on a terminal: line editing, completion, and lines typed before.

It is a module of its own, as prompt_toolkit takes half a second, which lines from a pipe need not
wait for.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import DummyHistory, FileHistory, History, InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout

from mcp_bridge.core.files import make_private_folder, open_regular, read_capped, replace_file

# The lines that a person has typed to the agent, kept from one chat to the next.

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


# Line editing and completion.

PROMPT: Final = "> "


class ChatCompleter(Completer):
    """Completes commands, what they take, and names of tools among a person's words."""

    def __init__(self, words: Callable[[str], Sequence[str]]) -> None:
        """`words` are those that may follow a command such as `/model`; of "", the commands."""
        self._words: Final = words

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield what the word before the cursor may become."""
        before, space, begun = document.text_before_cursor.rpartition(" ")
        is_command = before.startswith("/") or (not space and begun.startswith("/"))
        if is_command or begun:
            for word in self._words(before if is_command else "/tools"):
                if word.startswith(begun):
                    yield Completion(word, start_position=-len(begun))


class TypedPrompt:
    """Asks a person at a terminal for one line after the other."""

    def __init__(self, history: History, words: Callable[[str], Sequence[str]]) -> None:
        self._hidden: PromptSession[str] = PromptSession(history=DummyHistory())
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=ChatCompleter(words),
            complete_while_typing=False,  # Tab asks for it; a menu over every word would not
            enable_history_search=True,
            enable_suspend=True,  # Ctrl-Z
        )

    async def line(self, *, hidden: bool = False) -> str | None:
        """Return the line that is typed next, or None where Ctrl-C is pressed instead.

        What is printed meanwhile appears above it. A `hidden` one is shown as stars, and is not
        kept.

        Raises:
            EOFError: Ctrl-D was pressed, or the terminal was closed.
        """
        try:
            with patch_stdout(raw=True):
                if hidden:
                    return await self._hidden.prompt_async(
                        PROMPT, is_password=True, handle_sigint=False
                    )
                return await self._session.prompt_async(PROMPT, handle_sigint=False)
        except KeyboardInterrupt:  # a key, and no signal, while a line is typed
            return None
