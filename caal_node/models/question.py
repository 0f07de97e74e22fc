"""What a turn wants of a model, whichever way it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from caal_node.context.prompt_tools import PromptTools
from caal_node.core.items import Item


@dataclass(frozen=True, slots=True)
class Question:
    items: tuple[Item, ...]
    tools: PromptTools = field(default_factory=PromptTools)
    """Every tool of the conversation, also where none may be called."""
    stream: bool = True
    """False: nothing is passed on before the whole reply is there and has been understood."""
    may_call: bool = True
    """False in a turn's last round: the reply has to be speech."""
    max_tokens: int | None = None
    in_thinking: bool = False
    """The model's prompt leaves a think block open: nothing is speech before its closer."""
