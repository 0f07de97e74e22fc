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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import unquote_plus

from caal_node.core.items import Item
from caal_node.core.tool_spec import Effect
from caal_node.policy.heard_words import COMMON, DESTINATIONS, plain, stem, stems, verbs_like, words
from caal_node.policy.word_sources import Described, Heard, mostly_in

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
