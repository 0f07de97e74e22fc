"""The items of a conversation: five frozen dataclasses.

Everything between LiveKit's ChatContext and a model's request works on tuples of these. They hold
no LiveKit type, so that pairing, windows and tool data can be tested without a session;
`caal_node.models.chat_context` converts a ChatContext into items and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SystemItem:
    """Instructions. A conversation begins with them, and LiveKit may add others later."""

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class UserItem:
    """What a person said. A turn begins with it."""

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class AssistantItem:
    """What was spoken to the person."""

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class CallItem:
    """One tool call. `arguments` is a JSON object on one line."""

    call_id: str
    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class ResultItem:
    """The result of a call. `output` is text for the model: JSON on one line, or plain words."""

    call_id: str
    name: str
    output: str
    is_error: bool = False
    id: str = ""


Item: TypeAlias = SystemItem | UserItem | AssistantItem | CallItem | ResultItem
