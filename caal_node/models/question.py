"""What a turn wants of a model, whichever way it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from caal_node.config.setting_tables import TextLimits
from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import (
    CallItem,
    Item,
    ResultItem,
    SystemItem,
    ToolsItem,
    Turn,
    WindowItem,
)
from caal_node.core.prompt_files import fill
from caal_node.grounding.meanings import hinted
from caal_node.grounding.references import Reference
from caal_node.models.reply_limits import AS_NATIVE
from caal_node.reply_parser.escaping import escape_markers

ITEMS_KEPT: Final = 256
"""Items whose escaped form is kept, so that a request costs what its newest turn does."""


class _EscapedItems(tuple[WindowItem, ...]):
    """Items whose markers are broken up already."""

    __slots__ = ()


@dataclass(frozen=True)
class Question:
    """The border at which text from outside becomes a prompt.

    Everything but the owner's instructions has its markers broken up here; the tools' schemas have
    it where they are made. The same text always gives the same bytes.
    """

    items: tuple[WindowItem, ...]
    tools: PromptTools = field(default_factory=PromptTools)
    """Every tool that can be called now, also where none may be called."""
    head: PromptTools | None = None
    """The tools that stand in front of the conversation, which tells of the others of `tools`.
    None: all of them stand in front."""
    stream: bool = True
    """False: nothing is passed on before the whole reply is there and has been understood."""
    may_call: bool = True
    """False in a turn's last round: the reply has to be speech."""
    must_call: bool = False
    """The reply has to hold a call: what it says otherwise is no reply."""
    once: bool = False
    """There is one attempt: what its reply lacks is not asked for again in any way."""
    parallel: bool | None = None
    """False: one call at most. None leaves it to the server."""
    speech_only: bool = False
    """The tools stay in the prompt, as a server has read them, but the reply has to be speech: the
    call that it replaces stood on nothing."""
    judges_calls: bool = True
    """Whether calls that stand on nothing are left out, see `caal_node.grounding.call_grounds`."""
    tool_named: str = ""
    """A tool that the model is told to be for the person's newest words: it has denied it."""
    small_model: bool = False
    """Whether the model is known to be small, so that its calls are believed less."""
    max_tokens: int | None = None
    in_thinking: bool = False
    """The model's prompt leaves a think block open: nothing is speech before its closer."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Further fields of the request by OpenAI's names, such as `temperature` or `seed`."""
    limits: TextLimits = AS_NATIVE
    """What holds where calls are asked for by text."""
    lasts_s: float = 0.0
    """Seconds since the turn's first request."""
    timeout_s: float | None = None
    """Seconds for the reply's first piece and between two; None leaves it to the backend."""
    tells_unmade: bool = False
    """Calls that cannot be made are told to whoever asked, where no way of asking brought a reply:
    LiveKit answers them, and the conversation goes on. Else there is an error, and it is said."""

    references: tuple[Reference, ...] = field(default=(), hash=False)
    """What the person's newest words refer to. It stands in this one request, and in no history."""

    def __post_init__(self) -> None:
        if not isinstance(self.items, _EscapedItems):  # as those of another question are
            object.__setattr__(self, "items", _EscapedItems(map(_escaped, self.items)))

    @property
    def front(self) -> PromptTools:
        """The tools that stand in front of the conversation."""
        return self.tools if self.head is None else self.head

    @cached_property
    def conversation(self) -> tuple[Item, ...]:
        """What was said and done, without the tools that were told between."""
        return tuple(item for item in self.items if not isinstance(item, ToolsItem))

    @cached_property
    def turn(self) -> Turn[Item]:
        """The newest turn of the conversation."""
        return Turn(self.conversation)

    @property
    def request(self) -> str:
        """The person's newest words; "" where there are none."""
        return Turn(self.items).request

    @property
    def shown_items(self) -> tuple[WindowItem, ...]:
        """The items as a model reads them, with what the person's newest words refer to, and the
        tool that is for them."""
        turn = Turn(self.items)
        newest = turn.words
        if newest is None or not (self.references or self.tool_named):
            return self.items
        text = escape_markers(hinted(newest.text, self.references))
        if self.tool_named:
            text = f"{text}\n\n{fill('tool_fits.md', tool=self.tool_named)}"
        return (
            *turn.before,
            replace(newest, text=text),
            *turn.since,
        )


@lru_cache(ITEMS_KEPT)
def _escaped(item: WindowItem) -> WindowItem:
    match item:
        case SystemItem() | ToolsItem():
            return item
        case CallItem():
            texts = {"name": item.name, "arguments": item.arguments}
        case ResultItem():
            texts = {"name": item.name, "output": item.output}
        case _:
            texts = {"text": item.text}
    escaped = {key: escape_markers(text) for key, text in texts.items()}
    return item if escaped == texts else replace(item, **escaped)
