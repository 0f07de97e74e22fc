"""A list as Markdown that a person writes too: `- [ ] milk` is open, `- [x] eggs` crossed off.

Bullets of every kind are read, with or without a box. Only the lines that a change is about are
touched: headings, notes, blank lines and line ends stay byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from caal_node.policy.heard_words import COMMON, plain, stem, words

# Which things on a list a person means: "milk" is "2 litres of oat milk" if no other is.

ALIKE: Final = 0.8
"""How like two words have to be for one to be a mishearing of the other: "wholemeal bred" is."""
COMPARED_MAX: Final = 300
"""Things that are compared letter by letter: 10 ms."""


@dataclass(frozen=True, slots=True)
class Match:
    """The things that words may mean: none, one, or several, of which a person has to choose."""

    items: tuple[ListItem, ...]

    @property
    def is_sure(self) -> bool:
        return len({compared(item.name) for item in self.items}) == 1


def match_item(wanted: str, items: Sequence[ListItem]) -> Match:
    """Return which of `items` is meant, by the same name, by its words, or by its sound."""
    name, asked = compared(wanted), _content(wanted)
    exact = tuple(item for item in items if compared(item.name) == name)
    if exact or not asked:
        return Match(exact)
    known = [(item, _content(item.name)) for item in items]
    if found := tuple(item for item, content in known if asked <= content):
        return Match(tuple(item for item in found if _head(item.name) == _head(wanted)) or found)
    # "Two loaves of rye bread" may be "rye bread", but "milk chocolate" is no milk.
    narrower = (item for item, content in known if content and content <= asked)
    if found := tuple(item for item in narrower if _head(item.name) == _head(wanted)):
        return Match(found)
    wanted = plain(wanted)
    scored = [
        (SequenceMatcher(None, wanted, plain(item.name)).ratio(), item)
        for item, _ in known[:COMPARED_MAX]
    ]
    best = max((score for score, _ in scored), default=0.0)
    return Match(tuple(item for score, item in scored if score == best and score >= ALIKE))


def is_named_whole(said: str, items: Sequence[ListItem]) -> bool:
    """Say whether all words of `said` are those of one thing, as of "call Tom and Ann"."""
    asked = _content(said)
    return sum(asked <= _content(item.name) for item in items) == 1


def _head(name: str) -> str:
    """Return the stem of the last word, which says what a thing is in English."""
    return stem((words(name) or [""])[-1])


def _content(name: str) -> frozenset[str]:
    found = frozenset(map(stem, words(name)))
    return (found - COMMON) or found


ITEMS_MAX: Final = 2_000
"""Things on one list that are read; more are no list that anybody has read out."""
_ITEM: Final = re.compile(
    r"^(?P<indent>[ \t]*)(?P<bullet>[-*+]|(?P<number>\d{1,4})[.)])(?P<gap>[ \t]+)"
    r"(?:\[(?P<box>[ xX])\](?P<behind>[ \t]+))?(?P<name>\S.*?)(?<![ \t])[ \t]*+(?P<end>\r?\n?)$"
)
_STRUCK: Final = re.compile(r"~~(.+)~~")


@dataclass(frozen=True, slots=True)
class ListItem:
    """One thing on a list; `line` counts the text's lines from 0."""

    line: int
    name: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class Added:
    """A list's text with new things, and which of them it had already, open."""

    text: str
    added: tuple[str, ...]
    already: tuple[str, ...]


def items_of(text: str) -> tuple[ListItem, ...]:
    """Return the things on a list, in order, the first ITEMS_MAX of them."""
    found: list[ListItem] = []
    for at, line in enumerate(_lines(text)):
        if (match := _ITEM.match(line)) and any(map(str.isalnum, match["name"])):
            struck = _STRUCK.fullmatch(match["name"])
            done = struck is not None or (match["box"] or "").strip() != ""
            found.append(ListItem(at, struck[1] if struck else match["name"], done))
            if len(found) == ITEMS_MAX:
                break
    return tuple(found)


def new_list(title: str) -> str:
    """Return the text of a list on which nothing is yet."""
    return f"# {title}\n\n"


def with_added(text: str, names: Iterable[str]) -> Added:
    """Add things behind the last open one. One that was crossed off there is open again."""
    lines, items = _lines(text), items_of(text)
    known = {compared(item.name): item for item in reversed(items)}
    known |= {compared(item.name): item for item in reversed(items) if not item.is_done}
    added, already, new = list[str](), list[str](), list[str]()
    for name in names:
        if (item := known.get(compared(name))) is None:
            new.append(name)
            added.append(name)
        elif item.is_done:
            lines[item.line] = _opened(lines[item.line])
            added.append(item.name)
        else:
            already.append(item.name)
    _insert(lines, items, new)
    return Added("".join(lines), tuple(added), tuple(already))


def with_done(text: str, done: Collection[int]) -> str:
    """Cross off the things on the lines `done`."""
    lines = _lines(text)
    for at in done:
        if (match := _ITEM.match(lines[at])) and not (match["box"] or "").strip():
            head = match["indent"] + match["bullet"] + match["gap"]
            lines[at] = f"{head}[x]{match['behind'] or ' '}{lines[at][match.start('name') :]}"
    return "".join(lines)


def without_change(text: str, before: str, after: str) -> tuple[str, tuple[str, ...]]:
    """Undo the change of a list from `before` to `after`, and return the names of its things.

    Lines that others have written or changed since then stay.
    """
    lines, names = _lines(text), list[str]()
    for old, new in reversed(_changed_lines(before, after)):
        places = [at for at, line in enumerate(lines) if _bare(line) == _bare(new)]
        at = places[-1] if places else len(lines)
        has_note = at + 1 < len(lines) and _goes_on(lines[at + 1], len(new) - len(new.lstrip()))
        if places and (old or not has_note):
            names.insert(0, _named(new))
            end = lines[at][len(_bare(lines[at])) :]
            lines[at : at + 1] = [_bare(old) + end] if old else []
    return before if text == after else "".join(lines), tuple(names)


def _changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines of `after` that are new or changed, each behind the line that it was."""
    old, changed = _lines(before), list[tuple[str, str]]()
    for line in _lines(after):
        if old and _bare(old[0]) == _bare(line):
            old.pop(0)
        else:
            was_it = bool(old) and _named(old[0]) == _named(line)
            changed.append((old.pop(0) if was_it else "", line))
    return changed


def _named(line: str) -> str:
    return next((item.name for item in items_of(line)), "")


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def compared(name: str) -> str:
    """Return a name by which two are the same thing: "Eggs" and "egg" are."""
    return " ".join(map(stem, words(name))) or plain(name)


def _lines(text: str) -> list[str]:
    # Not str.splitlines, which also breaks at characters that a name may hold.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _opened(line: str) -> str:
    match = _ITEM.match(line)
    if match is None:
        return line
    struck = _STRUCK.fullmatch(match["name"])
    head = match["indent"] + match["bullet"] + match["gap"]
    behind = match["behind"]
    box = "[ ]" + behind if behind is not None else ""
    return head + box + (struck[1] if struck else match["name"]) + match["end"]


def _insert(lines: list[str], items: Sequence[ListItem], names: Sequence[str]) -> None:
    if not names:
        return
    break_ = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    still_open = [item for item in items if not item.is_done]
    last = (still_open or list(items) or [None])[-1]
    at = len(lines)
    head, number = "- [ ] ", 0
    if last is not None and (match := _ITEM.match(lines[last.line])):
        box = "[ ] " if match["box"] is not None else ""
        number = int(match["number"] or 0)
        head = match["indent"] + match["bullet"] + match["gap"] + box
        at = last.line + 1
        while at < len(lines) and _goes_on(lines[at], len(match["indent"])):
            at += 1
    if at and not lines[at - 1].endswith("\n"):
        lines[at - 1] += break_
    new = list[str]()
    for name in names:
        number += 1 if number else 0
        new.append(_numbered(head, number) + name + break_)
    lines[at:at] = new


def _numbered(head: str, number: int) -> str:
    return re.sub(r"\d+", str(number), head, count=1) if number else head


def _goes_on(line: str, indent: int) -> bool:
    """Say whether a line belongs to the thing above it, which is indented by `indent`."""
    behind = line.lstrip(" \t")
    return bool(behind.strip()) and len(line) - len(behind) > indent and not _ITEM.match(line)
