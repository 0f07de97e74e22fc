"""What was done in a turn: its calls in order, how each ended, and what its result says.

It is read off the conversation's items, so it is the same however a call was asked for and whoever
ran it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, TypeAlias, cast

from caal_node.core.items import CallItem, Item, ResultItem, Turn, WindowItem
from caal_node.core.tool_spec import Effect, ToolSpec, tool_reads
from caal_node.grounding.quantities import Stated, stated_in
from caal_node.grounding.request_words import answers_anything, language_of
from caal_node.grounding.spoken_numbers import WORDS, listed
from caal_node.grounding.spoken_times import weekday_of
from caal_node.language.requests import request_odds
from caal_node.policy.heard_words import COMMON, QUESTIONS, stem, stems, words

CallState: TypeAlias = Literal["done", "failed", "refused", "dry_run", "pending"]
"""How a call ended. "failed" is an error or a deadline that passed, "refused" one that a rule or a
person did not let run, and "pending" one that has no result yet."""
RESULT_CHARS: Final = 65_536
"""Characters of a result that are read: ten times what a prompt shows of one."""
ENTRIES_KEPT: Final = 128
"""Calls that are read once for all the answers of a conversation that they stand in front of."""
_REFUSED: Final = frozenset({"refused", "needs_confirmation"})
_ERROR_KEYS: Final = frozenset({"error", "message"})


@dataclass(frozen=True)
class LedgerEntry:
    """One call."""

    call_id: str
    tool: str
    """The name that the model calls it by."""
    arguments: Mapping[str, Any]
    state: CallState
    result: str = ""
    """What the model reads of it: JSON on one line, or plain words."""
    effect: Effect = "write"
    description: str = ""
    by_server: bool = False
    """Whether the model's server has run it, so that nobody here has seen its result."""

    @cached_property
    def reads(self) -> bool:
        """Whether it only tells something."""
        return tool_reads(self.tool, self.effect)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The calls of this turn and, apart from them, those of earlier ones that are still known."""

    request: str = ""
    """What the person said last."""
    turn: tuple[LedgerEntry, ...] = ()
    earlier: tuple[LedgerEntry, ...] = ()


def ledger_of(items: Sequence[Item], specs: Mapping[str, ToolSpec]) -> Ledger:
    """Read the ledger off a conversation; `specs` are the tools by the model's names."""
    results = {item.call_id: item for item in items if isinstance(item, ResultItem)}
    turn = Turn(items)

    def entries(calls: Iterable[WindowItem]) -> tuple[LedgerEntry, ...]:
        return tuple(
            _entry(
                call,
                results.get(call.call_id),
                "write" if (spec := specs.get(call.name)) is None else spec.effect,
                "" if spec is None else spec.description,
            )
            for call in calls
            if isinstance(call, CallItem)
        )

    return Ledger(turn.request, entries(turn.since), entries(turn.before))


@lru_cache(ENTRIES_KEPT)
def _entry(
    call: CallItem, result: ResultItem | None, effect: Effect, description: str
) -> LedgerEntry:
    return LedgerEntry(
        call.call_id,
        call.name,
        _members(call.arguments),
        "pending" if result is None else _state(result),
        "" if result is None else result.output[:RESULT_CHARS],
        effect,
        description,
    )


def _state(result: ResultItem) -> CallState:
    told = _members(result.output)
    if told.get("dry_run") is True:
        return "dry_run"
    # One that needs no reply is no error of LiveKit's, and has nothing but our two keys.
    is_ours = result.is_error or frozenset(told) == _ERROR_KEYS
    if is_ours and told.get("error") in _REFUSED:
        return "refused"
    return "failed" if result.is_error else "done"


def _members(text: str) -> Mapping[str, Any]:
    if not text.startswith("{") or len(text) > RESULT_CHARS:
        return {}
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", read) if isinstance(read, dict) else {}


# What a call's result is: something, nothing, an error, or something else than was asked for.

Kind: TypeAlias = Literal["found", "empty", "failed"]
NAMED_CHARS: Final = 60
"""Characters of what was asked for or found that a person hears."""
_EMPTY_CHARS: Final = 80
"""Characters up to which a text may say that there is nothing; a longer one says something."""
_EMPTY: Final = re.compile(
    rf"\W*(?:(?:sorry|success|ok)\W+)?(?:{'|'.join(WORDS['empty_results'])})\b"
)
_EMPTY_WORDS: Final = listed("empty_words")
_COUNTS: Final = listed("count_keys")
_READING: Final = frozenset(map(stem, WORDS["reading"]))
_SAME_NAMES: Final = tuple(frozenset(map(stem, group)) for group in WORDS["same_names"])
_ABBREVIATED: Final = 4
"""Letters of a name that may be short for a longer one."""
_SIMILAR: Final = 0.5
"""The likeness above which two names may be one in two languages, as Prague and Praha."""
_STATUS: Final = listed("status_keys")
OWN_THINGS: Final = (
    r"files?|folders?|director(?:y|ies)|e-?mails?|mailbox|contacts?|calendars?|notes?|"
    r"memor(?:y|ies)|documents?|messages?|history"
)
"""What is somebody's own, as names of tools have it."""
_OWN: Final = re.compile(rf"\b(?:{OWN_THINGS})\b")
_OF_THE_WORLD: Final = 0.9
"""Odds from which a question is about the world at large. None of 34 labelled ones about the
documents of a household has them."""
_PROSE_WORDS: Final = 40
"""Words of a text from which one that is about a question has a word of it."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A result is of something else than was asked for."""

    asked: str
    found: str


def kind_of(entry: LedgerEntry) -> Kind:
    """Return what a call's result is. What has not run, or did not work, has failed."""
    if entry.state != "done":
        return "failed"
    value = _value(entry.result.strip())
    if isinstance(value, str):
        nothing = not value or _says_nothing(value)
    else:
        nothing = _has_nothing(value, entry.arguments)
    return "empty" if nothing and looks_up(entry) else "found"


def _says_nothing(text: str) -> bool:
    """Say whether a text says that there is nothing, and nothing else that could be told."""
    lower = text.lower().strip(" \t\n.!")
    if lower in _EMPTY_WORDS:
        return True
    begun = _EMPTY.match(lower)
    # "No match today, the next one is on Friday" has something to tell.
    return (
        begun is not None
        and len(text) <= _EMPTY_CHARS
        and stated_in(lower[begun.end() :]) == Stated()
    )


def looks_up(entry: LedgerEntry) -> bool:
    """Say whether a call looks something up, by its effect or by its name."""
    return entry.effect == "read" or not _READING.isdisjoint(map(stem, words(entry.tool)))


def _has_nothing(value: Any, arguments: Mapping[str, Any]) -> bool:
    """Say whether a result has an empty list, or says 0, and else repeats what was asked."""
    if isinstance(value, list):
        return not value
    if not isinstance(value, dict):
        return False
    echoed = {str(one).lower() for one in arguments.values()}
    says_nothing = not value
    for name, member in cast("dict[str, Any]", value).items():
        if _is_nothing(name, member):
            says_nothing = True
        elif not (
            isinstance(member, bool)
            or str(member).lower() in echoed
            or not _STATUS.isdisjoint(words(name))
        ):
            return False
    return says_nothing


def _is_nothing(name: str, member: Any) -> bool:
    if member is None or member in ("", [], {}):
        return True
    if isinstance(member, str):
        return _says_nothing(member)
    return member is not False and member == 0 and not _COUNTS.isdisjoint(words(name))


def elsewhere(entry: LedgerEntry) -> Elsewhere | None:
    """Return what was found in place of what was asked for: another place, name or date.

    A result tells what it is of where a member is called "city" or "location" and an argument is,
    too, or both are dates. Other names are written otherwise too often: "school" and the mail's
    whole sender.
    """
    if entry.state != "done" or entry.result[:1] != "{":
        return None
    try:
        value = json.loads(entry.result)
    except (ValueError, RecursionError):
        return None
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for name, asked in entry.arguments.items():
        if not isinstance(asked, str):
            continue
        for found in _of_same_kind(name, members):
            if _differs(asked, found):
                return Elsewhere(asked[:NAMED_CHARS], found[:NAMED_CHARS])
    return None


def is_unrelated(entry: LedgerEntry, request: str) -> bool:
    """Say whether a search for a question about the world has found what surely does not answer it.

    It shares no word, name or number with what was asked, and is a long text, or private: out of
    somebody's own things, with a telephone number or a mail address in it. Any other short one may
    well be the answer: "Lisbon", or a note of "our" way to make sourdough.
    """
    name = " ".join(words(entry.tool))
    is_own = _OWN.search(name) is not None
    if not (is_own or answers_anything(frozenset(name.split()), language_of((request,)))):
        return False
    if request_odds(request)["knowledge"] < _OF_THE_WORLD:
        return False
    sought = frozenset(one for one in entry.arguments.values() if isinstance(one, str))
    asked = stems(request) - COMMON - frozenset(map(stem, QUESTIONS))
    if asked.isdisjoint(frozenset[str]().union(*map(stems, sought))):
        return False
    texts = list(_texts(_value(entry.result), sought))
    is_long = any(len(words(text)) >= _PROSE_WORDS for text in texts)
    if not is_long and not (is_own and any(map(_is_private, texts))):
        return False
    begun = {one[:_ABBREVIATED] for text in texts for one in stems(text)}
    return begun.isdisjoint(one[:_ABBREVIATED] for one in asked)


def _is_private(text: str) -> bool:
    return "@" in text or bool(stated_in(text).codes)


def _value(result: str) -> Any:
    """Return what a result's JSON holds, or the text that it is."""
    try:
        return json.loads(result) if result.strip()[:1] in ("{", "[", '"') else result
    except (ValueError, RecursionError):
        return result


def _texts(value: Any, echoed: frozenset[str]) -> Iterator[str]:
    """Yield the texts of a result that do not only repeat what was asked, and the names of keys."""
    if isinstance(value, dict):
        for name, member in cast("dict[str, Any]", value).items():
            yield name
            yield from _texts(member, echoed)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from _texts(member, echoed)
    elif str(value) not in echoed:
        yield str(value)


def _of_same_kind(name: str, members: Mapping[str, Any]) -> Iterator[str]:
    kinds = [frozenset[str](group) for group in WORDS["same_keys"]]
    own = {*words(name)}
    alike = frozenset[str]().union(*(kind for kind in kinds if own & kind))
    for key, value in members.items():
        if isinstance(value, str) and key.lower() in alike:
            yield value


def _differs(asked: str, found: str) -> bool:
    """Say whether two values share no word, or are two dates."""
    if not asked.strip() or not found.strip():
        return False
    one, other = stated_in(asked).days, stated_in(found).days
    if one and other:
        dated = (one[0].month, one[0].day), (other[0].month, other[0].day)
        if all(month for month, _ in dated):
            return dated[0] != dated[1]
        return weekday_of(one[0]) != weekday_of(other[0])
    if one or other or not asked[0].isalpha() or not found[0].isalpha():
        return False
    mine, theirs = _names(asked), _names(found)
    return bool(mine and theirs) and not any(_alike(a, b) for a in mine for b in theirs)


def _names(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text)) - COMMON


def _alike(one: str, other: str) -> bool:
    """Say whether two names may be one: the same, abbreviated, or of two languages."""
    if one == other or any(one in group and other in group for group in _SAME_NAMES):
        return True
    if one[0] != other[0]:
        return False
    is_short = min(len(one), len(other)) <= _ABBREVIATED
    return is_short or SequenceMatcher(None, one, other).ratio() > _SIMILAR
