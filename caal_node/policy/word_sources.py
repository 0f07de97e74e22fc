"""Whose words stand in a conversation: the person's, the agent's, or those of tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from caal_node.core.items import AssistantItem, Item, ResultItem, UserItem
from caal_node.policy.heard_words import NO, REFERENCES, YES, plain, stem, stems

ITEMS_MAX: Final = 64
"""Items of the conversation that are read, the newest: about 20 turns, as in a prompt."""
RESULT_CHARS: Final = 24_576
"""Characters of tools' words that are read, of this turn and of earlier ones each: as many as a
prompt of 6,144 tokens holds."""
PERSON_CHARS: Final = 4_096
"""Characters of a person's words in one turn that are read: four minutes of speech."""
DESCRIPTION_CHARS: Final = 1_024
"""Characters of one tool's description that are read."""
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
_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})


class Described:
    """What servers and workflows say of their tools. It is made once for a table of tools."""

    def __init__(self, texts: Mapping[str, str] = _NO_TEXTS) -> None:
        """`texts` are the descriptions by the names that the model knows."""
        self._texts: Final = {name: plain(text[:DESCRIPTION_CHARS]) for name, text in texts.items()}
        self.text: Final = "\n".join(self._texts.values())[:RESULT_CHARS]

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


class Heard:
    """A conversation, as far as it says whose words are whose."""

    def __init__(self, items: Sequence[Item], described: Described) -> None:
        recent = items[-ITEMS_MAX:]
        turn = max((n for n, item in enumerate(recent) if isinstance(item, UserItem)), default=-1)
        persons = [item.text[:PERSON_CHARS] for item in recent if isinstance(item, UserItem)]
        request = persons[-1] if persons else ""
        self.request = stems(request)
        self.led = frozenset(stem(word) for word in _LEADING.findall(plain(request)))
        """The words with which the parts of the request begin, where its verbs stand."""
        self.person_text = plain("\n".join(persons))
        self.person = frozenset[str]().union(*map(stems, persons))
        heard = (item for item in recent[: max(turn, 0)] if isinstance(item, AssistantItem))
        spoken = [item.text[-PERSON_CHARS:] for item in heard]
        self.spoken = frozenset[str]().union(*map(stems, spoken))
        self._answering(persons, spoken)
        self.now = _texts(recent[turn + 1 :])
        self.before = _texts(recent[: max(turn, 0)])
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

    @property
    def outside(self) -> Iterator[str]:
        """Every text of a tool or its author, this turn's results first."""
        yield from self.results
        yield self.described.text

    @property
    def may_name_any_tool(self) -> bool:
        """Whether an earlier result is written so that nobody can tell what it speaks of."""
        return any(_HIDING.search(text) for text in self.before)

    @property
    def refuses(self) -> bool:
        """Whether the person says no."""
        return bool(self.request & NO)

    @property
    def refers_back(self) -> bool:
        """Whether the person means something that was said before."""
        return bool(self.request & REFERENCES)


def _texts(items: Iterable[Item]) -> list[str]:
    """Return the tools' words, the newest first, as many as are read."""
    left, found = RESULT_CHARS, list[str]()
    for item in reversed([item for item in items if isinstance(item, ResultItem)]):
        if left <= 0:
            break
        found.append(plain(item.output[:left]))
        left -= len(found[-1])
    return found


def mostly_in(looked_for: Sequence[str], texts: Iterable[str]) -> bool:
    """Say whether half of the words, or more, begin a word of the texts."""
    left, found = list(looked_for), 0
    for text in texts:
        missing = [word for word in left if not _begins_a_word(word, text)]
        found += len(left) - len(missing)
        if found * 2 >= len(looked_for):
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
