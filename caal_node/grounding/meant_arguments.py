"""Arguments that repeat a reference, "second one", become what it means.

A small model often hands a person's words on as they are. No tool knows a second one, so what was
resolved takes their place; an argument that says anything else is the model's own reading, and
stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from caal_node.grounding.earlier_results import languages, name_words, singular
from caal_node.grounding.references import Reference

VALUE_CHARS: Final = 60
"""Characters of an argument that can be a reference: "the most expensive one of them"."""
_LIST_MAX: Final = 12
"""Texts of an argument that is a list, of which any may be a reference."""


def meant_arguments(
    arguments: Mapping[str, Any], references: Sequence[Reference]
) -> Mapping[str, Any]:
    """Return `arguments` with the names of what was meant in place of references."""
    if not references:
        return arguments
    return {key: _meant(key, value, references) for key, value in arguments.items()}


def meant_for(name: str, schema: Mapping[str, Any], references: Sequence[Reference]) -> str | None:
    """Return what a parameter that nobody has said can only be; None where that is open.

    That is what the one reference of the request means, for a free text whose name fits it.
    """
    is_text = schema.get("type") == "string" and "enum" not in schema
    if len(references) != 1 or len(references[0].names) != 1 or not is_text:
        return None
    fits = not references[0].nouns.isdisjoint(map(singular, name_words(name)))
    return references[0].names[0] if fits else None


def _meant(name: str, value: Any, references: Sequence[Reference]) -> Any:
    if isinstance(value, list):
        values = cast("list[Any]", value)
        return (
            [_meant(name, one, references) for one in values]
            if len(values) <= _LIST_MAX
            else values
        )
    if not isinstance(value, str) or len(value) > VALUE_CHARS:
        return cast("Any", value)
    for reference in references:
        if len(reference.names) == 1 and _repeats(name, value, reference):
            return reference.names[0]
    return value


def _repeats(name: str, value: str, reference: Reference) -> bool:
    """Whether `value` says no more than the reference does.

    "Italian" is the Italian one where a parameter is called as the thing is; as a `cuisine` it may
    be meant as it is. "Second" points at something wherever it stands.
    """
    said = {singular(word) for word in name_words(value)}
    nouns = {singular(word) for word in name_words(reference.tool)}
    words = {singular(word) for word in name_words(reference.words)}
    pointing = {word for each in languages() for word in each.triggers}
    is_called = not reference.nouns.isdisjoint(map(singular, name_words(name)))
    points = bool(said & words & pointing) or (is_called and bool(said & words))
    return points and said <= words | nouns
