"""Where a call comes from: from what the person said, or from a tool's words alone.

A page, a mail or a tool's description may ask for calls, and small models do as they are told. So a
call that writes is traced: its tool to what the person asks for in this turn, each of its values to
what the person said. What stands in a tool's words and not in theirs needs a yes.

What cannot be told is not held against a call: booleans, numbers, dates, the values of an enum and
defaults carry neither a text nor a place to send it to, and what stands nowhere is the model's own
wording. Addresses are the exception: one that the person did not say is asked about wherever it
comes from. A text of an earlier turn may be meant by the person ("send the second one to Bob"), so
it is let through where they refer back; where it goes to may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import unquote_plus

from caal_node.core.items import AssistantItem, Item, ResultItem, UserItem
from caal_node.core.tool_spec import Effect
from caal_node.policy.heard_words import (
    COMMON,
    DESTINATIONS,
    NO,
    REFERENCES,
    YES,
    plain,
    stem,
    stems,
    verbs_like,
    words,
)

ITEMS_MAX: Final = 64
"""Items of the conversation that are read, the newest: about 20 turns, as in a prompt."""
RESULT_CHARS: Final = 24_576
"""Characters of tools' words that are read, of this turn and of earlier ones each: as many as a
prompt of 6,144 tokens holds."""
PERSON_CHARS: Final = 4_096
"""Characters of a person's words in one turn that are read: four minutes of speech."""
VALUES_MAX: Final = 32
"""Values of one call that are traced. A call with more is asked about."""
VALUE_CHARS: Final = 1_024
"""Characters of one value that are read."""
WORDS_MAX: Final = 32
"""Words of one value that are looked for in the tools' words."""
ADDRESSES_MAX: Final = 8
"""Addresses of one value that are traced. A call with more is asked about."""
TRIES_MAX: Final = 8
"""Places at which a word is looked at. One that stands inside so many others counts as found."""
WORD_CHARS_MIN: Final = 3
"""Shorter words stand in any text."""
_DEPTH_MAX: Final = 8

_HOST: Final = r"(?<![\w.-])[\w-]+(?:\.[\w-]+)+"
"""It begins where a word does, as otherwise a long word would be read once from each letter."""
_URL: Final = re.compile(
    rf"\b(?:[a-z][a-z0-9+.-]{{1,9}}://(?P<host>[^\s/?#]+)(?P<rest>\S*)"
    rf"|(?P<bare>{_HOST})(?::\d{{1,5}})?(?P<path>[/?#]\S*))"
)
"""With a scheme, or a host with something behind it, as fetchers take it too."""
_HOSTS: Final = re.compile(_HOST)
_ADDRESS: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*|\+?\d[\d ()/-]{6,40}\d|[a-z]{2}\d{13,32}"
)
"""A mail address, a phone number, an account. Times and dates have no eight digits in a row of
these forms but `2026-03-05`, which `_TIME` takes out."""
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[t\d:.+ z-]*|\d{1,2}:\d\d(?::\d\d)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)
_IDENTIFIER: Final = re.compile(r"(?i)(?:^|_|[a-z](?=Id$))(?:ids?|uids?|uuids?|ref|entity|slug)$")
_LEADING: Final = re.compile(
    r"(?:^|[,.;:!?]|\b(?:and|then|please|und|dann|bitte|et|puis|y|luego|e|poi|en|dan))\s*([^\W_]+)"
)
_MAY_BE_ADDRESS: Final = re.compile(r"[@\d]|://")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A call that is about to run."""

    name: str
    """The name that the model calls it by, `server__tool` for MCP."""
    arguments: Mapping[str, Any]
    parameters: Mapping[str, Any]
    """The JSON schema of the arguments."""
    effect: Effect = "write"
    description: str = ""


class Described:
    """What servers and workflows say of their tools. It is made once for a table of tools."""

    def __init__(self, texts: Mapping[str, str] = _NOTHING) -> None:
        """`texts` are the descriptions by the names that the model knows."""
        self._texts: Final = {name: plain(text[:VALUE_CHARS]) for name, text in texts.items()}
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


_NO_TOOLS: Final = Described()


def comes_from_outside(
    call: TracedCall, items: Sequence[Item], described: Described = _NO_TOOLS
) -> str:
    """Return why a call needs a yes, as a sentence without its values; "" where it needs none.

    Args:
        items: The conversation, oldest first, with the results that this turn has brought so far.
        described: The descriptions that the model reads and that are not the owner's own.

    A call that reads is asked about only where it sends a tool's words to an address. One that
    destroys is traced as one that writes.
    """
    heard = _Heard(items, described)
    if call.effect == "read":
        return _sent_out(call, heard)
    judged = _Judged()
    for name, value, schema in islice(_leaves(call), VALUES_MAX + 1):
        judged.count += 1
        if judged.count > VALUES_MAX:
            return f"{call.name} has more than {VALUES_MAX} values."
        if reason := _judge(name, value, schema, heard, judged):
            return f"{call.name}: {name} {reason}"
    return _not_asked_for(call, heard, judged)


@dataclass(slots=True)
class _Judged:
    """What the values of a call have shown."""

    count: int = 0
    said: bool = False
    """Whether the person said something of one of them at any time."""
    said_now: bool = False
    """Whether they said it in this turn."""


class _Heard:
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
    def outside(self) -> Iterator[str]:
        """Every text of a tool or its author, this turn's results first."""
        yield from self.now
        yield from self.before
        yield self.described.text

    @property
    def refers_back(self) -> bool:
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


def _leaves(call: TracedCall) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Yield each value of the arguments with its parameter's name and schema."""
    properties = _mapping(call.parameters.get("properties"))
    for name, value in call.arguments.items():
        yield from _within(name, value, _mapping(properties.get(name)), 0)


def _within(
    name: str, value: Any, schema: Mapping[str, Any], depth: int
) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    if isinstance(value, Mapping) and depth < _DEPTH_MAX:
        inner = _mapping(schema.get("properties"))
        for key, each in cast("Mapping[str, Any]", value).items():
            yield from _within(key, each, _mapping(inner.get(key)), depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEPTH_MAX:
        for each in cast("Sequence[Any]", value):
            yield from _within(name, each, _mapping(schema.get("items")), depth + 1)
    else:
        yield name, value, schema


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else _NOTHING


def _judge(name: str, value: Any, schema: Mapping[str, Any], heard: _Heard, judged: _Judged) -> str:
    """Say why a value needs a yes, and note whether the person said it."""
    if isinstance(value, bool) or value is None:
        return ""
    text = plain(str(value)[:VALUE_CHARS])
    goes_to = not DESTINATIONS.isdisjoint(words(name))
    if goes_to and isinstance(value, str) and len(value) > VALUE_CHARS:
        return f"has more than {VALUE_CHARS} characters."
    found = [word for word in map(stem, words(text)) if word not in COMMON]
    judged.said |= any(word in heard.person for word in found)
    judged.said_now |= any(word in heard.request for word in found)
    if value in _listed(schema) or value == schema.get("default"):
        return ""
    timeless = _TIME.sub(" ", text)
    if reason := _address_unsaid(timeless, heard):
        return reason
    if not isinstance(value, str):
        return ""
    unsaid = dict.fromkeys(
        word
        for word in map(stem, words(timeless))
        if (goes_to or len(word) >= WORD_CHARS_MIN)
        and word not in COMMON
        and word not in heard.person
        and (goes_to or word not in heard.spoken)
        and not word.isdecimal()
    )
    if not unsaid or (_IDENTIFIER.search(name) and _is_own_value(value, heard)):
        return ""
    looked_for = list(islice(unsaid, WORDS_MAX))
    if _mostly_in(looked_for, heard.now) or (
        (goes_to or not heard.refers_back) and _mostly_in(looked_for, heard.outside)
    ):
        return "stands in a tool's words, and not in the person's."
    return ""


def _listed(schema: Mapping[str, Any]) -> Sequence[Any]:
    listed = schema.get("enum")
    return cast("list[Any]", listed) if isinstance(listed, list) else (schema.get("const"),)


def _address_unsaid(text: str, heard: _Heard) -> str:
    """Say why an address in a value needs a yes: a tool wrote it, or nobody said any of it."""
    if not _MAY_BE_ADDRESS.search(text):
        return ""
    found = chain(_URL.finditer(text), _ADDRESS.finditer(text))
    for number, match in enumerate(found):
        address = match.group()
        if number >= ADDRESSES_MAX:
            return f"has more than {ADDRESSES_MAX} addresses."
        if address in heard.person_text:
            continue
        if any(address in each for each in heard.outside):
            return "has an address that stands in a tool's words, and not in the person's."
        if stems(address).isdisjoint(heard.person - COMMON):
            return "has an address that the person did not say."
    return ""


def _is_own_value(value: str, heard: _Heard) -> bool:
    """Say whether a tool gave an identifier as a value by itself, and not inside of a text."""
    quoted = f'"{plain(value)}"'
    for text in (*heard.now, *heard.before):
        at = text.find(quoted)
        if at > 0 and text[0] in "{[" and text[at - 1] != "\\":
            return True
    return False


def _mostly_in(looked_for: Sequence[str], texts: Iterable[str]) -> bool:
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


def _not_asked_for(call: TracedCall, heard: _Heard, judged: _Judged) -> str:
    """Say why the tool itself needs a yes: nothing that the person said is about it."""
    own = [word for word in dict.fromkeys(map(stem, words(call.name))) if word not in COMMON]
    verb = next((word for word in own if verbs_like(word)), None)
    things = [word for word in own if word != verb]
    # "Is there any mail?" has the thing of `send_mail`, which is a verb in "mail Anna" alone.
    says_verb = verb is not None and bool(
        (verbs_like(verb) - {*things}) & heard.request or verbs_like(verb) & heard.led
    )
    says_thing = any(word in heard.request for word in things)
    if heard.now or heard.described.names(call.name):
        # Where a tool may have asked for it, the person must have done so in so many words.
        meant = judged.said_now or (judged.said and heard.refers_back)
        asked = (says_verb or verb is None) and (says_thing or not things or meant)
        return "" if asked else f"{call.name} was not asked for, and a tool has spoken since."
    about = stems(call.description[:VALUE_CHARS]) - COMMON
    if says_verb or says_thing or judged.said_now or not about.isdisjoint(heard.request):
        return ""
    return f"{call.name} has nothing to do with what the person said." if heard.before else ""


def _sent_out(call: TracedCall, heard: _Heard) -> str:
    """Say why a reading call needs a yes: it takes a tool's words to an address."""
    values = islice(_leaves(call), VALUES_MAX)
    found = (
        (name, match)
        for name, value, _ in values
        if isinstance(value, str) and "." in value
        for match in _URL.finditer(plain(value[:VALUE_CHARS]))
    )
    said = frozenset[str]()
    for number, (name, match) in enumerate(found):
        said = said or frozenset(_HOSTS.findall(heard.person_text))
        if number >= ADDRESSES_MAX or _takes_words_along(match, said, heard):
            return f"{call.name}: {name} takes more to an address than the person said."
    return ""


def _takes_words_along(match: re.Match[str], said: frozenset[str], heard: _Heard) -> bool:
    """Say whether a URL has words of a tool in it, or leads where only a tool has pointed.

    One that stands in a result as it is tells nobody anything: it is a link that is followed.
    """
    url = match.group()
    user, _, host = (match["host"] or match["bare"]).rpartition("@")
    host = host.partition(":")[0]
    results = (*heard.now, *heard.before)
    if (host in said and not user) or any(url in each for each in results):
        return False
    # What is in front of the host reaches whoever answers for the name, as the path does.
    told = [
        word
        for word in map(
            stem, words(unquote_plus(f"{user} {host} {match['rest'] or match['path']}"))
        )
        if len(word) >= WORD_CHARS_MIN and word not in heard.person and word not in COMMON
    ]
    return any(host in each for each in heard.outside) or bool(
        told and _mostly_in(told[:WORDS_MAX], heard.outside)
    )
