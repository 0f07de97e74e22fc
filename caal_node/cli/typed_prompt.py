"""The prompt of `caal-node chat` on a terminal: line editing, history and completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.patch_stdout import patch_stdout

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
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=ChatCompleter(words),
            complete_while_typing=False,  # Tab asks for it; a menu over every word would not
            enable_history_search=True,
        )

    async def line(self) -> str | None:
        """Return the line that is typed next, or None where Ctrl-C is pressed instead.

        What is printed meanwhile appears above it.

        Raises:
            EOFError: Ctrl-D was pressed, or the terminal was closed.
        """
        try:
            with patch_stdout(raw=True):
                return await self._session.prompt_async(PROMPT, handle_sigint=False)
        except KeyboardInterrupt:  # a key, and no signal, while a line is typed
            return None
