"""The words of `prompts/action_claims.toml`: verbs in their forms, and what stands around them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from caal_node.core.prompt_files import read
from caal_node.policy.heard_words import stem

ANYTHING: Final = "anything"
"""The action of a clause that claims whatever was asked for: "Done."."""
REQUESTED: Final = "requested"
"""The action of a verb that is not in the file, and that the person has used: water, archive."""
LOOK_UP: Final = "look_up"
"""The action of a clause that claims to have looked something up, which changes nothing."""
_GAP: Final = r"(?: (?!and\b|but\b|on\b|off\b|i\b|then\b)[\w'’\-:%°]+){0,6}? "
"""Up to six words between a verb and the word that goes with it: turned the kitchen light off."""
_VOWELS: Final = "aeiou"
_WHOLE_PATTERNS: Final = (
    *("instructions", "negatives", "conditions", "depends", "past_times", "by_others"),
    *("reports", "relatives", "finite", "asks_politely", "texts", "assents", "tags"),
    *("everything", "not_participles", "no_actions", "got_it_done"),
    *("small_talk", "follows_state", "already", "shortened"),
)
"""Keys of the file whose values are used as they are."""


@dataclass(frozen=True, slots=True)
class VerbForms:
    """One pattern a form; the name of the group that matches is the action."""

    base: re.Pattern[str]
    past: re.Pattern[str]
    ing: re.Pattern[str]
    states: re.Pattern[str]
    phrases: Mapping[str, re.Pattern[str]]
    """Words that are no verb and tell of an action, by the action: "on its way"."""
    asks: re.Pattern[str]
    """What a request for the action has in it besides the base form."""


@dataclass(frozen=True, slots=True, eq=False)
class ActionWords:
    """The words of one language."""

    verbs: VerbForms
    frames: Mapping[str, re.Pattern[str]]
    """What stands before a verb, or elsewhere in its clause, by the name in the file."""
    tools: Mapping[str, frozenset[str]]
    """For each word in a tool's name, the actions that it may do."""
    reading: frozenset[str]
    general: frozenset[str]
    listing: frozenset[str]
    writing: frozenset[str]
    outward: frozenset[str]
    specific: frozenset[str]
    places: frozenset[str]
    no_objects: frozenset[str]
    receivers: frozenset[str]
    no_receivers: frozenset[str]
    irregular: Mapping[str, str]
    """The base of a past form."""
    same_things: Mapping[str, str]
    """One stem for all that mean the same thing: lamp, light."""
    related: Mapping[str, frozenset[str]]
    """For each action, itself and those that people and tools use its words for."""
    opposites: Mapping[str, frozenset[str]]


@cache
def action_words(language: str = "en") -> ActionWords:
    """Return the words of `language`, read once.

    Raises:
        KeyError: the file has no words of it.
    """
    return words_of(tomllib.loads(read("action_claims.toml"))[language])


def words_of(table: Mapping[str, Any]) -> ActionWords:
    """Compile the words of one language.

    Raises:
        ValueError: a pattern is none, or a verb has not one form or three.
    """
    actions: Mapping[str, Mapping[str, Any]] = table["actions"]
    try:
        base, past, ing = (_grouped(_verb_forms(actions, form)) for form in range(3))
        verbs = VerbForms(
            base,
            past,
            ing,
            states=_grouped((name, row.get("states", "")) for name, row in actions.items()),
            phrases={
                name: re.compile(rf"\b(?:{row['phrases']})\b")
                for name, row in actions.items()
                if "phrases" in row
            },
            asks=re.compile(
                "|".join(
                    f"(?P<{name}>{row['asks']})" for name, row in actions.items() if "asks" in row
                )
            ),
        )
        frames = _frames(table)
    except re.error as error:
        raise ValueError(f"action_claims.toml: {error.pattern!r}: {error}") from None
    tools: dict[str, set[str]] = {}
    for name, row in actions.items():
        for word in row["tools"]:
            tools.setdefault(word, set()).add(name)
    return ActionWords(
        verbs,
        frames,
        {word: frozenset(names) for word, names in tools.items()},
        reading=_listed(table["reading_tools"]),
        general=_listed(table["general_tools"]),
        listing=_listed(table["listing_tools"]),
        writing=_listed(table["writing_tools"]),
        outward=_listed(table["outward"]),
        specific=_listed(table["specific"]),
        places=_listed(table["places"]),
        no_objects=_listed(table["no_objects"]),
        receivers=_listed(table["receivers"]),
        no_receivers=_listed(table["no_receivers"]),
        irregular=table["irregular"],
        same_things={stem(w): stem(group[0]) for group in table["same_things"] for w in group},
        related=_sets(actions, table["families"], itself=True),
        opposites=_sets(actions, table["opposites"], itself=False),
    )


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split("|"))


def _sets(
    actions: Iterable[str], groups: Iterable[list[str]], *, itself: bool
) -> dict[str, frozenset[str]]:
    groups = list(groups)
    found: dict[str, frozenset[str]] = {}
    for name in (*actions, REQUESTED):
        of_name = {other for group in groups if name in group for other in group} | {name}
        found[name] = frozenset(of_name if itself else of_name - {name})
    return found


def _verb_forms(actions: Mapping[str, Mapping[str, Any]], form: int) -> Iterable[tuple[str, str]]:
    for name, row in actions.items():
        alone = _forms(row.get("verbs", ()), form)
        with_more = [
            f"(?:{_forms(each['verbs'], form)}){_between(each)}(?:{each['then']})"
            for each in row.get("with", ())
        ]
        yield name, "|".join(filter(None, [*with_more, alone]))


def _between(verbs: Mapping[str, Any]) -> str:
    return " " if verbs.get("near") else _GAP


def _forms(verbs: Iterable[str], form: int) -> str:
    return "|".join(_inflected(verb)[form] for verb in verbs)


def _inflected(verb: str) -> list[str]:
    forms = verb.split(":")
    if len(forms) == 3:
        return forms
    if len(forms) != 1:
        raise ValueError(f"action_claims.toml: {verb!r} has to be one form, or three")
    if verb.endswith("e"):
        return [verb, f"{verb}d", f"{verb[:-1]}ing"]
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return [verb, f"{verb[:-1]}ied", f"{verb}ing"]
    return [verb, f"{verb}ed", f"{verb}ing"]


def _grouped(patterns: Iterable[tuple[str, str]]) -> re.Pattern[str]:
    named = "|".join(f"(?P<{name}>{pattern})" for name, pattern in patterns if pattern)
    return re.compile(rf"\b(?:{named})\b")


def _frames(table: Mapping[str, Any]) -> dict[str, re.Pattern[str]]:
    parts = {"adverbs": rf"(?:{table['adverbs']})", "openers": rf"(?:{table['openers']})"}
    adverbs, openers = rf"(?: {parts['adverbs']})*,? $", rf"^(?:{parts['openers']}[,.!: ]+)*"
    lead = rf"{openers}(?:{parts['adverbs']} )*$"
    frames = {
        "i_have": rf"{table['i_have']}{adverbs}",
        "i_am": rf"{table['i_am']}{adverbs}",
        "i_will": rf"{table['i_will']}{adverbs}",
        "is_been": rf"(?:{table['is_been']}){adverbs}",
        "is": rf"{table['is']}{adverbs}",
        "started": rf"\b(?:has|have)(?: {parts['adverbs']})* $",
        "lead": lead,
        "noun": rf"{openers}(?:(?!(?:{table['no_subjects']})\b)[\w'’\-:]+ ){{1,6}}$",
        "joined": rf"(?:\band|,|\bthen)(?: {parts['adverbs']})* $|{lead}",
        "follows": rf"^\W*$|^ ?[.!,:]|^ (?:{table['follows']})\b",
        "questions": rf"{openers}(?:{table['questions']})",
        "done": table["anything"]["done"],
        "promised": table["anything"]["promised"],
        "i_managed": rf"{table['i_managed']}{adverbs}",
        "i_will_at_all": table["i_will"],
    }
    for key in _WHOLE_PATTERNS:
        frames[key] = table[key]
    compiled: dict[str, re.Pattern[str]] = {}
    for key, pattern in frames.items():
        for name, value in {**parts, "i_will": table["i_will"]}.items():
            pattern = pattern.replace("{" + name + "}", value)
        compiled[key] = re.compile(pattern)
    compiled["amounts"] = re.compile(rf"(?:{table['amounts']})")
    return compiled


action_words()  # With the module: it takes 27 ms, for which no turn may hold the event loop.
