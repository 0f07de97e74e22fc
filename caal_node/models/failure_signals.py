"""Signals that a strategy does not work for a model, read off one reply or one error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import ModelContextFull, ModelError, ModelLacksTools, ModelReplyError
from caal_node.models.backends.base import ReplyDone
from caal_node.models.strategies.base import Doubt, without_thinking
from caal_node.reply_parser import BrokenCall, Event, TextDelta, ToolCallEnd, UnknownCall

FailureSignal: TypeAlias = (
    Literal[
        "empty",  # Tokens were generated, and neither speech nor a call came of them.
        "broken_call",  # A call cannot be read, often because the token limit cut it off.
        "unknown_tool",  # A call has a name that is in no table.
        "leaked_call",  # A good call came as text where the server has structured calls.
        "refused",  # The server does not take what was asked: tools, or a schema.
        "grammar",  # The server's own grammar for calls did not fit what the model wrote.
        "broke_off",  # A stream had no end, or an error in its middle.
        "context_cut",  # The server dropped a part of the prompt, perhaps the person's own words.
    ]
    | Doubt
)

_REFUSED: Final = frozenset({400, 422})
"""HTTP statuses about what was asked: parameters that a server does not take."""
_GRAMMAR_WORDS: Final = ("does not match the expected", "grammar", "parse tool call", "tool parser")
"""Words of llama.cpp and Ollama, which come with HTTP 500."""


def signal_of_error(error: ModelError) -> FailureSignal | None:
    """Return what `error` shows of the strategy; None if no other strategy would do better.

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


def signal_of_reply(events: Sequence[Event], done: ReplyDone | None) -> FailureSignal | None:
    """Return the worst signal in a finished reply; None if it is speech, or calls that can run."""
    if any(isinstance(event, UnknownCall) for event in events):
        return "unknown_tool"
    if any(isinstance(event, BrokenCall) for event in events):
        return "broken_call"
    if any(isinstance(event, ToolCallEnd) for event in events):
        return None
    spoken = "".join(e.text for e in without_thinking(events) if isinstance(e, TextDelta))
    return None if spoken.strip() or done is None else "empty"
