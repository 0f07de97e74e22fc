"""The items of a conversation, what a window holds besides, and the newest turn.

Everything between LiveKit's ChatContext and a model's request works on tuples of these. They hold
no LiveKit type, so that pairing, windows and tool data can be tested without a session;
`caal_node.models.chat_context` converts a ChatContext into items and back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, TypeAlias, TypeVar

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


# The newest turn of a conversation: what the person said last, and what has followed.

_NOBODYS_WORDS: Final = UserItem("")


T = TypeVar("T", bound=WindowItem)


@dataclass(frozen=True)
class Turn(Generic[T]):
    """A conversation, read from the person's newest words on.

    Each property is read off `items` once, and in the steps that the turn has, however long the
    conversation is.
    """

    items: Sequence[T]
    """The whole conversation, or its window, oldest first."""

    @cached_property
    def at(self) -> int:
        """The place of the newest words in `items`; -1 where nobody has said anything."""
        places = (n for n in range(len(self.items) - 1, -1, -1) if self._is_said(n))
        return next(places, -1)

    @property
    def words(self) -> UserItem | None:
        """The newest words; None where nobody has said anything."""
        item = self.items[self.at] if self.at >= 0 else None
        return item if isinstance(item, UserItem) else None

    @property
    def request(self) -> str:
        """The text of the newest words; "" where there are none."""
        return (self.words or _NOBODYS_WORDS).text

    @property
    def is_new(self) -> bool:
        """Whether nothing has followed the newest words yet."""
        return 0 <= self.at == len(self.items) - 1

    @property
    def before(self) -> Sequence[T]:
        """What came in front of the newest words."""
        return self.items[: max(self.at, 0)]

    @cached_property
    def since(self) -> Sequence[T]:
        """What has followed the newest words; everything where there are none."""
        return self.items[self.at + 1 :]

    @cached_property
    def calls(self) -> tuple[CallItem, ...]:
        """The calls of this turn, oldest first."""
        return tuple(item for item in self.since if isinstance(item, CallItem))

    @cached_property
    def results(self) -> tuple[ResultItem, ...]:
        """The results of this turn, oldest first."""
        return tuple(item for item in self.since if isinstance(item, ResultItem))

    @property
    def rounds(self) -> int:
        """How many replies of this turn have called tools.

        LiveKit numbers the calls of one reply behind the last slash of an id that they share; a
        call whose id has no slash counts as a reply of its own.
        """
        return len({call.id.rpartition("/")[0] or call.call_id for call in self.calls})

    @property
    def adjacent_rounds(self) -> int:
        """The same where ids tell nothing, as in a window: calls side by side are one reply."""
        kinds = [isinstance(item, CallItem) for item in self.since]
        return sum(is_call and not (n and kinds[n - 1]) for n, is_call in enumerate(kinds))

    def earlier_words(self) -> Iterator[UserItem]:
        """Yield what people said before the newest words, the newest first."""
        for item in reversed(self.before):
            if isinstance(item, UserItem):
                yield item

    def _is_said(self, place: int) -> bool:
        item = self.items[place]
        return isinstance(item, UserItem) and item.text != PIN_SAID
