"""A conversation as the model is shown it: five frozen kinds of item.

Every other part of the context room takes and gives tuples of these. They hold no LiveKit type,
so that pairing, windows and tool data can be tried without a session;
`caal_node.models.chat_context` turns LiveKit's ChatContext into them and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SystemItem:
    """Instructions. The first item of a conversation; LiveKit may add others later."""

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class UserItem:
    """What a person said. A turn begins here."""

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class AssistantItem:
    """What was spoken to the person."""

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class CallItem:
    """One tool call. `arguments` is one line of JSON, an object."""

    call_id: str
    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class ResultItem:
    """What a call gave. `output` is text for the model: JSON on one line, or plain words."""

    call_id: str
    name: str
    output: str
    is_error: bool = False
    id: str = ""


Item: TypeAlias = SystemItem | UserItem | AssistantItem | CallItem | ResultItem


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
