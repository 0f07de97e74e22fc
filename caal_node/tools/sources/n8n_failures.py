"""The error and the spoken sentence (prompts/sentences.toml) for each kind of failure of n8n's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import n8n
from caal_node.core.errors import (
    InvalidArguments,
    ToolBroke,
    ToolFailure,
    ToolRefused,
    ToolTimeout,
    ToolUnavailable,
)


def _spoken_as(key: str, base: type[ToolFailure]) -> type[ToolFailure]:
    """Return a subclass of `base` that a person is told of by another sentence."""
    return type(base.__name__, (base,), {"spoken": key})


KINDS: Final[Mapping[n8n.Failure, type[ToolFailure]]] = MappingProxyType(
    {
        "timeout": _spoken_as("workflow_slow", ToolTimeout),
        "workflow_timeout": _spoken_as("workflow_stopped", ToolTimeout),
        "unreachable": _spoken_as("workflow_unreachable", ToolUnavailable),
        "not_registered": _spoken_as("workflow_off", ToolUnavailable),
        "unknown_tool": _spoken_as("workflow_off", ToolUnavailable),
        "wrong_method": _spoken_as("workflow_changed", ToolUnavailable),
        "redirected": _spoken_as("workflow_changed", ToolUnavailable),
        "rate_limited": _spoken_as("workflow_busy", ToolUnavailable),
        "auth": _spoken_as("workflow_locked", ToolRefused),
        "rejected": _spoken_as("workflow_refused", ToolBroke),
        "workflow_failed": _spoken_as("workflow_failed", ToolBroke),
        "invalid_arguments": InvalidArguments,
    }
)


def failure_of(error: n8n.N8nError) -> ToolFailure:
    """Return the error of one failed call, with the words that the author wrote for a person."""
    failure = KINDS.get(error.kind, KINDS["workflow_failed"])(str(error))
    failure.words = error.spoken
    return failure
