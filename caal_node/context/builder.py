"""Selects, from a conversation's whole history, the items that the model reads.

The prompt's beginning stays the same, byte for byte, from one request to the next, because a
model server evaluates everything after the first difference again. So the history only grows at
its end, except at a cut: wherever it grows past a limit, the oldest turns are dropped, down to
`KEPT` of both limits. There the server must evaluate it again anyway, and the tool data of the
dropped calls becomes one message, which stays as it is until the next cut.

A cut replays the history item by item. So the same history is always cut at the same places,
however often it is asked for: what is kept between two requests only saves work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from caal_node.context.pairing import Pairing
from caal_node.context.token_estimate import item_tokens, items_tokens
from caal_node.context.told_tools import NO_ITEMS
from caal_node.context.tool_data import ToolDataCache
from caal_node.context.window import (
    DATA_ID,
    DATA_TOKENS,
    ContextBudget,
    Cutter,
    Window,
    WindowLimits,
)
from caal_node.core.items import AssistantItem, Item, ToolsItem, UserItem, WindowItem

MAX_TURNS: Final = 20
"""Turns of a window. Small models lose the thread in longer histories."""
MAX_TOKENS: Final = 6_144
"""Tokens of a whole prompt: three quarters of an 8,192-token context. The rest is for the reply
and for what the estimate misses."""

TIGHTENED: Final = 0.75
"""The part of a prompt's tokens that is left where its server has found it too long."""
_CACHED_MESSAGES: Final = 32
"""Cuts whose message is kept. One is in use; the others belong to requests that LiveKit began early
for words that then changed."""
_CHARS_PER_TOKEN: Final = 2
"""A first guess at how much JSON fits; the token estimate then decides."""

# What identifies a cut: the dropped calls, its position, and the item there. So the cut of words
# that were guessed early and discarded is never taken for that of the final words.
_CutKey = tuple[tuple[str, ...], int, WindowItem]


class ContextBuilder:
    """Builds the items of each request of one conversation.

    Args:
        max_turns: Turns after which the window is cut, at least 1.
        max_tokens: Estimated tokens of the whole prompt, tools included.
        data: The tool data of this conversation.
    """

    def __init__(
        self,
        max_turns: int = MAX_TURNS,
        max_tokens: int = MAX_TOKENS,
        data: ToolDataCache | None = None,
    ) -> None:
        if max_turns < 1 or max_tokens < 1:
            raise ValueError("max_turns and max_tokens must be above zero")
        self._max_turns = max_turns
        self._max_tokens = max_tokens
        self._talk = 0
        self._budget: ContextBudget | None = None
        self._is_settled = False
        """Whether another limit would cut the conversation elsewhere, and have all of it read
        again: it was cut, or its server found it too long."""
        self._is_tightened = False
        self._left: int | None = None
        """Tokens that the last window had left before the next words cut it."""
        self._data = data if data is not None else ToolDataCache()
        self._pairing: Final = Pairing()
        self._cutter: Final = Cutter()
        self._messages: dict[_CutKey, UserItem | None] = {}
        self._places: dict[str, str] = {}
        """For each result that a program has added, the words in front of which it stands."""

    def share(self, budget: ContextBudget) -> None:
        """Take the limits of `budget`: another model may read more or less. What `tighten` found
        stays for as long as the budget does."""
        if budget != self._budget:
            self._budget = budget
            self._is_settled = self._is_tightened = False
            self._max_tokens, self._talk = budget.window, budget.talk

    def calibrate(self, ratio: float | None) -> None:
        """Use as much of the context as the server's own counts allow: at most `ratio` tokens for
        each estimated one. A conversation that was cut keeps its limit."""
        if ratio is not None and self._budget is not None and not self._is_settled:
            self._max_tokens = self._budget.counted(ratio)

    def build(
        self,
        items: Iterable[Item],
        tools_tokens: int = 0,
        told: Mapping[str, ToolsItem] = NO_ITEMS,
    ) -> tuple[WindowItem, ...]:
        """Return instructions, the tool data of dropped calls (after a cut), and the newest turns.

        `told` are tools by the id of the words in front of which they stand, for as long as these
        words do. The result depends on `items`, on `tools_tokens` (`token_estimate.tools_tokens`),
        on `told`, on the limits, and on the tool data at the first build of this cut, never on
        other calls of this method. What a program has added to the tool data stands where it was
        first built in.
        """
        history = self._with_additions(self._pairing.repair(items), told)
        limits = WindowLimits(self._max_turns, self._max_tokens, tools_tokens, self._talk)
        window = self._cutter.cut(history, limits)
        self._is_settled = self._is_tightened or window.cut_at is not None
        self._left = window.left
        message = self._data_message(history, window)
        return (*window.head, *((message,) if message else ()), *window.kept)

    def is_cut_behind(self, answer: str) -> bool:
        """Say whether the next words cut the last window, once it has `answer` at its end."""
        return self._left is not None and item_tokens(AssistantItem(answer)) > self._left

    def tighten(
        self,
        items: Iterable[Item],
        tools_tokens: int = 0,
        told: Mapping[str, ToolsItem] = NO_ITEMS,
    ) -> bool:
        """Lower the token limit, as the server found the result of `build` too long.

        The estimate was too low, or the server's context is smaller than the settings say; both
        will be so in the next turn too. Return False, and change nothing, where nothing more can
        be left out.
        """
        history, old_limits = tuple(items), (self._max_tokens, self._talk)
        old_tokens = items_tokens(self.build(history, tools_tokens, told))
        self._max_tokens = int((old_tokens + tools_tokens) * TIGHTENED)
        self._talk = int(min(self._talk, old_tokens) * TIGHTENED)
        if items_tokens(self.build(history, tools_tokens, told)) < old_tokens:
            self._is_tightened = True
            return True
        self._max_tokens, self._talk = old_limits
        return False

    def _data_message(self, history: tuple[WindowItem, ...], window: Window) -> UserItem | None:
        call_ids = window.dropped_ids
        if window.cut_at is None or not call_ids:
            return None
        key = (call_ids, window.cut_at, history[window.cut_at])
        if key in self._messages:
            self._messages[key] = self._messages.pop(key)  # the one in use is deleted last
        else:
            self._messages[key] = self._render(call_ids, window.data_tokens)
            if len(self._messages) > _CACHED_MESSAGES:
                del self._messages[next(iter(self._messages))]
        return self._messages[key]

    def _with_additions(
        self, history: tuple[Item, ...], told: Mapping[str, ToolsItem]
    ) -> tuple[WindowItem, ...]:
        """Put told tools in front of their words, and what a program has added in front of those
        that were the newest by then."""
        own = self._data.own_ids
        words = {item.id: at for at, item in enumerate(history) if isinstance(item, UserItem)}
        if not (own or told) or not words:
            return history
        newest = next(reversed(words))
        self._places = {
            each: place if (place := self._places.get(each)) in words else newest for each in own
        }
        here: dict[str, list[str]] = {}
        for each, place in self._places.items():
            here.setdefault(place, []).append(each)
        items: list[WindowItem] = []
        done = 0
        places = {*told, *here} & words.keys()
        for at, place in sorted((words[place], place) for place in places):
            items += history[done:at]
            # The tools come first, as a program may add something at any time.
            items += [told[place]] if place in told else []
            chars = DATA_TOKENS * _CHARS_PER_TOKEN
            own_ids = here.get(place, ())
            if own_ids and (text := self._data.message(own_ids, max_chars=chars)):
                items.append(UserItem(text, f"{DATA_ID}:{','.join(own_ids)}"))
            done = at
        return (*items, *history[done:])

    def _render(self, call_ids: tuple[str, ...], max_tokens: int) -> UserItem | None:
        # It is a user's message and not a system's, because Ollama puts every system message in
        # front of the tools, so that each new text would make it evaluate the tools again (2,910
        # tokens for 20 of them), and because many templates allow a system message only in first
        # place. It is a message of its own, so that a person's words stay as they were said. Ollama
        # joins it to the user's message behind it with an empty line, as a client must do for a
        # server whose template insists on alternating roles.
        max_chars = max_tokens * _CHARS_PER_TOKEN
        while text := self._data.message(call_ids, max_chars=max_chars):
            message = UserItem(text, DATA_ID)
            tokens = item_tokens(message)
            if tokens <= max_tokens:
                return message
            max_chars = min(max_chars, len(text)) * max_tokens // tokens - 1
        return None
