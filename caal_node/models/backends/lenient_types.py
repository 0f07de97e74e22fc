"""Shapes in which servers send the same thing: none of them may cost a reply."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, cast

from pydantic import BeforeValidator, ValidationError, ValidatorFunctionWrapHandler, WrapValidator


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


OR_NONE: Final = WrapValidator(_or_none)
"""For what the reply can do without: unreadable, it is as if it had not been sent."""
Count: TypeAlias = Annotated[int | None, OR_NONE]
"""A figure of a server's. Some write null until they know it."""
NULL_IS_EMPTY_LIST: Final = BeforeValidator(lambda value: [] if value is None else value)
NULL_IS_EMPTY_OBJECT: Final = BeforeValidator(lambda value: {} if value is None else value)


def _joined(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    parts = cast("list[Any]", value)
    return "".join(map(_text_of, parts))


def _text_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    members = cast("dict[str, Any]", part)
    text = members.get("text")
    return text if isinstance(text, str) and members.get("type", "text") == "text" else ""


JoinedText: TypeAlias = Annotated[str | None, BeforeValidator(_joined)]
"""Text, or a list of parts whose text it is; Mistral's API has thinking among them."""
Arguments: TypeAlias = str | dict[str, Any] | list[Any] | None
"""Of a call: JSON as text, or its value. Whether it can be called with is decided later."""
