"""The newest turn of a conversation: what the person said last, and what has followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, TypeVar

from caal_node.core.items import PIN_SAID, CallItem, ResultItem, UserItem, WindowItem

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
