"""Pydantic types for what several servers send in several shapes. None of them may cost a reply."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from caal_node.models.backends.base import GeneratedToken


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


OR_NONE: Final = WrapValidator(_or_none)
"""For what the reply can do without. If it cannot be read, it is as if it had not been sent."""
Count: TypeAlias = Annotated[int | None, OR_NONE]
"""A figure of a server's. Some servers write null until they know it."""
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
"""A text, or a list of parts that hold it. In Mistral's API thinking is among the parts."""
Arguments: TypeAlias = str | dict[str, Any] | list[Any] | None
"""A call's arguments: JSON as text, or its value. Whether a tool takes them is decided later."""


class TokenCandidate(BaseModel):
    token: str
    logprob: float


class TokenOdds(TokenCandidate):
    """A token with its candidates, as Ollama and OpenAI's API both write them."""

    top_logprobs: list[TokenCandidate] | None = None

    def generated(self) -> GeneratedToken:
        return GeneratedToken(
            self.token, tuple((c.token, c.logprob) for c in self.top_logprobs or ())
        )
