"""Cuts the window of a conversation: its newest turns, as many as a model is to read.

A turn is kept or dropped whole. Wherever the history grows past a limit, the oldest turns are
dropped, down to `KEPT` of both limits: a cut costs a cold prompt, so it makes room for several.
A cut replays the history item by item, so the same history is always cut at the same places. What
is kept of a replay saves doing its beginning again; it never changes a window.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final

from caal_node.context.pairing import settled_length
from caal_node.context.token_estimate import (
    TOOLS_TOKENS,
    PromptTools,
    item_tokens,
    items_tokens,
    text_tokens,
)
from caal_node.core.items import CallItem, ResultItem, SystemItem, ToolsItem, UserItem, WindowItem

# How the tokens that a model reads are shared out between instructions, tools, talk and reply.
#
# The talk has a floor of its own: tools alone could fill the window, and every turn would then have
# forgotten all earlier ones. Where even the context is too small for both, tools are left out, the
# last ones of the table first.

WINDOW_SHARE: Final = 0.75
"""The part of a context that a whole prompt gets, until its server has counted one. The rest is for
the reply and for what the estimate misses."""
LEAST_RATIO: Final = 0.6
"""A server that counts fewer tokens for each estimated one has left some out."""
COUNTED_MARGIN: Final = 1.1
"""By how much the tokens of what comes next may be above those that were counted."""
WINDOW_STEP: Final = 512
"""What a whole prompt may have is rounded down to a multiple of this, as each count differs."""
TALK_PART: Final = 4
"""The talk gets at least a quarter of a whole prompt, however many tools there are: with the
defaults 1,536 tokens, some ten spoken turns."""
LONG_TALK_TOKENS: Final = 5_000
"""What twenty turns with calls and results need, 250 tokens each (docs/figures.md has them)."""
FRONT_TOKENS_MAX: Final = 6_000
"""Estimated tokens of tools, some 40, that stand in front of a conversation in any context, if its
owner does not say otherwise: two cores need a minute to read them."""
SMALL_FRONT_PART: Final = 4
"""In a context too small for twenty turns, the tools in front get at most a quarter of it."""
REPLY_TOKENS_MAX: Final = 512
"""Tokens that are kept free for a reply: two minutes of speech."""
REPLY_PART: Final = 8
"""In a small context a reply gets an eighth of it."""
OVERESTIMATE: Final = 1.2
"""By how much the estimate of a schema's tokens is too high at least (`token_estimate`)."""
_ROUND: Final = 1_024
"""The context that is advised is a multiple of this."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """A model's context, in tokens."""

    context: int
    """What its server reads of a prompt and its reply together."""
    window: int
    """What a whole prompt may have, as estimated."""
    told: bool = False
    """Whether the server told its context; else a setting did."""

    @property
    def talk(self) -> int:
        """What the conversation gets at least."""
        return self.window // TALK_PART

    def tools(self, head: int) -> int:
        """Return how many estimated tokens of tools fit beside the talk, with `head` tokens of
        instructions."""
        return max(0, int((self.context - self._beside(head)) * OVERESTIMATE))

    def front(self, head: int) -> int:
        """Return how many estimated tokens all tools may have and stand in front: as many as fit
        beside twenty turns."""
        beside = head + LONG_TALK_TOKENS + self._reply
        fitting = max(int((self.context - beside) * OVERESTIMATE), self.context // SMALL_FRONT_PART)
        return min(fitting, FRONT_TOKENS_MAX)

    def context_for(self, tools: int, head: int) -> int:
        """Return a context in which tools of so many estimated tokens fit, beside the talk that it
        would have."""
        fixed = tools / OVERESTIMATE + head + REPLY_TOKENS_MAX
        needed = math.ceil(fixed / (1 - WINDOW_SHARE / TALK_PART))
        return -(-needed // _ROUND) * _ROUND

    def counted(self, ratio: float) -> int:
        """Return what a whole prompt may have, as estimated, where its server has counted at most
        `ratio` tokens for each estimated one."""
        fitting = (self.context - self._reply) / (max(ratio, LEAST_RATIO) * COUNTED_MARGIN)
        return max(int(fitting) // WINDOW_STEP * WINDOW_STEP, min(self.window, WINDOW_STEP))

    def _beside(self, head: int) -> int:
        return head + self.talk + self._reply

    @property
    def _reply(self) -> int:
        return min(REPLY_TOKENS_MAX, self.context // REPLY_PART)


def budget(*, told: int | None, num_ctx: int | None, default: int) -> ContextBudget:
    """Return the budget of a model.

    Args:
        told: The context that the server told, if it did.
        num_ctx: The context that the owner has set, if they have; then no more is used.
        default: The context where there is neither.
    """
    sizes = [size for size in (told, num_ctx) if size]
    context = min(sizes) if sizes else default
    return ContextBudget(context, int(context * WINDOW_SHARE), told=context == told)


def fitting(
    tools: PromptTools,
    most: int,
    tokens: Callable[[PromptTools], int],
    always: str,
) -> PromptTools:
    """Return those of `tools`, in their order, that have `most` tokens together as `tokens` counts.

    The first ones go before the last. The one named `always` stays, since it finds the others.
    """
    if tokens(tools) <= most:
        return tools
    left, kept = most - TOOLS_TOKENS, set[str]()
    for name in sorted(tools.names, key=lambda name: name != always):
        size = tokens(tools.only((name,))) - TOOLS_TOKENS
        if size <= left or name == always:
            kept.add(name)
            left -= size
    return tools.only(kept)


DATA_ID: Final = "tool-data"
"""The id of the message with the tool data of dropped calls, and the beginning of others'."""
KEPT: Final = 0.5
"""The part of the limits that a cut leaves. A cut costs a cold prompt, so it makes room for many
turns."""
AHEAD_PART: Final = 10
"""A turn begins with at least a tenth of the room, or a cut is made in front of it: a server can
read what is left while the answer before it is heard, and not while somebody waits."""
DATA_TOKENS: Final = 800
"""Tokens that a cut leaves free for the data of dropped calls: about ten short records. Two cores
evaluate them in some 15 s, once after each cut."""
DATA_PART: Final = 5
"""That data gets at most a fifth of the room."""
FIXED_STEP: Final = 128
"""The tokens of instructions and tools are rounded up to a multiple of this, so that instructions
which contain the time of day do not move every cut when a word of them changes."""
SHORTENED: Final = "(shortened to make room"
"""How the note begins that takes a result's place."""
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
    dropped_ids: tuple[str, ...]
    """The ids under which the tool data has what the dropped items brought."""
    cut_at: int | None
    """The position, in the given items, of the item that caused the last cut."""
    data_tokens: int
    """Tokens left between `head` and `kept` for the data of dropped calls; 0 without any."""
    left: int
    """Tokens that may still come before the next words cut it; negative where they do anyway."""


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
    return Cutter().cut(items, limits)


class Cutter:
    """Cuts the windows of one conversation, whose history mostly begins as the one before did.

    It returns what `cut` does. The replay of the beginning is kept, so that a request costs what
    its newest turns do.
    """

    def __init__(self) -> None:
        self._settled: tuple[WindowItem, ...] = ()
        self._replay: _Replay | None = None

    def cut(self, items: Sequence[WindowItem], limits: WindowLimits) -> Window:
        head = tuple(item for item in takewhile(_is_system, items) if isinstance(item, SystemItem))
        fixed = limits.tools_tokens + items_tokens(head)
        room = max(limits.talk, limits.tokens - -(-fixed // FIXED_STEP) * FIXED_STEP)
        talk = tuple(items[len(head) :])

        replay, known = self._replay, len(self._settled)
        if replay is None or replay.limits != (limits.turns, room) or talk[:known] != self._settled:
            replay, known = _Replay(limits.turns, room), 0
        until = max(known, settled_length(talk))
        for position in range(known, until):
            replay.add(position, talk[position])
        self._settled, self._replay = talk[:until], replay
        replay = replay.copy()
        for position in range(until, len(talk)):
            replay.add(position, talk[position])

        start = replay.turns[0].start if replay.turns else len(talk)
        return Window(
            head=(*head, *replay.moved),
            kept=tuple(replay.notes.get(at, talk[at]) for at in range(start, len(talk))),
            dropped=tuple(replay.dropped),
            dropped_ids=tuple(replay.dropped_ids),
            cut_at=None if replay.cut_at is None else len(head) + replay.cut_at,
            data_tokens=replay.reserved,
            left=replay.left,
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
    items: list[WindowItem] = field(default_factory=list[WindowItem])
    data_ids: list[str] = field(default_factory=list[str])
    """The ids of what there may be tool data of, of calls or of a program's own."""
    results: deque[tuple[int, ResultItem]] = field(default_factory=deque[tuple[int, ResultItem]])
    """The results that can still be shortened with their positions, oldest first."""

    def copy(self) -> _Turn:
        return replace(
            self,
            items=self.items.copy(),
            data_ids=self.data_ids.copy(),
            results=self.results.copy(),
        )


class _Replay:
    """The window's state while the history is replayed."""

    def __init__(self, max_turns: int, room: int) -> None:
        self.limits = (max_turns, room)
        self.turns: list[_Turn] = []
        self.moved: list[SystemItem] = []
        """The instructions of dropped turns."""
        self.dropped: list[WindowItem] = []
        self.dropped_ids: list[str] = []
        self.notes: dict[int, ResultItem] = {}
        self.cut_at: int | None = None
        self.reserved = 0
        self._total = 0
        self._room = room
        self._ahead = room - room // AHEAD_PART
        self._kept_tokens = int(room * KEPT)
        self._max_turns = max_turns
        self._kept_turns = max(1, int(max_turns * KEPT))

    def copy(self) -> _Replay:
        copied = copy(self)
        # Only the newest turn still changes.
        copied.turns = [*self.turns[:-1], *(turn.copy() for turn in self.turns[-1:])]
        copied.notes = self.notes.copy()
        copied.moved, copied.dropped = self.moved.copy(), self.dropped.copy()
        copied.dropped_ids = self.dropped_ids.copy()
        return copied

    @property
    def left(self) -> int:
        """The tokens that may still come before the turn that begins next causes a cut."""
        if len(self.turns) >= self._max_turns:
            return -1
        # The turn that the words follow on is kept, unless there is no room for them.
        most = self._ahead if len(self.turns) > 1 else self._room - item_tokens(UserItem(""))
        return most - self._total

    def add(self, position: int, item: WindowItem) -> None:
        tokens = item_tokens(item)
        turn = self._turn_of(position, item)
        self._total += tokens
        turn.items.append(item)
        if not isinstance(item, SystemItem):
            turn.tokens += tokens
        if brought := data_ids(item):
            turn.data_ids += brought
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
            if self._total > self._ahead:
                self._drop_turns(position, kept=2)  # what it follows on may be asked about
        turn = self.turns[-1]
        turn.has_user = turn.has_user or (isinstance(item, UserItem) and not _is_own_data(item))
        return turn

    def _drop_turns(self, position: int, kept: int = 1) -> None:
        dropped = 0
        while dropped < len(self.turns) - kept and (
            self._total > self._kept_tokens or len(self.turns) - dropped > self._kept_turns
        ):
            turn = self.turns[dropped]
            self._total -= turn.tokens
            self.moved += [item for item in turn.items if isinstance(item, SystemItem)]
            self.dropped += [item for item in turn.items if not isinstance(item, SystemItem)]
            self.dropped_ids += turn.data_ids
            if turn.data_ids and not self.reserved:
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
        output=f"{SHORTENED}: {len(result.output)} characters, beginning {beginning})",
    )
