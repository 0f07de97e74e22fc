"""Whose words stand in a conversation: the person's, the agent's, or those of tools."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from caal_node.core.items import AssistantItem, Item, ResultItem, UserItem
from caal_node.core.turn import Turn
from caal_node.policy.heard_words import (
    NO,
    PICKS,
    QUESTIONS,
    REFERENCES,
    REPEATS,
    YES,
    plain,
    stem,
    stems,
    words,
)

ITEMS_MAX: Final = 64
"""Items of the conversation that are read, the newest: about 20 turns, as in a prompt."""
RESULT_CHARS: Final = 49_152
"""Characters of tools' words that are read, of this turn and of earlier ones each: as many as a
prompt of 12,288 tokens holds, in 16 ms at worst. Where there are more, a tool may have named any
tool and said any word."""
PERSON_CHARS: Final = 4_096
"""Characters of a person's words in one turn that are read: four minutes of speech."""
TOLD_SPACES: Final = 4
"""A name or a value of a schema with so many spaces is a sentence."""
TRIES_MAX: Final = 8
"""Places at which a word is looked at. One that stands inside so many others counts as found."""
_LEADING: Final = re.compile(
    r"(?:^|[,.;:!?]|\b(?:and|then|please|und|dann|bitte|et|puis|y|luego|e|poi|en|dan))\s*([^\W_]+)"
)
_HIDING: Final = re.compile(
    r"[\u200b-\u200d\u2060-\u2064\ufeff\U000e0000-\U000e007f]|(?<!\w)\w(?: \w){4,}(?!\w)"
    r"|[a-z][\u0370-\u04ff]|[\u0370-\u04ff][a-z]"
)
"""How words are written that a model reads and a search for them misses: by characters that nobody
sees (tags above all), by single letters, by letters of other scripts that look the same."""
_WORD: Final = re.compile(r"[^\W_]+")
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Members of a schema whose keys are names that its author chose."""
_STRUCTURE: Final = frozenset({"type", "required", "$ref"})
_TOLD: Final = frozenset({"description", "title"})
Shown: TypeAlias = tuple[str, bool]
"""A text that a prompt shows of a tool, and whether it tells the model something; else it is a name
or a value."""
_NO_TEXTS: Final[Mapping[str, Iterable[Shown]]] = MappingProxyType({})


class Described:
    """All that prompts show of the tools of servers and workflows. It is made once for a table."""

    def __init__(self, shown: Mapping[str, Iterable[Shown]] = _NO_TEXTS) -> None:
        """`shown` are the texts of each tool, by the names that the model knows."""
        texts, told = dict[str, str](), set[str]()
        for name, parts in shown.items():
            pieces = list[str]()
            for text, is_told in parts:
                pieces.append(plain(text))
                if is_told or text.count(" ") >= TOLD_SPACES:
                    told.update(_WORD.findall(pieces[-1]))
            texts[name] = "\n".join(pieces)
        self._texts: Final = texts
        self.text: Final = "\n".join(texts.values())
        self._told: Final = sorted(told)

    def names(self, tool: str) -> bool:
        """Say whether another tool's author names this one.

        A name of one word is no sign of it: that is a word like any other.
        """
        known = plain(tool)
        short = known.rpartition("__")[2]
        looked_for = short if "_" in short or "-" in short else known
        if looked_for.isalnum() or looked_for not in self.text:
            return False
        return any(looked_for in text for other, text in self._texts.items() if other != tool)

    def tells(self, word: str) -> bool:
        """Say whether a word of what authors tell the model begins with this one."""
        at = bisect_left(self._told, word)
        return at < len(self._told) and self._told[at].startswith(word)


def shown_of(function: Mapping[str, Any]) -> Iterator[Shown]:
    """Yield the texts that a model reads of a tool, beside its name, from its function form."""
    yield str(function.get("description", "")), True
    nodes: list[object] = [function.get("parameters")]
    while nodes:
        node = nodes.pop()
        if isinstance(node, str):
            yield node, False
        elif isinstance(node, list):
            nodes.extend(cast("list[object]", node))
        elif isinstance(node, Mapping):
            for key, value in cast("Mapping[str, object]", node).items():
                if key in _NAMED and isinstance(value, Mapping):
                    names = cast("Mapping[str, object]", value)
                    yield from ((name, False) for name in names)
                    nodes.extend(names.values())
                elif isinstance(value, str) and key not in _STRUCTURE:
                    yield value, key in _TOLD
                elif key not in _STRUCTURE:
                    nodes.append(value)


class Heard:
    """A conversation, as far as it says whose words are whose."""

    def __init__(self, items: Sequence[Item], described: Described) -> None:
        recent = items[-ITEMS_MAX:]
        turn = Turn(recent)
        persons = [item.text[:PERSON_CHARS] for item in recent if isinstance(item, UserItem)]
        request = persons[-1] if persons else ""
        self.request = stems(request)
        self._is_question = bool(QUESTIONS.intersection(words(request)[:1]))
        self.led = frozenset(stem(word) for word in _LEADING.findall(plain(request)))
        """The words with which the parts of the request begin, where its verbs stand."""
        self.person_text = plain("\n".join(persons))
        self.person = frozenset[str]().union(*map(stems, persons))
        heard = (item for item in turn.before if isinstance(item, AssistantItem))
        spoken = [item.text[-PERSON_CHARS:] for item in heard]
        self.spoken = frozenset[str]().union(*map(stems, spoken))
        self._answering(persons, spoken)
        self.now, cut_now = _texts(turn.since)
        self.before, cut_before = _texts(turn.before)
        self.is_cut = cut_now or cut_before
        """Whether tools have said more than is read."""
        self.called_before = {item.name for item in turn.before if isinstance(item, ResultItem)}
        self.described = described

    def _answering(self, persons: Sequence[str], spoken: Sequence[str]) -> None:
        """A short answer to a question asks for what was asked for before it."""
        if not spoken or not spoken[-1].rstrip().endswith("?"):
            return
        answer = self.request
        if len(persons) > 1:
            self.request |= stems(persons[-2])
        if answer & YES and not answer & NO:
            self.request |= stems(spoken[-1])

    @property
    def results(self) -> Iterator[str]:
        """Every result, this turn's first."""
        yield from self.now
        yield from self.before

    def is_outside(self, address: str) -> bool:
        """Say whether an address is a tool's, or its author's."""
        return any(address in each for each in self.results) or address in self.described.text

    @property
    def may_name_any_tool(self) -> bool:
        """Whether an earlier result is written so that nobody can tell what it speaks of."""
        return self.is_cut or any(_HIDING.search(text) for text in self.before)

    @property
    def refuses(self) -> bool:
        """Whether the person says no."""
        return bool(self.request & NO)

    @property
    def refers_back(self) -> bool:
        """Whether the person uses a word for something that was said before, as in "what time is
        it" too."""
        return bool(self.request & REFERENCES)

    @property
    def picks(self) -> bool:
        """Whether the person chooses one of several things, as in "I'll take the second one"."""
        return not self._is_question and bool(self.request & PICKS)

    @property
    def repeats(self) -> bool:
        """Whether the person wants something once more."""
        return bool(self.request & REPEATS)

    def mostly_outside(self, looked_for: Sequence[str]) -> bool:
        """Say whether tools and their authors have said half of the words, or more."""
        if self.is_cut:
            return True
        left = [word for word in looked_for if not self.described.tells(word)]
        return mostly_in(left, self.results, len(looked_for))


def _texts(items: Iterable[Item]) -> tuple[list[str], bool]:
    """Return as many of the tools' words as are read, newest first, and whether there are more."""
    left, found = RESULT_CHARS, list[str]()
    for item in reversed([item for item in items if isinstance(item, ResultItem)]):
        if len(item.output) > left:
            return [*found, plain(item.output[:left])], True
        found.append(plain(item.output))
        left -= len(item.output)
    return found, False


def mostly_in(looked_for: Sequence[str], texts: Iterable[str], of: int | None = None) -> bool:
    """Say whether half of the words, or more, begin a word of the texts.

    Of `of` words those that are missing in `looked_for` are known to do so.
    """
    all_words = len(looked_for) if of is None else of
    left, found = list(looked_for), all_words - len(looked_for)
    if found and found * 2 >= all_words:
        return True
    for text in texts:
        missing = [word for word in left if not _begins_a_word(word, text)]
        found += len(left) - len(missing)
        if found * 2 >= all_words:
            return True
        left = missing
    return False


def _begins_a_word(word: str, text: str) -> bool:
    at = text.find(word)
    for _ in range(TRIES_MAX):
        if at <= 0 or not text[at - 1].isalnum():
            return at >= 0
        at = text.find(word, at + 1)
    return True
