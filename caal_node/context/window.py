"""Cuts the window of a conversation: the part that the model reads.

The history is replayed item by item. Wherever it grows past a limit, the oldest turns are dropped,
down to `KEPT` of both limits. So the same history is always cut at the same places, however often
it is asked for, and no state is needed between two requests. Between two cuts the window only
grows at its end, so that a model server can reuse its prompt cache.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final

from caal_node.context.token_estimate import item_tokens, items_tokens, text_tokens
from caal_node.core.items import CallItem, Item, ResultItem, SystemItem, UserItem

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


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """Limits of a window. `tokens` counts all that the model reads: instructions, tools, items."""

    turns: int
    tokens: int
    tools_tokens: int = 0


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
    together have more.
    """
    head = tuple(item for item in takewhile(_is_system, items) if isinstance(item, SystemItem))
    fixed = limits.tools_tokens + items_tokens(head)
    room = max(0, limits.tokens - -(-fixed // FIXED_STEP) * FIXED_STEP)
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


@dataclass(slots=True)
class _Turn:
    start: int
    tokens: int = 0
    """Tokens that dropping the turn frees: all but its instructions, which move to the head."""
    has_user: bool = False
    has_calls: bool = False
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
        if isinstance(item, CallItem):
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
        turn.has_user = turn.has_user or begins
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
