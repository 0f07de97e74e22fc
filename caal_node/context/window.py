"""Which part of a conversation the model is shown.

The history is replayed item by item, and where it first grows past a limit the oldest turns go,
down to `KEPT` of both limits. So the same history is always cut at the same places, whoever asks
and how often, with nothing to remember between two requests; and between two cuts the window only
grows at its end, which is what keeps a model server's prompt cache warm.
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
"""Part of the limits that a cut leaves. A cut costs a cold prompt, so it makes room for several
turns; less than this would forget more than the model server gains."""
DATA_TOKENS: Final = 800
"""Tokens kept free, after a cut, for the data of calls that are gone: about ten short records.
Two cores read it in some 15 s, once a cut."""
DATA_PART: Final = 5
"""At most a fifth of the room goes to that data."""
FIXED_STEP: Final = 128
"""Tokens that instructions and tools are rounded up to, so that instructions which carry the
time of day do not move every cut whenever they change by a word."""
BEGINNING_CHARS: Final = 160
"""Characters of a shortened result that its note keeps: enough to know what it was."""


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """`tokens` counts everything the model reads: instructions, tools (`tools_tokens`), items."""

    turns: int
    tokens: int
    tools_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    head: tuple[SystemItem, ...]
    """Instructions: those the conversation begins with, then those of turns that are gone."""
    kept: tuple[Item, ...]
    """Whole turns, the newest at the end."""
    dropped: tuple[Item, ...]
    """What was cut away, oldest first, without instructions."""
    cut_at: int | None
    """Position, in the items given, of the item that set off the last cut."""
    data_tokens: int
    """Room left between head and kept for the data of dropped calls; 0 where none is dropped."""


def cut(items: Sequence[Item], limits: WindowLimits) -> Window:
    """The window of a repaired conversation. Linear in its length.

    A turn begins with a user's words; what comes before the first of them belongs to the first
    turn. Turns are kept or dropped whole, so a call is never parted from its result, and the
    newest turn always stays. Where it outgrows the limit by itself, its oldest results are
    replaced by notes, never its newest result and never anything that was said.

    More than `limits.tokens` comes out only where head, tools, words and that newest result are
    more by themselves.
    """
    head = tuple(item for item in takewhile(_is_system, items) if isinstance(item, SystemItem))
    fixed = limits.tools_tokens + items_tokens(head)
    room = max(0, limits.tokens - -(-fixed // FIXED_STEP) * FIXED_STEP)
    replay = _Replay(limits.turns, room)
    for position in range(len(head), len(items)):
        replay.see(position, items[position])

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
    """What dropping the turn frees: all of it but its instructions, which move to the head."""
    has_user: bool = False
    has_calls: bool = False
    results: deque[tuple[int, ResultItem]] = field(default_factory=deque[tuple[int, ResultItem]])
    """Results with their positions that can still be shortened, oldest first."""


class _Replay:
    """The window's state while the history runs by."""

    def __init__(self, max_turns: int, room: int) -> None:
        self.turns: list[_Turn] = []
        self.notes: dict[int, ResultItem] = {}
        self.cut_at: int | None = None
        self.reserved = 0
        self._total = 0
        self._room = room
        self._low = int(room * KEPT)
        self._max_turns = max_turns
        self._low_turns = max(1, int(max_turns * KEPT))

    def see(self, position: int, item: Item) -> None:
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
        gone = 0
        while gone < len(self.turns) - 1 and (
            self._total > self._low or len(self.turns) - gone > self._low_turns
        ):
            turn = self.turns[gone]
            self._total -= turn.tokens
            if turn.has_calls and not self.reserved:
                self.reserved = min(DATA_TOKENS, self._room // DATA_PART)
                self._total += self.reserved
            gone += 1
        if gone:
            del self.turns[:gone]
            self.cut_at = position

    def _shorten(self, turn: _Turn) -> None:
        while self._total > self._low and len(turn.results) > 1:
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
