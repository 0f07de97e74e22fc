"""What is known already: "when does the first one arrive" asks for its `arrives`, which an earlier
result has, so that no call is needed for it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from caal_node.grounding.earlier_results import Thing
from caal_node.grounding.reference_words import ReferenceWords, Token, name_words, singular

FACTS_MAX: Final = 2
"""Facts that a question is told. Where more fit, it asks for something else."""
VALUE_CHARS: Final = 60
"""Characters of one fact. A longer text is read in the result itself."""
KEY_CHARS: Final = 40
"""Characters of a field's name, as a tool has it. A longer one is no name."""
FIELDS_MAX: Final = 64
"""Fields of a record that are looked at, the first ones."""
_WORD_CHARS: Final = 4
"""Letters of a word that names a field; shorter ones, such as "on" and "id", do by chance."""


def asked_facts(
    said: Sequence[Token], words: ReferenceWords, thing: Thing
) -> tuple[tuple[str, str], ...]:
    """Return what a question asks of `thing`, as names of fields with their values.

    Args:
        said: The words of the request without those that refer to the thing.
        words: Those of its language.
        thing: What it is about; a text has no fields.

    Returns:
        None where the request is no question, asks nothing that is there, or asks for more than
        `FACTS_MAX` fields. A field that the question names goes before what its first word asks.
    """
    if isinstance(thing, str) or not said or said[0].word not in words("questions"):
        return ()
    told = [token.word for token in said]
    line = f" {' '.join(told)} "
    named = {singular(word) for word in told if len(word) >= _WORD_CHARS}
    fields = list(itertools.islice(thing, FIELDS_MAX))
    keys = [key for key in fields if not named.isdisjoint(map(singular, name_words(key)))]
    for asked in words.asked if not keys else ():
        if any(f" {each} " in line for each in asked.said):
            keys = [key for key in fields if not asked.fields.isdisjoint(name_words(key))]
        if keys:
            break
    facts = tuple((key, text) for key in keys if (text := _text(thing, key)))
    return facts if len(facts) == len(keys) <= FACTS_MAX else ()


def _text(thing: Mapping[str, Any], key: str) -> str:
    """Return a field's value in a few words; "" where it or its name has more."""
    value = thing[key]
    if len(key) > KEY_CHARS or not key.isprintable():
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
    return text if len(text) <= VALUE_CHARS else ""


def is_told(facts: Sequence[tuple[str, str]], arguments: Mapping[str, Any]) -> bool:
    """Return whether a call goes on with a figure: it converts the price that was asked for."""
    values = {str(value).casefold() for value in arguments.values()}
    return any(text.casefold() in values for _, text in facts if text[:1].isdecimal())


def is_same_lookup(arguments: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a call asks for nothing that an earlier call of its tool has not asked for."""
    return all(
        key in earlier and str(earlier[key]).casefold() == str(value).casefold()
        for key, value in arguments.items()
    )
