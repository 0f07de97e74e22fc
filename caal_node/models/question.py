"""What a turn wants of a model, whichever way it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from caal_node.context.prompt_tools import PromptTools
from caal_node.core.items import CallItem, Item, ResultItem, SystemItem
from caal_node.reply_parser.escaping import escape_markers


@dataclass(frozen=True, slots=True)
class Question:
    """The border at which text from outside becomes a prompt.

    Everything but the owner's instructions has its markers broken up here; the tools' schemas have
    it where they are made. The same text always gives the same bytes.
    """

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(map(_escaped, self.items)))


def _escaped(item: Item) -> Item:
    match item:
        case SystemItem():
            return item
        case CallItem():
            texts = {"name": item.name, "arguments": item.arguments}
        case ResultItem():
            texts = {"name": item.name, "output": item.output}
        case _:
            texts = {"text": item.text}
    escaped = {key: escape_markers(text) for key, text in texts.items()}
    return item if escaped == texts else replace(item, **escaped)
