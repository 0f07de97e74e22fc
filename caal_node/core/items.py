"""The items of a conversation, and what a window holds besides: six frozen dataclasses.

Everything between LiveKit's ChatContext and a model's request works on tuples of these. They hold
no LiveKit type, so that pairing, windows and tool data can be tested without a session;
`caal_node.models.chat_context` converts a ChatContext into items and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from caal_node.core.tool_spec import Example, ToolSchema


@dataclass(frozen=True, slots=True)
class SystemItem:
    """Instructions. A conversation begins with them, and LiveKit may add others later."""

    text: str
    id: str = ""


PIN_SAID: Final = "[PIN]"
"""The text of what a person answers where the PIN is asked for, right or wrong: the words are kept
nowhere. It asks for nothing by itself, so the turn goes on from the words before it."""


@dataclass(frozen=True, slots=True)
class UserItem:
    """What a person said. A turn begins with it."""

    text: str
    id: str = ""
    is_taken_back: bool = False
    """Whether it took back in one breath what it asked for."""


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


@dataclass(frozen=True, slots=True)
class ToolsItem:
    """Tools that the model is told of, directly in front of the words that they may fit.

    They are nobody's words. Whoever judges or traces what was said reads a conversation without
    them, so they are no `Item`.
    """

    tools: tuple[ToolSchema, ...] = field(hash=False)
    """Compact schemas whose texts are escaped, as prompts show them."""
    examples: Mapping[str, Example] = field(default_factory=dict[str, Example], hash=False)
    """What a person may say for some of the tools, by their names."""
    id: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in their order."""
        return tuple(tool["function"]["name"] for tool in self.tools)


Item: TypeAlias = SystemItem | UserItem | AssistantItem | CallItem | ResultItem
"""What was said and done."""
WindowItem: TypeAlias = Item | ToolsItem
"""What the window of a conversation holds: what was said and done, and what was told between."""
