"""What a model that is asked by text may do in one turn, and how much of a result it reads.

A model that goes round in circles ends here: by text, nothing else counts for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caal_node.core.items import CallItem, Item, ResultItem, UserItem


@dataclass(frozen=True, slots=True)
class ProtocolLimits:
    iterations: int = 8
    """Replies with calls in one turn; the next one can only be speech."""
    calls_per_reply: int = 6
    """More in one reply is a list that never ends. Those beyond are not run; the results that the
    model then reads show which were."""
    calls_per_turn: int = 16
    """In all replies of one turn."""
    payload_bytes: int = 8_192
    """Arguments of one call as JSON. A person speaks some 900 bytes a minute."""
    observation_chars: int = 3_000
    """Of one result, about 1,000 tokens. A longer one is told by its structure and its ids."""


DEFAULT = ProtocolLimits()


def turn_is_over(items: Sequence[Item], limits: ProtocolLimits = DEFAULT) -> bool:
    """Whether the turn at the end of `items` has used up its replies or its calls."""
    replies = calls = 0
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if isinstance(item, UserItem):
            break
        if isinstance(item, CallItem):
            calls += 1
            # Calls side by side are one reply.
            replies += at == 0 or not isinstance(items[at - 1], CallItem)
    return replies >= limits.iterations or calls >= limits.calls_per_turn


def calls_left(items: Sequence[Item], limits: ProtocolLimits = DEFAULT) -> int:
    """How many calls the next reply may have."""
    made = 0
    for item in reversed(items):
        if isinstance(item, UserItem):
            break
        made += isinstance(item, ResultItem)
    return max(0, min(limits.calls_per_reply, limits.calls_per_turn - made))
