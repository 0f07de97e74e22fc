"""A server's question to the person, and how a host answers it.

A server may ask for what it lacks in the middle of a call. The host gives an `Elicitor`; without
one, or when nobody answers in time, the question is declined and the server goes on as it sees fit.
Format: https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast

Value: TypeAlias = str | int | float | bool | list[str] | None
Kind: TypeAlias = Literal["text", "number", "integer", "boolean", "choice", "choices"]


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that is asked for."""

    name: str
    """The key under which the answer's content holds the value."""
    kind: Kind
    title: str
    description: str
    required: bool
    default: Value = None
    choices: tuple[tuple[str, str], ...] = ()
    """For `choice` and `choices`: each value, and the words for it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a server asks while `tool` runs. All words are the server's own, cleaned and cut."""

    server: str
    tool: str
    """The tool's name at its server."""
    message: str
    fields: tuple[Field, ...] = ()
    """The fields to fill in; none where yes or no is the whole answer."""
    url: str = ""
    """A page that the person is to visit. We never fetch it; accepting says that they consent."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The person answered."""

    content: Mapping[str, Value]
    """The values by field name; content that does not fit the fields is sent as a refusal."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The person said no, or there is nobody to ask."""


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The person said neither, and wants to leave it."""


Answer: TypeAlias = Accepted | Declined | Dismissed


class Elicitor(Protocol):
    """The host's way of asking a person, cancelled when the deadline passes or the call ends."""

    async def __call__(self, question: Question) -> Answer: ...


def answer_fits(question: Question, content: Mapping[str, Any]) -> bool:
    """Tells whether `content` fits the question's kinds and choices, and has all that is required.

    Bounds and patterns are the server's to check: a pattern of a stranger's can take for ever.
    """
    fields = {field.name: field for field in question.fields}
    return all(name in fields for name in content) and all(
        value_fits(field, content[name]) if name in content else not field.required
        for name, field in fields.items()
    )


def value_fits(field: Field, value: object) -> bool:
    """Tells whether `value` is of the field's kind, and one of its choices."""
    allowed = {choice for choice, _ in field.choices}
    match field.kind:
        case "text":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
            return finite and not isinstance(value, bool)
        case "choice":
            return isinstance(value, str) and value in allowed
        case "choices":
            chosen = cast("list[object]", value) if isinstance(value, list) else [None]
            return all(isinstance(one, str) and one in allowed for one in chosen)
