"""Where a turn stands, read off the conversation alone: nothing is remembered between calls."""

from __future__ import annotations

from collections.abc import Sequence

from caal_node.core.items import CallItem, Item, UserItem


def rounds_done(items: Sequence[Item]) -> int:
    """Rounds of tool calls since the person last spoke.

    The calls of one reply share the part of their id before the last slash, which is how LiveKit
    numbers them; a call without one counts as a round of its own.
    """
    replies: set[str] = set()
    for item in reversed(items):
        if isinstance(item, UserItem):
            break
        if isinstance(item, CallItem):
            replies.add(item.id.rpartition("/")[0] or item.call_id)
    return len(replies)
