"""A server's question as a form of a front end: what it shows, and what it takes for an answer.

A form's message is `{"call_id": ..., "question_id": ..., "content": {...}}`, with the names of the
event `question_asked`. `content` has a value for each field's name, and is null for a refusal. A
choice is named by its place, as its value at the server may hold what nobody is to see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from caal_node.core.events import QuestionField
from caal_node.tools.spoken_question import MAX_READ_CHARS
from mcp_bridge.core.elicitation import Accepted, Answer, Declined, Field, Question, value_fits

FieldValue: TypeAlias = str | int | float | bool | list[str]

FORM_CHARS: Final = 24_000
"""Characters of a form's message: eight fields are asked for at most, and a text has 2,000."""


def form_fields(question: Question) -> tuple[QuestionField, ...]:
    """Return the question's fields as a front end shows them."""
    return tuple(
        QuestionField(
            *(field.name, field.kind, field.title, field.description, field.required),
            default=_shown_default(field),
            choices=tuple(words for _, words in field.choices),
        )
        for field in question.fields
    )


def form_answer(question: Question, message: Mapping[str, Any]) -> Answer | None:
    """Return what a form's message answers; None where it does not fit the question.

    What is left out is the server's to choose; where the server wants a value of its field, that is
    the field's default.
    """
    content: object = message.get("content", "")
    if content is None:
        return Declined()
    if not isinstance(content, dict):
        return None
    given = cast("dict[str, object]", content)
    values: dict[str, FieldValue] = {}
    for field in question.fields:
        if (asked := given.pop(field.name, None)) is not None:
            value = _value(field, asked)
        elif field.required:
            value = _default(field)
        else:
            continue
        if value is None:
            return None
        values[field.name] = value
    return None if given else Accepted(values)


def _value(field: Field, given: object) -> FieldValue | None:
    """Return the field's value that a form gives; None where it gives none, as with words."""
    match field.kind:
        case "text":
            text = given.strip() if isinstance(given, str) else ""
            return text if 0 < len(text) <= MAX_READ_CHARS else None
        case "choice":
            return _chosen(field, given)
        case "choices":
            places = cast("list[object]", given) if isinstance(given, list) else []
            chosen = {_chosen(field, place): None for place in places[: len(field.choices)]}
            fits = 0 < len(places) == len(chosen) and None not in chosen
            return [value for value in chosen if value is not None] if fits else None
        case _:
            return cast("FieldValue", given) if value_fits(field, given) else None


def _chosen(field: Field, place: object) -> str | None:
    if not isinstance(place, int) or isinstance(place, bool):
        return None
    return field.choices[place][0] if 0 <= place < len(field.choices) else None


def _default(field: Field) -> FieldValue | None:
    """Return the server's default; None where it has none, or one that fits not its own field."""
    default = field.default
    if default is None or not value_fits(field, default):
        return None
    return None if isinstance(default, str) and len(default) > MAX_READ_CHARS else default


def _shown_default(field: Field) -> str | int | float | bool | tuple[int, ...] | None:
    default = _default(field)
    values = [value for value, _ in field.choices]
    if isinstance(default, list):
        return tuple(values.index(each) for each in default)
    return values.index(default) if field.kind == "choice" and default in values else default
