"""What a call did and with what, as far as its words tell: its tool's name, its arguments, what its
author says of it, and the beginning of its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from caal_node.core.prompt_files import sentence
from caal_node.grounding.action_claims import RequestKind, plain
from caal_node.grounding.action_words import LOOK_UP, ActionWords
from caal_node.grounding.ledger import CallState, LedgerEntry
from caal_node.policy.heard_words import COMMON, stems, words

ARGUMENTS_MAX: Final = 64
"""Arguments of a call that are read."""
CHARS_MAX: Final = 300
"""Characters of a call's arguments, of its result and of its tool's description each, whose words
count as the call's: the names of what it was about stand at the beginning."""
CHARS_OF_ALL: Final = 2_000
"""The same of all calls of a turn together, at 0.1 ms for a thousand."""
CHARS_LEAST: Final = 60
_MODE_CHARS: Final = 40
"""Characters of an argument that may be a mode ("off", "turn_off"); a longer one is a text."""


@dataclass(frozen=True, slots=True)
class CallWords:
    """One call, as its words tell what it does and with what."""

    state: CallState
    actions: frozenset[str]
    against: frozenset[str]
    """The actions that its arguments rule out."""
    reads: bool
    general: bool
    """Its tool does what its arguments say, or nothing is known of it."""
    things: frozenset[str]
    """Stems of its name, arguments and description, and of the beginning of its result."""
    own: frozenset[str]
    """Those of its arguments alone."""
    tool: str
    declined: bool
    """The person was asked for a yes, and gave none."""


def known_stems(found: Iterable[str], language: ActionWords) -> frozenset[str]:
    """Return stems, with one for those that mean the same thing."""
    return frozenset(language.same_things.get(word, word) for word in found)


def call_words(entry: LedgerEntry, language: ActionWords, calls: int = 1) -> CallWords:
    """Read one call of so many, which share out how much of each is read."""
    chars = max(CHARS_LEAST, min(CHARS_MAX, CHARS_OF_ALL // calls))
    return _call_of(
        entry.tool,
        _arguments_text(entry.arguments, chars),
        entry.state,
        entry.result[:chars],
        entry.effect,
        entry.description[:chars],
        language,
    )


def _arguments_text(arguments: Mapping[str, Any], chars: int) -> str:
    lines = [f"{name}={value}" for name, value in list(arguments.items())[:ARGUMENTS_MAX]]
    return "\n".join(lines)[:chars]


@lru_cache(256)
def _call_of(
    tool: str,
    arguments: str,
    state: CallState,
    result: str,
    effect: str,
    description: str,
    language: ActionWords,
) -> CallWords:
    name = words(tool.rpartition("__")[2])
    reads = effect == "read" or _only_tells(name, language)
    values = [line.partition("=")[2] for line in arguments.splitlines()]
    actions = _actions_of(name, language)
    general = actions <= {"set"} or bool(language.general.intersection(name))
    modes = frozenset[str]()
    if general:
        short = [value for value in values if len(value) <= _MODE_CHARS]
        modes = _modes(short, language)
        actions |= modes
    if not actions:
        actions = _actions_described(description, language)
    by_amount = _against(arguments, language)
    against = by_amount | frozenset(
        name for mode in modes for name in language.opposites[mode] if name not in modes
    )
    return CallWords(
        state,
        frozenset(actions) - by_amount,
        against,
        reads,
        general,
        _known_in(f"{tool} {' '.join(values)}", language)
        | _known_in(description, language)
        | _known_in(result, language),
        known_stems(stems(" ".join(values)) - COMMON, language),
        tool,
        state == "refused" and sentence("not_confirmed") in result,
    )


@lru_cache(256)
def _known_in(text: str, language: ActionWords) -> frozenset[str]:
    """Return what `known_stems` has of a text. Many calls have the same description."""
    return known_stems(stems(text), language)


@lru_cache(256)
def _actions_described(description: str, language: ActionWords) -> frozenset[str]:
    """Return the actions of which a tool's author speaks."""
    found = language.verbs.base.finditer(plain(description))
    return frozenset(match.lastgroup or "" for match in found) - {LOOK_UP}


def _only_tells(name: Sequence[str], language: ActionWords) -> bool:
    if not name:
        return False
    lists = name[0] in language.listing and not language.writing.intersection(name)
    return lists or name[0] in language.reading


def _actions_of(name: Sequence[str], language: ActionWords) -> frozenset[str]:
    found = [language.tools[word] for word in name if word in language.tools]
    return frozenset[str]().union(*found)


def _modes(values: Iterable[str], language: ActionWords) -> frozenset[str]:
    """Return the actions that short arguments name: off, turn_off, closed."""
    found = set[str]()
    for value in values:
        text = plain(value)
        for form in (language.verbs.base, language.verbs.past, language.verbs.states):
            match = form.fullmatch(text) or form.search(text.rpartition(".")[2])
            if match is not None and match.lastgroup:
                found.add(match.lastgroup)
    return frozenset(found)


def _against(arguments: str, language: ActionWords) -> frozenset[str]:
    """Return the actions that an amount rules out: a position of 0 is no opening."""
    found = set[str]()
    for line in arguments.splitlines():
        name, _, value = line.partition("=")
        if not language.frames["amounts"].search(name.lower()):
            continue
        try:
            amount = float(value.rstrip("% "))
        except ValueError:
            continue
        found |= {"open", "on"} if amount == 0 else {"off"} | ({"close"} if amount > 50 else set())
    return frozenset(found)


def does(call: CallWords, action: str, request: RequestKind, words: ActionWords) -> bool:
    """Say whether a call's words are those of `action`, which the request may speak for."""
    if action in call.actions:
        return True
    if call.actions & words.opposites[action]:
        return False
    if call.general:
        return action not in words.outward or action in request.actions
    if call.actions & words.related[action]:
        return True
    return not call.actions and request.commands(action, words)
