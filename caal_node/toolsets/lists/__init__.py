"""Shopping, to-do and other lists, as plain Markdown files that a person can read and edit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import Field

from caal_node.core.errors import ConfigError, InvalidArguments, ToolFailure
from caal_node.policy.heard_words import words
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import (
    ConfiguredToolset,
    OptionPath,
    ToolsetOptions,
    ToolsetServices,
    tool,
)
from caal_node.toolsets.lists.cross_off import CrossedOff, open_items
from caal_node.toolsets.lists.item_match import is_named_whole
from caal_node.toolsets.lists.list_folder import ListFile, ListFolder
from caal_node.toolsets.lists.markdown_list import items_of, with_added, with_done
from caal_node.toolsets.lists.spoken_items import items_in, spoken_list

SPOKEN_MAX: Final = 12
"""Things that are read out at once; more would be half a minute."""
_EVERYTHING: Final = frozenset({"everything", "all", "all of it", "all of them", "all items"})
_ALL_LISTS: Final = frozenset({"all", "all lists", "all my lists", "every list", "lists"})


class ListsOptions(ToolsetOptions):
    folder: OptionPath = Field(
        default=Path("lists"), description="The folder with your lists, a Markdown file each"
    )
    default_list: str = Field(
        default="shopping", description="The list that is meant where none is named"
    )


class Lists(ConfiguredToolset):
    """Adds to lists, reads them, and crosses things off."""

    NAME = "lists"
    SUMMARY = "Keeps shopping, to-do and other lists in files that you can edit."
    Options: ClassVar[type[ToolsetOptions]] = ListsOptions

    def __init__(
        self, options: ListsOptions | None = None, services: ToolsetServices | None = None
    ) -> None:
        super().__init__(options, services)
        self._folder: Final = ListFolder(self.options.folder)

    async def check(self) -> str:
        """Say which lists are in the folder.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            lists = await asyncio.to_thread(self._folder.lists)
        except ToolFailure as error:
            raise ConfigError(f"folder: {error} Choose another folder.") from error
        names = spoken_list([each.name for each in lists]) if lists else "no lists yet"
        return f"{self.options.folder}: {names}"

    @tool("write")
    async def add_to_list(self, items: str, list_name: str = "") -> VerbatimResult:
        """Add things to the shopping list, the to-do list or another list.

        Example: put milk, eggs and bread on the shopping list -> {"items": "milk, eggs and bread"}
        Example: call Tom, on my to-do list -> {"items": "call Tom", "list_name": "to-do"}

        Args:
            items: The things, as they were said.
            list_name: Which list, such as "shopping" or "to-do".
        """
        return await asyncio.to_thread(self._add, items, list_name)

    @tool("read")
    async def read_list(self, list_name: str = "") -> VerbatimResult:
        """Say what is on the shopping list, the to-do list or another list.

        Example: what's on the shopping list -> {"list_name": "shopping"}
        Example: which lists do I have -> {"list_name": "all"}

        Args:
            list_name: Which list, such as "shopping" or "to-do"; "all" names every list.
        """
        return await asyncio.to_thread(self._read, list_name)

    @tool("write")
    async def cross_off_list(self, items: str, list_name: str = "") -> VerbatimResult:
        """Cross things off a list: they are bought, done, or not wanted any more.

        Example: I got the milk and the eggs, cross them off -> {"items": "milk and eggs"}
        Example: clear the camping list -> {"items": "everything", "list_name": "camping"}

        Args:
            items: The things, as they were said, or "everything".
            list_name: Which list, such as "shopping" or "to-do".
        """
        return await asyncio.to_thread(self._cross_off, items, list_name)

    def _add(self, said: str, list_name: str) -> VerbatimResult:
        which = self._folder.named(list_name or self.options.default_list)
        is_new = bool(list_name) and self._folder.find(list_name) is None
        names = items_in(said, to_buy=which.is_to_buy)
        if not names:
            raise _unclear(f"What shall I put on the {which.name} list?")

        def add(text: str) -> tuple[str, tuple[Sequence[str], Sequence[str], int]]:
            made = with_added(text, names)
            return made.text, (made.added, made.already, len(open_items(items_of(made.text))))

        added, already, count = self._folder.change(which, add)
        sentences: list[str] = []
        if added and is_new:
            # Said, since a name that was misheard begins a list as well.
            sentences.append(f"I've put {spoken_list(added)} on a new list, {which.name}.")
        elif added:
            sentences.append(f"I've put {spoken_list(added)} on the {which.name} list.")
        if already:
            verb = "was" if len(already) == 1 else "were"
            where = "there" if added else f"on the {which.name} list"
            sentences.append(f"{_capital(spoken_list(already))} {verb} {where} already.")
        value = {"list": which.name, "added": list(added), "was_there": list(already)}
        return VerbatimResult({**value, "open_items": count}, " ".join(sentences))

    def _read(self, list_name: str) -> VerbatimResult:
        if " ".join(words(list_name)) in _ALL_LISTS and self._folder.find(list_name) is None:
            return self._read_names()
        which = self._existing(list_name)
        names = [item.name for item in open_items(items_of(self._folder.text(which)))]
        value: dict[str, Any] = {"list": which.name, "items": [{"name": name} for name in names]}
        if not names:
            return VerbatimResult(value, f"There is nothing on the {which.name} list.")
        many = f"{len(names)} things: " if len(names) > SPOKEN_MAX else ""
        said = spoken_list(names, SPOKEN_MAX)
        return VerbatimResult(value, f"On the {which.name} list: {many}{said}.")

    def _read_names(self) -> VerbatimResult:
        counts = {
            each.name: len(open_items(items_of(self._folder.text(each))))
            for each in self._folder.lists()
        }
        value = {"lists": [{"name": name, "open_items": count} for name, count in counts.items()]}
        if not counts:
            return VerbatimResult(value, "There are no lists yet.")
        said = [f"{name} with {count or 'nothing on it'}" for name, count in counts.items()]
        lists = "one list" if len(said) == 1 else f"{len(said)} lists"
        return VerbatimResult(value, f"You have {lists}: {spoken_list(said, SPOKEN_MAX)}.")

    def _cross_off(self, said: str, list_name: str) -> VerbatimResult:
        which = self._existing(list_name)
        everything = " ".join(words(said)) in _EVERYTHING
        wanted = () if everything else self._wanted(said, which)

        def cross_off(text: str) -> tuple[str, CrossedOff]:
            items = items_of(text)
            found = CrossedOff.all_of(items) if everything else CrossedOff.matching(wanted, items)
            return with_done(text, {item.line for item in found.done}), found

        return self._folder.change(which, cross_off).result(which.name)

    def _wanted(self, said: str, which: ListFile) -> Sequence[str]:
        known = open_items(items_of(self._folder.text(which)))
        is_one = is_named_whole(said, known)
        names = (said,) if is_one else items_in(said, to_buy=which.is_to_buy)
        if not names:
            raise _unclear(f"What shall I cross off the {which.name} list?")
        return names

    def _existing(self, list_name: str) -> ListFile:
        which = list_name or self.options.default_list
        if (found := self._folder.find(which)) is not None:
            return found
        if not list_name:
            return self._folder.named(which)
        known = [each.name for each in self._folder.lists()]
        there = f"There {'is' if len(known) == 1 else 'are'} {spoken_list(known)}." if known else ""
        raise _unclear(f"There is no {' '.join(words(which)) or 'such'} list. {there}".strip())


def _unclear(sentence: str) -> InvalidArguments:
    failure = InvalidArguments(sentence)
    failure.words = sentence
    return failure


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
