"""Cuts the window of a conversation: its newest turns, as many as a model is to read.

A turn is kept or dropped whole. Wherever the history grows past a limit, the oldest turns are
dropped, down to `KEPT` of both limits: a cut costs a cold prompt, so it makes room for several.
A cut replays the history item by item, so the same history is always cut at the same places.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final

from caal_node.context.token_estimate import item_tokens, items_tokens, text_tokens
from caal_node.core.items import CallItem, ResultItem, SystemItem, ToolsItem, UserItem, WindowItem

DATA_ID: Final = "tool-data"
"""The id of the message with the tool data of dropped calls, and the beginning of others'."""
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
    kept: tuple[WindowItem, ...]
    """Whole turns, the newest at the end."""
    dropped: tuple[WindowItem, ...]
    """The dropped items, oldest first, without instructions."""
    cut_at: int | None
    """The position, in the given items, of the item that caused the last cut."""
    data_tokens: int
    """Tokens left between `head` and `kept` for the data of dropped calls; 0 without any."""


def cut(items: Sequence[WindowItem], limits: WindowLimits) -> Window:
    """Cut the window of a repaired conversation, in linear time.

    A turn begins with a user's words, or with what was put in front of them; what comes before the
    first of them belongs to the first turn. Turns are kept or dropped whole, so a call is never
    separated from its result, and the newest turn always stays. Where it alone is larger than the
    limit, notes replace its oldest results, but never its newest result and never anything that was
    said.

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


def _is_system(item: WindowItem) -> bool:
    return isinstance(item, SystemItem)


def data_ids(item: WindowItem) -> tuple[str, ...]:
    """Return the ids under which the tool data has what the item brought."""
    if isinstance(item, CallItem):
        return (item.call_id,)
    return tuple(item.id.removeprefix(f"{DATA_ID}:").split(",")) if _is_own_data(item) else ()


def _is_own_data(item: WindowItem) -> bool:
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

    def add(self, position: int, item: WindowItem) -> None:
        tokens = item_tokens(item)
        self._total += tokens
        turn = self._turn_of(position, item)
        if not isinstance(item, SystemItem):
            turn.tokens += tokens
        if data_ids(item):
            turn.has_calls = True
        elif isinstance(item, ResultItem):
            turn.results.append((position, item))
        if self._total > self._room or len(self.turns) > self._max_turns:
            self._drop_turns(position)
            if self._total > self._room:
                self._shorten(turn)

    def _turn_of(self, position: int, item: WindowItem) -> _Turn:
        begins = isinstance(item, UserItem | ToolsItem)
        if not self.turns or (begins and self.turns[-1].has_user):
            self.turns.append(_Turn(position))
        turn = self.turns[-1]
        turn.has_user = turn.has_user or (isinstance(item, UserItem) and not _is_own_data(item))
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
