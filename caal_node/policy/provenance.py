"""Where a call comes from: from what the person said, or from a tool's words alone.

A page, a mail or a tool's description may ask for calls, and small models do as they are told. So a
call that writes is traced: its tool to what the person asks for in this turn, each of its values to
what the person said. What stands in a tool's words and not in theirs needs a yes.

What cannot be told is not held against a call: booleans, numbers, dates, the values of an enum and
defaults carry neither a text nor a place to send it to, and what stands nowhere is the model's own
wording. Addresses are the exception: one that the person did not say is asked about wherever it
comes from. A text of an earlier turn may be meant by the person ("send the second one to Bob"), so
it is let through where they refer back and ask for the tool; where it goes to may not. What the
agent has said is theirs too where they ask for the tool, and else only the agent's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote_plus

from caal_node.core.items import AssistantItem, Item, ResultItem, Turn, UserItem
from caal_node.core.tool_spec import Effect
from caal_node.policy.heard_words import (
    COMMON,
    DESTINATIONS,
    NO,
    PICKS,
    QUESTIONS,
    REFERENCES,
    REPEATS,
    YES,
    plain,
    stem,
    stems,
    verbs_like,
    words,
)

# Whose words stand in a conversation: the person's, the agent's, or those of tools.

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


# Addresses in the values of a call: whether the person said them, and what they take along.

ADDRESSES_MAX: Final = 8
"""Addresses that are traced: of one value of a call that writes, of all values of one that reads. A
call with more is asked about."""
ADDRESS_CHARS: Final = 1_024
"""Characters of one value in which addresses are looked for. A reader's longer one, if it has a
scheme, is asked about."""
TOLD_WORDS: Final = 32
"""Words of one URL that are looked for in the tools' words."""
WORD_CHARS_MIN: Final = 3
"""Shorter words stand in any text."""

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
these forms but `2026-03-05`, which are taken out before."""
_MAY_BE_ADDRESS: Final = re.compile(r"[@\d]|://")


def address_unsaid(text: str, heard: Heard) -> str:
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
        if heard.is_outside(address):
            return "has an address that stands in a tool's words, and not in the person's."
        if stems(address).isdisjoint(heard.person - COMMON):
            return "has an address that the person did not say."
    return ""


def takes_words_along(values: Iterable[str], heard: Heard) -> bool:
    """Say whether a reader's values hold a URL that tells somebody more than the person said."""
    said, seen = frozenset[str](), 0
    for value in values:
        if len(value) > ADDRESS_CHARS and "://" in value:
            return True
        if "." not in value:
            continue
        for match in _URL.finditer(plain(value[:ADDRESS_CHARS])):
            said = said or frozenset(_HOSTS.findall(heard.person_text))
            seen += 1
            if seen > ADDRESSES_MAX or _tells_more(match, said, heard):
                return True
    return False


def _tells_more(match: re.Match[str], said: frozenset[str], heard: Heard) -> bool:
    """Say whether a URL has words of a tool in it, or leads where only a tool has pointed.

    One that stands in a result as it is tells nobody anything: it is a link that is followed.
    """
    url = match.group()
    user, _, host = (match["host"] or match["bare"]).rpartition("@")
    host = host.partition(":")[0]
    if (host in said and not user) or any(url in each for each in heard.results):
        return False
    # What is in front of the host reaches whoever answers for the name, as the path does.
    whole = unquote_plus(f"{user} {host} {match['rest'] or match['path']}")
    told = [
        word
        for word in map(stem, words(whole))
        if len(word) >= WORD_CHARS_MIN and word not in heard.person and word not in COMMON
    ]
    return heard.is_outside(host) or bool(told and heard.mostly_outside(told[:TOLD_WORDS]))


VALUES_MAX: Final = 32
"""Values of one call that are traced. A call with more is asked about."""
VALUE_CHARS: Final = 1_024
"""Characters of one value that are read."""
WORDS_MAX: Final = 32
"""Words of one value that are looked for in the tools' words."""
_DEPTH_MAX: Final = 8

_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[t\d:.+ z-]*|\d{1,2}:\d\d(?::\d\d)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)
_IDENTIFIER: Final = re.compile(r"(?i)(?:^|_|[a-z](?=Id$))(?:ids?|uids?|uuids?|ref|entity|slug)$")
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
    is_meant: bool = False
    """Whether the person's newest words mean such a tool in words of their own: "it's pitch black"
    the one for the lights."""


_NO_TOOLS: Final = Described()


def comes_from_outside(
    call: TracedCall, items: Sequence[Item], described: Described = _NO_TOOLS
) -> str:
    """Return why a call needs a yes, as a sentence without its values; "" where it needs none.

    Args:
        items: The conversation, oldest first, with the results that this turn has brought so far.
        described: What the model reads of tools that are not the owner's own.

    A call that reads is asked about only where it sends a tool's words to an address. One that
    destroys is traced as one that writes.
    """
    heard = Heard(items, described)
    values = list(islice(_leaves(call), VALUES_MAX + 1))
    if len(values) > VALUES_MAX:
        return f"{call.name} has more than {VALUES_MAX} values."
    if call.effect == "read":
        if takes_words_along((value for _, value, _ in values if isinstance(value, str)), heard):
            return f"{call.name} takes more to an address than the person said."
        return ""
    judged = _Judged(_request(call, heard))
    for name, value, schema in values:
        if reason := _judge(name, value, schema, heard, judged):
            return f"{call.name}: {name} {reason}"
    return _not_asked_for(call, heard, judged)


@dataclass(frozen=True, slots=True)
class _Request:
    """What of a tool the person's newest words have."""

    own: Sequence[str]
    """The words of the tool's name."""
    has_verb: bool
    """Whether the name has a verb that people use."""
    things: Sequence[str]
    """The other words of the name."""
    says_verb: bool
    says_thing: bool
    is_about: bool
    """Whether they say the verb, a thing, or a word of the tool's description."""
    refers_back: bool
    """Whether they mean something that was said before: they pick one of several, or refer to it
    and say what is to be done with it. "What time is it" means nothing that a tool has said."""


def _request(call: TracedCall, heard: Heard) -> _Request:
    own = [word for word in dict.fromkeys(map(stem, words(call.name))) if word not in COMMON]
    verb = next((word for word in own if verbs_like(word)), None)
    things = [word for word in own if word != verb]
    # "Is there any mail?" has the thing of `send_mail`, which is a verb in "mail Anna" alone.
    says_verb = verb is not None and bool(
        (verbs_like(verb) - {*things}) & heard.request or verbs_like(verb) & heard.led
    )
    says_thing = any(word in heard.request for word in things)
    about = stems(call.description[:VALUE_CHARS]) - COMMON
    is_about = says_verb or says_thing or not about.isdisjoint(heard.request)
    again = heard.repeats and call.name in heard.called_before
    refers_back = again or heard.picks or (heard.refers_back and is_about)
    return _Request(own, verb is not None, things, says_verb, says_thing, is_about, refers_back)


@dataclass(slots=True)
class _Judged:
    """What the values of a call have shown."""

    request: _Request
    said: bool = False
    """Whether the person said something of one of them at any time."""
    said_now: bool = False
    """Whether they said it in this turn."""


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


def _judge(name: str, value: Any, schema: Mapping[str, Any], heard: Heard, judged: _Judged) -> str:
    """Say why a value needs a yes, and note whether the person said it."""
    if isinstance(value, bool) or value is None:
        return ""
    text = plain(str(value)[:VALUE_CHARS])
    goes_to = _is_destination(name)
    if goes_to and isinstance(value, str) and len(value) > VALUE_CHARS:
        return f"has more than {VALUE_CHARS} characters."
    found = set(map(stem, words(text))) - COMMON
    judged.said |= not found.isdisjoint(heard.person)
    judged.said_now |= not found.isdisjoint(heard.request)
    if value in _listed(schema) or value == schema.get("default"):
        return ""
    if _TIME.search(text):
        text = _TIME.sub(" ", text)
        found = set(map(stem, words(text))) - COMMON
    if reason := address_unsaid(text, heard):
        return reason
    if not isinstance(value, str):
        return ""
    # What the agent has read out of a result is no more the person's than the result itself, unless
    # they ask for the tool.
    repeated = heard.spoken if judged.request.is_about else frozenset[str]()
    unsaid = sorted(
        word
        for word in found - heard.person
        if (goes_to or (len(word) >= WORD_CHARS_MIN and word not in repeated))
        and not word.isdecimal()
    )
    if not unsaid or (_IDENTIFIER.search(name) and _is_own_value(value, heard)):
        return ""
    looked_for = unsaid[:WORDS_MAX]
    if mostly_in(looked_for, heard.now) or (
        (goes_to or not judged.request.refers_back) and heard.mostly_outside(looked_for)
    ):
        return "stands in a tool's words, and not in the person's."
    return ""


@lru_cache(512)
def _is_destination(name: str) -> bool:
    """Say whether a parameter says where something goes."""
    return not DESTINATIONS.isdisjoint(words(name))


def _listed(schema: Mapping[str, Any]) -> Sequence[Any]:
    listed = schema.get("enum")
    return cast("list[Any]", listed) if isinstance(listed, list) else (schema.get("const"),)


def _is_own_value(value: str, heard: Heard) -> bool:
    """Say whether a tool gave an identifier as a value by itself, and not inside of a text."""
    quoted = f'"{plain(value)}"'
    for text in heard.results:
        at = text.find(quoted)
        if at > 0 and text[0] in "{[" and text[at - 1] != "\\":
            return True
    return False


def _not_asked_for(call: TracedCall, heard: Heard, judged: _Judged) -> str:
    """Say why the tool itself needs a yes: nothing that the person said is about it."""
    request = judged.request
    if heard.now or heard.described.names(call.name):
        # Where a tool may have asked for it, the person must have done so in so many words.
        meant = judged.said_now or (judged.said and (heard.refers_back or heard.repeats))
        asked = (request.says_verb or not request.has_verb) and (
            request.says_thing or not request.things or meant
        )
        return "" if asked else f"{call.name} was not asked for, and a tool has spoken since."
    if request.is_about or judged.said_now or call.is_meant:
        return ""
    # "A bit louder" says nothing of `set_volume` either: only a tool that an earlier result speaks
    # of may have been asked for by it, unless the person refers to what was said before.
    spoken_of = heard.before and (heard.may_name_any_tool or mostly_in(request.own, heard.before))
    if not heard.refuses and (request.refers_back or not spoken_of):
        return ""
    return f"{call.name} has nothing to do with what the person said." if heard.before else ""
