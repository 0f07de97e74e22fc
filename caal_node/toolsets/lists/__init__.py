"""Shopping, to-do and other lists, as plain Markdown files that a person can read and edit."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from pydantic import Field

from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke, ToolFailure
from caal_node.core.prompt_files import sentence
from caal_node.policy.heard_words import stem, words
from caal_node.tools.source import Undoable, VerbatimResult
from caal_node.tools.undo import not_undone
from caal_node.toolsets.base import (
    ConfiguredToolset,
    OptionPath,
    ToolsetOptions,
    ToolsetServices,
    tool,
)
from caal_node.toolsets.edited_file import change_text, read_text
from caal_node.toolsets.lists.markdown_list import (
    Added,
    ListItem,
    is_named_whole,
    items_of,
    match_item,
    new_list,
    with_added,
    with_done,
    without_change,
)
from mcp_bridge.core.files import no_folder

# Things said in one breath: "milk, two eggs and mac and cheese" is three of them, and back.

WORDS_CHARS_MAX: Final = 4_000
"""Characters of what is said at once that are read."""
EDGED_CHARS_MAX: Final = 1_000
"""Characters of one thing with the words around it that are left out."""
ITEM_CHARS_MAX: Final = 200
"""Characters of one thing; a longer one is cut, as it is a whole speech that was misheard."""
ITEMS_MAX: Final = 50
"""Things of one call."""

_ONE_THING: Final = re.compile(
    r"\b(?:ben and jerry|bubble and squeak|cookies and cream|fish and chips"
    r"|bread and butter pudding|half and half|head and shoulders|mac(?:aroni)? and cheese"
    r"|m[uo]m and dad|oil and vinegar|peanut butter and jelly|rhubarb and custard"
    r"|salt and vinegar|sour cream and onion|spaghetti and meatballs|sweet and sour"
    r"|terms and conditions|and (?:a half|a quarter|three quarters))\b",
    re.I,
)
"""What holds an "and" and is no two things."""
_VERBS: Final = frozenset(
    """arrange ask bake book borrow bring buy call cancel change check clean collect cook cut drop
    email empty feed fetch fill find finish fix fold go hang help install invite iron lock mail make
    measure meet message move mow order organise organize pack paint pay phone pick plan plant
    polish post practise prepare print prune put read register remind renew repair replace reply
    return ring schedule sell send service sew sign sort study sweep take talk tell text throw tidy
    thank try update vacuum visit walk wash water wrap write""".split()  # noqa: SIM905
)
"""Verbs with which something to do begins: "call Tom and Ann" is one thing to do."""
_BUYING: Final = re.compile(
    r"^(?:(?:please|we need|i need|need|to)\s+)*(?:(?:buy|get|grab|pick up)\s+)?(?:me |us )?", re.I
)
_EDGE: Final = re.compile(
    r"^(?:[-*+•]\s+|\d{1,3}[.)]\s+|\[[ xX]?\]\s*|and\s+|also\s+|plus\s+|some\s+|the\s+|to\s+)+"
    r"|(?:\s+(?:as well|too|please))+$|(?<![\s.!?\"“”])[\s.!?\"“”]++$|^[\s\"“”]+",
    re.I,
)
_COMMA: Final = re.compile(r"(?:(?<!\s)\s+)?(?:[;\n\r]|,(?!\d)|(?<!\d),)\s*")
_AND: Final = re.compile(r"(?<!\s)\s++(?:and(?: also)?|plus|&)\s+", re.I)
_HELD: Final = "\x00"
"""It stands for a blank within what is one thing; no text that is read has it."""


def items_in(words: str, *, to_buy: bool = False) -> tuple[str, ...]:
    """Return the things that `words` name, each once, at most ITEMS_MAX, without "some" and "the".

    An "and" parts two things, except within a known one ("fish and chips") and where it goes on
    with one thing to do ("call Tom and Ann"). For a list of things `to_buy`, "buy" in front is left
    out, and nothing is something to do.
    """
    text = re.sub(r"[ \t]+", " ", words[:WORDS_CHARS_MAX].replace(_HELD, " "))
    if to_buy:
        text = _BUYING.sub("", text.strip(), count=1)
    text = _ONE_THING.sub(lambda match: match[0].replace(" ", _HELD), text)
    pieces = [piece for piece in _COMMA.split(text) if piece.strip()]
    found: dict[str, str] = {}
    for at, piece in enumerate(pieces):
        parts = _AND.split(piece) if at == len(pieces) - 1 else [piece]
        for part in parts if to_buy else _joined(parts, piece):
            name = _plain(part)
            if any(map(str.isalnum, name)):
                found.setdefault(name.casefold(), name)
    return tuple(found.values())[:ITEMS_MAX]


def _joined(parts: Sequence[str], piece: str) -> Sequence[str]:
    """Return the whole piece where it begins with something to do and only goes on with it."""
    begins = [(_plain(part).split() or [""])[0].casefold() in _VERBS for part in parts]
    return [piece] if begins[:1] == [True] and not all(begins) else parts


def _plain(part: str) -> str:
    text = part.strip()[:EDGED_CHARS_MAX].replace(_HELD, " ").strip()
    while (shorter := _EDGE.sub("", text).strip()) != text:
        text = shorter
    return " ".join(text.split())[:ITEM_CHARS_MAX].strip()


def spoken_list(names: Sequence[str], most: int = ITEMS_MAX) -> str:
    """Return names as they are said: "milk, eggs and bread"; past `most`: "and 5 more"."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


# A folder of lists, each a Markdown file that is named after it.

T = TypeVar("T")

FILE_MAX_BYTES: Final = 262_144
"""Bytes of one list: 2,000 things with a note each."""
LISTS_MAX: Final = 100
"""Files of the folder that are taken for lists."""
NAME_CHARS_MAX: Final = 40
"""Characters of a new list's name; what is longer is no name."""
ALIKE: Final = 0.8
"""How like two names have to be for one to be a mishearing of the other: "chopping" is."""
BUYING: Final = frozenset({"shopping", "grocery", "groceries", "food", "supermarket", "buy"})
"""Names of the list of what is to be bought, of which a household has one."""
_DOING: Final = frozenset({"todo", "do", "task", "tasks", "chore", "chores"})
_LEFT_OUT: Final = frozenset({"my", "our", "the", "a", "list", "lists", "to"})


@dataclass(frozen=True, slots=True)
class ListFile:
    """One list: what it is called, and its file, which may not exist yet."""

    name: str
    path: Path

    @property
    def is_to_buy(self) -> bool:
        return bool(BUYING.intersection(words(self.name)))


class ListFolder:
    """The lists of a household. Its methods block, so they belong in a thread.

    Raises:
        ToolBroke: from each method, where a file or the folder cannot be read or written; the
            words for the person say which list.
    """

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder

    def lists(self) -> tuple[ListFile, ...]:
        """Return all lists, by name."""
        try:
            if (other := no_folder(self._folder)) is not None:
                raise NotADirectoryError(errno.ENOTDIR, f"{other} is a file and no folder")
            paths = sorted(self._folder.glob("*.md"))
        except OSError as error:
            raise _broken(error, "your lists", "read") from error
        known = [path for path in paths if not path.name.startswith(".") and path.is_file()]
        return tuple(ListFile(_spoken_name(path.stem), path) for path in known[:LISTS_MAX])

    def find(self, said: str) -> ListFile | None:
        """Return the list that is called so, or so in other words, or nearly so."""
        wanted, lists = _compared(said), self.lists()
        if not wanted:
            return None
        exact = [each for each in lists if _compared(each.name) == wanted]
        if exact:
            return exact[0]
        near = [
            (SequenceMatcher(None, _kept(said), _kept(each.name)).ratio(), each) for each in lists
        ]
        score, best = max(near, key=lambda pair: pair[0], default=(0.0, None))
        return best if score >= ALIKE else None

    def named(self, said: str) -> ListFile:
        """Return the list that is called so, or a new one of that name.

        Raises:
            ToolBroke: the name has no letters, is too long, or there are LISTS_MAX lists.
        """
        if (found := self.find(said)) is not None:
            return found
        name = "to-do" if _compared(said) == "todo" else _kept(said)
        if not name or len(name) > NAME_CHARS_MAX:
            raise _refused(f"{said[:NAME_CHARS_MAX]!r} is no name for a list.")
        if len(self.lists()) >= LISTS_MAX:
            raise _refused(f"There are {LISTS_MAX} lists already.")
        return ListFile(_spoken_name(name), self._folder / f"{name}.md")

    def text(self, which: ListFile) -> str:
        """Return a list's text, "" where its file is gone."""
        try:
            return read_text(which.path, FILE_MAX_BYTES) or ""
        except (OSError, ValueError) as error:
            raise _broken(error, f"the {which.name} list", "read") from error

    def change(self, which: ListFile, edit: Callable[[str], tuple[str, T]]) -> T:
        """Change a list by `edit`, which gets its text, and return what it has told.

        A list that is not there is begun, and stays away where nothing comes onto it.
        """

        def edit_text(before: str | None) -> tuple[str | None, T]:
            begun = before or new_list(which.name.capitalize())
            text, told = edit(begun)
            return (None if text == begun else text), told

        try:
            return change_text(which.path, edit_text, FILE_MAX_BYTES)
        except (OSError, ValueError) as error:
            raise _broken(error, f"the {which.name} list", "change") from error


def _spoken_name(stem_: str) -> str:
    name = re.sub(r"[_\s]+", " ", stem_).strip().lower()
    return re.sub(r"(?<=\w) list$", "", name) or name


def _compared(name: str) -> str:
    """Return a name by which two are the same list: "groceries" and "my shopping list" are."""
    kept = _kept(name).split()
    if BUYING.intersection(kept):
        return "shopping"
    if len(kept) == 1 and kept[0] in _DOING:
        return "todo"
    return " ".join(map(stem, kept))


def _kept(name: str) -> str:
    found = words(name)
    return " ".join([word for word in found if word not in _LEFT_OUT] or found)


def _broken(error: Exception, what: str, way: str) -> ToolBroke:
    said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    failure = ToolBroke(f"{what} could not be {'read' if way == 'read' else 'changed'}: {said}.")
    failure.words = f"I can't {way} {what} right now."
    return failure


def _refused(why: str) -> ToolBroke:
    failure = ToolBroke(why)
    failure.words = why
    return failure


# What is crossed off a list for what a person said, and the sentence that tells them.


@dataclass(frozen=True, slots=True)
class CrossedOff:
    """What became of each thing that was named."""

    done: tuple[ListItem, ...] = ()
    """The things to cross off."""
    already: tuple[str, ...] = ()
    """Names of those that were crossed off before."""
    unclear: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Words that fit several things, with the names of those."""
    missing: tuple[str, ...] = ()
    """Words that fit nothing on the list."""
    open_items: int = 0
    """How many things stay open."""

    @classmethod
    def all_of(cls, items: Iterable[ListItem]) -> CrossedOff:
        """Cross off everything that is open."""
        return cls(done=open_items(items))

    @classmethod
    def matching(cls, wanted: Iterable[str], items: Sequence[ListItem]) -> CrossedOff:
        """Cross off what each of `wanted` means, where it means one thing."""
        still_open = open_items(items)
        past = [item for item in items if item.is_done]
        done, already, missing = list[ListItem](), list[str](), list[str]()
        unclear = list[tuple[str, tuple[str, ...]]]()
        for name in wanted:
            match = match_item(name, still_open)
            if match.is_sure:
                done += match.items
            elif match.items:
                unclear.append((name, tuple(item.name for item in match.items)))
            elif before := match_item(name, past).items:
                already.append(before[-1].name)
            else:
                missing.append(name)
        left = len(still_open) - len({item.line for item in done})
        return cls(tuple(done), tuple(already), tuple(unclear), tuple(missing), left)

    def result(self, list_name: str) -> VerbatimResult:
        """Say what was crossed off the list of that name.

        Raises:
            InvalidArguments: nothing was, as nothing fits or several things do.
        """
        said = list[str]()
        names = list(dict.fromkeys(item.name for item in self.done))
        if names:
            said.append(f"I've crossed off {spoken_list(names)}.")
        if self.already:
            verb = "was" if len(self.already) == 1 else "were"
            said.append(_capital(f"{spoken_list(self.already)} {verb} crossed off already."))
        for name, choices in self.unclear:
            said.append(f"For {name} there are {spoken_list(choices)}. Which one?")
        if self.missing:
            said.append(f"I can't find {spoken_list(self.missing)} on the {list_name} list.")
        words = " ".join(said) or f"There is nothing on the {list_name} list."
        if not names and (self.unclear or self.missing):
            failure = InvalidArguments(words)
            failure.words = words
            raise failure
        value = {"list": list_name, "crossed_off": names, "open_items": self.open_items}
        if self.missing or self.unclear:
            value["not_found"] = [*self.missing, *(name for name, _ in self.unclear)]
        return VerbatimResult(value, words)


def open_items(items: Iterable[ListItem]) -> tuple[ListItem, ...]:
    """Return the things that are not crossed off."""
    return tuple(item for item in items if not item.is_done)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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

    async def spoken_names(self) -> Sequence[str]:
        return [each.name for each in await asyncio.to_thread(self._folder.lists)]

    @tool("write")
    async def add_to_list(self, items: str, list_name: str = "") -> Undoable | VerbatimResult:
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
    async def cross_off_list(self, items: str, list_name: str = "") -> Undoable | VerbatimResult:
        """Cross things off a list: they are bought, done, or not wanted any more.

        Example: I got the milk and the eggs, cross them off -> {"items": "milk and eggs"}
        Example: clear the camping list -> {"items": "everything", "list_name": "camping"}

        Args:
            items: The things, as they were said, or "everything".
            list_name: Which list, such as "shopping" or "to-do".
        """
        return await asyncio.to_thread(self._cross_off, items, list_name)

    def _add(self, said: str, list_name: str) -> Undoable | VerbatimResult:
        which = self._folder.named(list_name or self.options.default_list)
        is_new = bool(list_name) and self._folder.find(list_name) is None
        names = items_in(said, to_buy=which.is_to_buy)
        if not names:
            raise _unclear(f"What shall I put on the {which.name} list?")

        def add(text: str) -> tuple[str, tuple[str, Added]]:
            made = with_added(text, names)
            return made.text, (text, made)

        before, made = self._folder.change(which, add)
        added, already = made.added, made.already
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
        count = len(open_items(items_of(made.text)))
        result = VerbatimResult({**value, "open_items": count}, " ".join(sentences))
        return self._undoable(result, which, before, made.text, "undo_off_list")

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

    def _cross_off(self, said: str, list_name: str) -> Undoable | VerbatimResult:
        which = self._existing(list_name)
        everything = " ".join(words(said)) in _EVERYTHING
        wanted = () if everything else self._wanted(said, which)

        def cross_off(text: str) -> tuple[str, tuple[str, str, CrossedOff]]:
            items = items_of(text)
            found = CrossedOff.all_of(items) if everything else CrossedOff.matching(wanted, items)
            after = with_done(text, {item.line for item in found.done})
            return after, (text, after, found)

        before, after, found = self._folder.change(which, cross_off)
        return self._undoable(found.result(which.name), which, before, after, "undo_on_list")

    def _undoable(
        self, result: VerbatimResult, which: ListFile, before: str, after: str, key: str
    ) -> Undoable | VerbatimResult:
        """Return the result of a change of a list, with its undo, of which the sentence `key`
        tells."""

        def take_back() -> VerbatimResult:
            names = self._folder.change(which, lambda text: without_change(text, before, after))
            if not names:
                raise not_undone("undo_changed")
            said = {"{items}": spoken_list(names), "{list}": which.name}
            words = re.sub(r"\{\w+\}", lambda found: said[found[0]], sentence(key))
            return VerbatimResult({"list": which.name, "undone": list(names)}, words)

        async def undo() -> VerbatimResult:
            return await asyncio.to_thread(take_back)

        return result if before == after else Undoable(result.value, undo, result.words)

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
