"""Signs that a way of asking does not work for a model, read off one reply or one error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import ModelContextFull, ModelError, ModelLacksTools, ModelReplyError
from caal_node.models.backends.base import ReplyDone
from caal_node.models.strategies.base import Doubt
from caal_node.models.strategies.speech_filter import without_thinking
from caal_node.reply_parser import BrokenCall, Event, TextDelta, ToolCallEnd, UnknownCall

FailureSignal: TypeAlias = (
    Literal[
        "empty",  # tokens were generated, and neither speech nor a call came of them
        "broken_call",  # a call that cannot be read, often one that the token limit cut off
        "unknown_tool",  # a call of a name that is in no table
        "leaked_call",  # a good call, but written as text where the server has structured calls
        "refused",  # the server will not take what was asked: tools, or a schema
        "grammar",  # the server's own grammar for calls did not fit what the model wrote
        "broke_off",  # a stream without its end, or with an error in its middle
        "context_cut",  # the server dropped a part of the prompt, perhaps the person's own words
    ]
    | Doubt
)

_REFUSED: Final = frozenset({400, 422})
"""Statuses about what was asked: parameters that a server does not take."""
_GRAMMAR_WORDS: Final = ("does not match the expected", "grammar", "parse tool call", "tool parser")
"""Of llama.cpp and Ollama, with HTTP 500."""


def sign_of(error: ModelError) -> FailureSignal | None:
    """What `error` shows of the way; None where no other way would do better.

    A wrong key, a missing model and a prompt too long stay what they are, however one asks.
    """
    if isinstance(error, ModelLacksTools):
        return "refused"
    if isinstance(error, ModelContextFull) or not isinstance(error, ModelReplyError):
        return None
    if error.status is None:
        return "broke_off"
    if error.status == 500:
        return "grammar" if any(w in str(error).lower() for w in _GRAMMAR_WORDS) else "broke_off"
    return "refused" if error.status in _REFUSED else None


def is_about_the_way(error: ModelError) -> bool:
    """Whether another way of asking may do better."""
    return sign_of(error) is not None


def read_signs(events: Sequence[Event], done: ReplyDone | None) -> FailureSignal | None:
    """The worst sign in a finished reply; None where it is speech or calls that can be run."""
    if any(isinstance(event, UnknownCall) for event in events):
        return "unknown_tool"
    if any(isinstance(event, BrokenCall) for event in events):
        return "broken_call"
    if any(isinstance(event, ToolCallEnd) for event in events):
        return None
    spoken = "".join(e.text for e in without_thinking(events) if isinstance(e, TextDelta))
    return None if spoken.strip() or done is None else "empty"
