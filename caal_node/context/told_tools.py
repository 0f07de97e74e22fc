"""The tools that a conversation's model was told of, and those that its searches have found.

Tools that may fit a person's words stand directly in front of these words for as long as the words
are in the window, byte for byte, whatever becomes of the tools meanwhile. So a request's prompt is
the beginning of the next one's. What a search has found stands in its result, and is read off it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from caal_node.context.schemas import told_catalogue
from caal_node.context.token_estimate import text_tokens
from caal_node.core.items import CallItem, Item, ResultItem, ToolsItem, UserItem, WindowItem
from caal_node.core.tool_spec import Example, ToolSchema

TOLD_MAX: Final = 6
"""Tools that are told with one person's words: more would be a list to read, and no choice. With
four, and four more by name, a day of fifty tools had one search more and no fewer tokens."""
TOLD_TOKENS_MAX: Final = 400
"""Estimated tokens of the tools that are told with one person's words, some 4 s on two cores. The
best one is told however large it is."""
AGAIN_MAX: Final = 4
"""Tools that are told once more, as the window still holds their calls but not what they are."""
WORDS_MAX: Final = 128
"""Words of which it is remembered what was told with them: those of six usual windows. Words that
were guessed early and then changed are among them, and go first."""
_CUTS_MAX: Final = 3
"""Times that what is told is chosen anew, as it had the window cut."""
FOUND_MAX: Final = 32
"""Tools of one search's result that are taken; a search tells of ten."""
ALSO_NAMED_MAX: Final = 128
"""Further names of one search's result that are taken; it has room for some sixty."""
_RESULTS_KEPT: Final = 64
NO_ITEMS: Final[Mapping[str, ToolsItem]] = MappingProxyType({})
"""What a conversation was told that has all tools in front of it."""

Offer: TypeAlias = Callable[[str], tuple[ToolSchema, Example | None] | None]
"""Returns what prompts show of the tool of a name; None where it cannot be called."""


class ToldTools:
    """What was told in one conversation, by the ids of the words behind it.

    It remembers at least the words of the last `turns` turns.
    """

    def __init__(self, turns: int = 0) -> None:
        self._most: Final = max(WORDS_MAX, turns)
        self._told: dict[str, ToolsItem] = {}
        self._settled: dict[str, None] = {}
        """The words for which it is settled what is told with them, which may be nothing."""

    @property
    def by_words(self) -> Mapping[str, ToolsItem]:
        """The told tools by the id of the words in front of which they stand."""
        return self._told

    def is_settled(self, words: UserItem) -> bool:
        """Say whether it is settled what is told with `words`."""
        return words.id in self._settled

    def settle(
        self,
        words: UserItem,
        ranked: Sequence[str],
        offer: Offer,
        window_with: Callable[[Mapping[str, ToolsItem]], tuple[WindowItem, ...]],
        *,
        besides: Collection[str],
        search: str,
    ) -> tuple[WindowItem, ...]:
        """Settle, for as long as `words` are in the window, which tools are told with them.

        The window with them is returned.

        Args:
            words: A person's words, to which no request was made yet.
            ranked: The names of the tools that may fit them, best first.
            offer: It knows the tools that can be called.
            window_with: It returns the window of the conversation with the tools that it is given.
            besides: The names that stand in front of the conversation.
            search: The name of the tool whose results tell of tools.
        """
        self._settled[words.id] = None
        without = window_with(self._told)
        if not words.id:
            return without  # What is told with them could not be found again.

        windows: dict[ToolsItem | None, tuple[WindowItem, ...]] = {None: without}

        def known_beside(told: ToolsItem | None) -> frozenset[str]:
            if told is not None and told not in windows:
                windows[told] = window_with({**self._told, words.id: told})
            others = [item for item in windows[told] if item != told]
            return known_in(others, offer, search) | frozenset(besides)

        def chosen(known: frozenset[str]) -> ToolsItem | None:
            names = [*ranked, *_still_used(without, known)]
            return _item(words.id, [name for name in names if name not in known], offer)

        known = known_beside(None)
        told = chosen(known)
        # To tell makes the conversation longer, which may cut it; then what was told in the turns
        # that went is told once more.
        for _ in range(_CUTS_MAX):
            if told is None or (left := known_beside(told)) == known:
                break
            known &= left
            told = chosen(known)
        while told is not None and (twice := known_beside(told).intersection(told.names)):
            told = _item(words.id, [name for name in told.names if name not in twice], offer)
        if told is not None:
            self._told[words.id] = told
        return windows[told]

    def forget_all_but(self, items: Iterable[Item]) -> None:
        """Forget what was told with words that are not among `items`, where it has become much."""
        if len(self._settled) <= self._most:
            return
        there = {item.id for item in items if isinstance(item, UserItem)}
        kept = [each for each in self._settled if each in there][-self._most :]
        self._settled = dict.fromkeys(kept)
        self._told = {each: self._told[each] for each in kept if each in self._told}


def known_in(window: Iterable[WindowItem], offer: Offer, search: str) -> frozenset[str]:
    """Return the tools that `window` tells of, as they are now; one that has changed is not known.

    `search` is the name of the tool whose results tell of tools.
    """
    found: set[str] = set()
    for item in window:
        if isinstance(item, ToolsItem):
            for name, schema in zip(item.names, item.tools, strict=True):
                offered = offer(name)
                if offered is not None and offered[0] == schema:
                    found.add(name)
        elif isinstance(item, ResultItem) and item.name == search and not item.is_error:
            found.update(name for name in found_by(item.output) if offer(name) is not None)
    return frozenset(found)


def callable_in(window: Sequence[WindowItem], search: str) -> tuple[str, ...]:
    """Return the names that `window` makes callable, in the order in which they came up.

    Those are the told and the found ones, and those that it holds calls of: a cut in the middle of
    a turn may have dropped what was told of them. Whether there is such a tool is not said.
    """
    names: dict[str, None] = {}
    for item in window:
        match item:
            case ToolsItem():
                names |= dict.fromkeys(item.names)
            case ResultItem() if item.name == search and not item.is_error:
                names |= dict.fromkeys((*found_by(item.output), *also_named_by(item.output)))
            case CallItem():
                names[item.name] = None
            case _:
                pass
    return tuple(names)


@lru_cache(_RESULTS_KEPT)
def found_by(output: str) -> tuple[str, ...]:
    """Return the names whose arguments a search's result shows; none where it was shortened."""
    found = _search_result(output).get("callable_now")
    return tuple(cast("dict[str, object]", found))[:FOUND_MAX] if isinstance(found, dict) else ()


@lru_cache(_RESULTS_KEPT)
def also_named_by(output: str) -> tuple[str, ...]:
    """Return the names that a search's result only lists. They can be called by their exact name;
    arguments that do not fit are refused with what is wrong."""
    listed = _search_result(output).get("also_match")
    names = cast("list[object]", listed)[:ALSO_NAMED_MAX] if isinstance(listed, list) else []
    return tuple(name for name in names if isinstance(name, str))


def _search_result(output: str) -> Mapping[str, object]:
    try:
        value: object = json.loads(output)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _still_used(window: Iterable[WindowItem], known: Collection[str]) -> list[str]:
    """Return the tools of which `window` holds calls, but not what they are; the newest first."""
    called = [item.name for item in window if isinstance(item, CallItem)]
    unknown = dict.fromkeys(name for name in reversed(called) if name not in known)
    return list(unknown)[:AGAIN_MAX]


def _item(words_id: str, names: Iterable[str], offer: Offer) -> ToolsItem | None:
    """Return what is told of those of `names` that can be called, as many as there is room for."""
    tools: list[ToolSchema] = []
    examples: dict[str, Example] = {}
    left = TOLD_TOKENS_MAX
    for name in dict.fromkeys(names):
        if len(tools) == TOLD_MAX or (offered := offer(name)) is None:
            continue
        schema, example = offered
        size = text_tokens(told_catalogue(ToolsItem((schema,), id=name)))
        if tools and size > left:
            continue
        tools.append(schema)
        left -= size
        if example is not None:
            examples[name] = example
    return ToolsItem(tuple(tools), examples, f"told:{words_id}") if tools else None
