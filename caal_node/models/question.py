"""What a turn wants of a model, whichever way it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from caal_node.core.items import Item
from caal_node.core.tool_spec import Example
from caal_node.models.backends.base import ToolSchema


@dataclass(frozen=True, slots=True)
class Question:
    items: tuple[Item, ...]
    tools: tuple[ToolSchema, ...] = ()
    """Every tool of the conversation, in a fixed order, also where none may be called."""
    examples: Mapping[str, tuple[Example, ...]] = field(
        default_factory=dict[str, tuple[Example, ...]]
    )
    """Tool name -> what a person may say for it. Shown where calls are asked for in text."""
    stream: bool = True
    """False: nothing is passed on before the whole reply is there and has been understood."""
    may_call: bool = True
    """False in a turn's last round: the reply has to be speech."""
    max_tokens: int | None = None
    in_thinking: bool = False
    """The model's prompt leaves a think block open: nothing is speech before its closer."""
