"""Selects, from a conversation's whole history, the items that the model reads.

The prompt's beginning stays the same, byte for byte, from one request to the next, because a
model server evaluates everything after the first difference again. So the history only grows at
its end, except at a cut: wherever it grows past a limit, the oldest turns are dropped, down to
`KEPT` of both limits. There the server must evaluate it again anyway, and the tool data of the
dropped calls becomes one message, which stays as it is until the next cut.

A cut replays the history item by item. So the same history is always cut at the same places,
however often it is asked for, and no state is needed between two requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final

from caal_node.context.budget import ContextBudget
from caal_node.context.pairing import repair
from caal_node.context.token_estimate import item_tokens, items_tokens, text_tokens
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.items import CallItem, Item, ResultItem, SystemItem, UserItem

MAX_TURNS: Final = 20
"""Turns of a window. Small models lose the thread in longer histories."""
MAX_TOKENS: Final = 6_144
"""Tokens of a whole prompt: three quarters of an 8,192-token context. The rest is for the reply
and for what the estimate misses."""
DATA_ID: Final = "tool-data"

_CACHED_MESSAGES: Final = 32
"""Cuts whose message is kept. One is in use; the others belong to requests that LiveKit began early
for words that then changed."""
_CHARS_PER_TOKEN: Final = 2
"""A first guess at how much JSON fits; the token estimate then decides."""

# What identifies a cut: the dropped calls, its position, and the item there. So the cut of words
# that were guessed early and discarded is never taken for that of the final words.
_CutKey = tuple[tuple[str, ...], int, Item]

KEPT: Final = 0.75
"""The part of the limits that a cut leaves. A cut costs a cold prompt, so it makes room for several
turns; to keep less would forget more than the model server gains."""
DATA_TOKENS: Final = 800
"""Tokens that a cut leaves free for the data of dropped calls: about ten short records. Two cores
evaluate them in some 15 s, once after each cut."""
DATA_PART: Final = 5
"""That data gets at most a fifth of the room."""
FIXED_STEP: Final = 128
"""The tokens of instructions and tools are rounded up to a multiple of this, so that instructions
which contain the time of day do not move every cut when a word of them changes."""
BEGINNING_CHARS: Final = 160
"""Characters of a shortened result that its note keeps: enough to recognise it."""


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
        self._data = data if data is not None else ToolDataCache()
        self._messages: dict[_CutKey, UserItem | None] = {}
        self._places: dict[str, str] = {}
        """For each result that a program has added, the words in front of which it stands."""

    def share(self, budget: ContextBudget) -> None:
        """Take the limits of `budget`: another model may read more or less. What `tighten` found
        stays for as long as the budget does."""
        if budget != self._budget:
            self._budget = budget
            self._max_tokens, self._talk = budget.window, budget.talk

    def build(self, items: Iterable[Item], tools_tokens: int = 0) -> tuple[Item, ...]:
        """Return instructions, the tool data of dropped calls (after a cut), and the newest turns.

        The result depends on `items`, on `tools_tokens` (see `token_estimate.tools_tokens`), on the
        limits, and on the tool data at the first build of this cut, never on other calls of this
        method. What a program has added to the tool data stands where it was first built in.
        """
        history = self._with_own_data(repair(items))
        limits = WindowLimits(self._max_turns, self._max_tokens, tools_tokens, self._talk)
        window = cut(history, limits)
        message = self._data_message(history, window)
        return (*window.head, *((message,) if message else ()), *window.kept)

    def tighten(self, items: Iterable[Item], tools_tokens: int = 0) -> bool:
        """Lower the token limit, as the server found the result of `build` too long.

        The estimate was too low, or the server's context is smaller than the settings say; both
        will be so in the next turn too. Return False, and change nothing, where nothing more can
        be left out.
        """
        history, old_limits = tuple(items), (self._max_tokens, self._talk)
        old_tokens = items_tokens(self.build(history, tools_tokens))
        self._max_tokens = int((old_tokens + tools_tokens) * KEPT)
        self._talk = int(min(self._talk, old_tokens) * KEPT)
        if items_tokens(self.build(history, tools_tokens)) < old_tokens:
            return True
        self._max_tokens, self._talk = old_limits
        return False

    def _data_message(self, history: tuple[Item, ...], window: Window) -> UserItem | None:
        call_ids = tuple(call_id for item in window.dropped for call_id in _data_ids(item))
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

    def _with_own_data(self, history: tuple[Item, ...]) -> tuple[Item, ...]:
        """Put what a program has added in front of the words that were the newest by then."""
        own = self._data.own_ids
        words = {item.id: at for at, item in enumerate(history) if isinstance(item, UserItem)}
        if not own or not words:
            return history
        newest = next(reversed(words))
        self._places = {
            each: place if (place := self._places.get(each)) in words else newest for each in own
        }
        items: list[Item] = []
        for at, item in enumerate(history):
            if words.get(item.id) == at:
                here = [each for each, place in self._places.items() if place == item.id]
                chars = DATA_TOKENS * _CHARS_PER_TOKEN
                if text := self._data.message(here, max_chars=chars):
                    items.append(UserItem(text, f"{DATA_ID}:{','.join(here)}"))
            items.append(item)
        return tuple(items)

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


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """Limits of a window. `tokens` counts all that the model reads: instructions, tools, items.

    `talk` is what the items get at least, however many tools there are.
    """

    turns: int
    tokens: int
    tools_tokens: int = 0
    talk: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    head: tuple[SystemItem, ...]
    """The instructions that the conversation begins with, then those of dropped turns."""
    kept: tuple[Item, ...]
    """Whole turns, the newest at the end."""
    dropped: tuple[Item, ...]
    """The dropped items, oldest first, without instructions."""
    cut_at: int | None
    """The position, in the given items, of the item that caused the last cut."""
    data_tokens: int
    """Tokens left between `head` and `kept` for the data of dropped calls; 0 without any."""


def cut(items: Sequence[Item], limits: WindowLimits) -> Window:
    """Cut the window of a repaired conversation, in linear time.

    A turn begins with a user's words; what comes before the first of them belongs to the first
    turn. Turns are kept or dropped whole, so a call is never separated from its result, and the
    newest turn always stays. Where it alone is larger than the limit, notes replace its oldest
    results, but never its newest result and never anything that was said.

    The window has more than `limits.tokens` only where head, tools, words and that newest result
    together have more, or head, tools and `limits.talk` do.
    """
    head = tuple(item for item in takewhile(_is_system, items) if isinstance(item, SystemItem))
    fixed = limits.tools_tokens + items_tokens(head)
    room = max(limits.talk, limits.tokens - -(-fixed // FIXED_STEP) * FIXED_STEP)
    replay = _Replay(limits.turns, room)
    for position in range(len(head), len(items)):
        replay.add(position, items[position])

    start = replay.turns[0].start if replay.turns else len(items)
    before = items[len(head) : start]
    return Window(
        head=(*head, *(item for item in before if isinstance(item, SystemItem))),
        kept=tuple(replay.notes.get(at, items[at]) for at in range(start, len(items))),
        dropped=tuple(item for item in before if not isinstance(item, SystemItem)),
        cut_at=replay.cut_at,
        data_tokens=replay.reserved,
    )


def _is_system(item: Item) -> bool:
    return isinstance(item, SystemItem)


def _data_ids(item: Item) -> tuple[str, ...]:
    """Return the ids under which the tool data has what the item brought."""
    if isinstance(item, CallItem):
        return (item.call_id,)
    return tuple(item.id.removeprefix(f"{DATA_ID}:").split(",")) if _is_own_data(item) else ()


def _is_own_data(item: Item) -> bool:
    return isinstance(item, UserItem) and item.id.startswith(f"{DATA_ID}:")


@dataclass(slots=True)
class _Turn:
    start: int
    tokens: int = 0
    """Tokens that dropping the turn frees: all but its instructions, which move to the head."""
    has_user: bool = False
    has_calls: bool = False
    """Whether there may be tool data of it, of calls or of a program's own."""
    results: deque[tuple[int, ResultItem]] = field(default_factory=deque[tuple[int, ResultItem]])
    """The results that can still be shortened with their positions, oldest first."""


class _Replay:
    """The window's state while the history is replayed."""

    def __init__(self, max_turns: int, room: int) -> None:
        self.turns: list[_Turn] = []
        self.notes: dict[int, ResultItem] = {}
        self.cut_at: int | None = None
        self.reserved = 0
        self._total = 0
        self._room = room
        self._kept_tokens = int(room * KEPT)
        self._max_turns = max_turns
        self._kept_turns = max(1, int(max_turns * KEPT))

    def add(self, position: int, item: Item) -> None:
        tokens = item_tokens(item)
        self._total += tokens
        turn = self._turn_of(position, item)
        if not isinstance(item, SystemItem):
            turn.tokens += tokens
        if _data_ids(item):
            turn.has_calls = True
        elif isinstance(item, ResultItem):
            turn.results.append((position, item))
        if self._total > self._room or len(self.turns) > self._max_turns:
            self._drop_turns(position)
            if self._total > self._room:
                self._shorten(turn)

    def _turn_of(self, position: int, item: Item) -> _Turn:
        begins = isinstance(item, UserItem)
        if not self.turns or (begins and self.turns[-1].has_user):
            self.turns.append(_Turn(position))
        turn = self.turns[-1]
        turn.has_user = turn.has_user or (begins and not _is_own_data(item))
        return turn

    def _drop_turns(self, position: int) -> None:
        dropped = 0
        while dropped < len(self.turns) - 1 and (
            self._total > self._kept_tokens or len(self.turns) - dropped > self._kept_turns
        ):
            turn = self.turns[dropped]
            self._total -= turn.tokens
            if turn.has_calls and not self.reserved:
                self.reserved = min(DATA_TOKENS, self._room // DATA_PART)
                self._total += self.reserved
            dropped += 1
        if dropped:
            del self.turns[:dropped]
            self.cut_at = position

    def _shorten(self, turn: _Turn) -> None:
        while self._total > self._kept_tokens and len(turn.results) > 1:
            position, result = turn.results.popleft()
            note = _note(result)
            freed = text_tokens(result.output) - text_tokens(note.output)
            if freed > 0:
                self.notes[position] = note
                self._total -= freed
                turn.tokens -= freed


def _note(result: ResultItem) -> ResultItem:
    beginning = " ".join(result.output[:BEGINNING_CHARS].split())
    return replace(
        result,
        output=f"(shortened to make room: {len(result.output)} characters, beginning {beginning})",
    )
