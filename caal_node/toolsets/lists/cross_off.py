"""What is crossed off a list for what a person said, and the sentence that tells them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from caal_node.core.errors import InvalidArguments
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.lists.item_match import match_item
from caal_node.toolsets.lists.markdown_list import ListItem
from caal_node.toolsets.lists.spoken_items import spoken_list


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
