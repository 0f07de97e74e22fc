"""From a conversation's whole history to what the model is shown of it.

The prompt's beginning stays the same, byte for byte, from one request to the next, because a
model server reads again whatever comes after the first difference. So the history is only ever
appended to, except at a cut of the window; there, where the server must read anew anyway, the
tool data of what is gone becomes one message, which then stands still until the next cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from caal_node.context.pairing import repair
from caal_node.context.token_estimate import item_tokens, items_tokens
from caal_node.context.tool_data import ToolDataCache
from caal_node.context.window import KEPT, Window, WindowLimits, cut
from caal_node.core.items import CallItem, Item, UserItem

MAX_TURNS: Final = 20
"""Turns shown. Small models lose the thread in longer histories than that."""
MAX_TOKENS: Final = 6_144
"""Tokens of a whole prompt: three quarters of an 8,192-token context, the rest for the reply and
for what the estimate misses."""
DATA_ID: Final = "tool-data"
DATA_HEADING: Final = "(Earlier tool results, for reference. Not said by the user.)"

_REMEMBERED: Final = 32
"""Cuts whose message is remembered. One is in use; the others are of requests that were made
ahead of time for words that then turned out different."""
_CHARS_PER_TOKEN: Final = 2
"""First guess at how much JSON fits; the estimate then decides."""

# What a cut is known by: the calls that are gone, and where and at what the cut was made. Words
# that were guessed too early and given up therefore never stand for those that came.
_CutKey = tuple[tuple[str, ...], int, Item]


class ContextBuilder:
    """Builds the items of each request of one conversation.

    Args:
        max_turns: turns shown before the window is cut, at least 1.
        max_tokens: estimated tokens of the whole prompt, tools included.
        data: the tool data of this conversation.
        heading: first line of the tool-data message, for the model.
    """

    def __init__(
        self,
        max_turns: int = MAX_TURNS,
        max_tokens: int = MAX_TOKENS,
        data: ToolDataCache | None = None,
        *,
        heading: str = DATA_HEADING,
    ) -> None:
        if max_turns < 1 or max_tokens < 1:
            raise ValueError("max_turns and max_tokens must be above zero")
        self._max_turns = max_turns
        self._max_tokens = max_tokens
        self._data = data if data is not None else ToolDataCache()
        self._heading = heading
        self._messages: dict[_CutKey, UserItem | None] = {}

    def build(self, items: Iterable[Item], tools_tokens: int = 0) -> tuple[Item, ...]:
        """What to show: instructions, tool data of dropped calls (after a cut), the newest turns.

        The result depends on `items`, on `tools_tokens` (see `tokens.tools_tokens`) and on what
        the tool data held when the cut was first seen; never on other calls of this method.
        """
        whole = repair(items)
        window = cut(whole, WindowLimits(self._max_turns, self._max_tokens, tools_tokens))
        message = self._data_message(whole, window)
        return (*window.head, *((message,) if message else ()), *window.kept)

    def tighten(self, items: Iterable[Item], tools_tokens: int = 0) -> bool:
        """Show less from now on, as the server found what `build` gave of this too long.

        The estimate was wrong, or the server's context is smaller than was said: either will be
        so in the next turn too. False: nothing more can be left out, and nothing was changed.
        """
        whole, before = repair(items), self._max_tokens
        shown = self.build(whole, tools_tokens)
        self._max_tokens = int((items_tokens(shown) + tools_tokens) * KEPT)
        if items_tokens(self.build(whole, tools_tokens)) < items_tokens(shown):
            return True
        self._max_tokens = before
        return False

    def _data_message(self, whole: tuple[Item, ...], window: Window) -> UserItem | None:
        call_ids = tuple(item.call_id for item in window.dropped if isinstance(item, CallItem))
        if window.cut_at is None or not call_ids:
            return None
        key = (call_ids, window.cut_at, whole[window.cut_at])
        if key in self._messages:
            self._messages[key] = self._messages.pop(key)  # the one in use is the last to go
        else:
            self._messages[key] = self._render(call_ids, window.data_tokens)
            if len(self._messages) > _REMEMBERED:
                del self._messages[next(iter(self._messages))]
        return self._messages[key]

    def _render(self, call_ids: tuple[str, ...], max_tokens: int) -> UserItem | None:
        # A user's message and not a system's: Ollama gathers every system message in front of the
        # tools, so each new text would have the tools read again as well (2,910 tokens for 20 of
        # them), and many templates take a system message in first place only. A message of its
        # own and not part of a person's words, which stay as they were said. It stands before
        # another user's message: Ollama joins the two with an empty line, which reads well; who
        # talks to a server whose template insists on alternating roles joins them likewise, as
        # for a person who paused and went on.
        max_chars = max_tokens * _CHARS_PER_TOKEN
        while text := self._data.render(call_ids, max_chars=max_chars):
            message = UserItem(f"{self._heading}\n{text}", DATA_ID)
            tokens = item_tokens(message)
            if tokens <= max_tokens:
                return message
            max_chars = min(max_chars, len(text)) * max_tokens // tokens - 1
        return None
