"""What n8n's kinds of failure are in this project's tree, and the sentence that each is told by."""

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


class WorkflowSlow(ToolTimeout):
    spoken = "workflow_slow"


class WorkflowStopped(ToolTimeout):
    spoken = "workflow_stopped"


class WorkflowsUnreachable(ToolUnavailable):
    spoken = "workflow_unreachable"


class WorkflowOff(ToolUnavailable):
    spoken = "workflow_off"


class WorkflowChanged(ToolUnavailable):
    spoken = "workflow_changed"


class WorkflowBusy(ToolUnavailable):
    spoken = "workflow_busy"


class WorkflowLocked(ToolRefused):
    spoken = "workflow_locked"


class WorkflowRefused(ToolBroke):
    spoken = "workflow_refused"


class WorkflowFailed(ToolBroke):
    spoken = "workflow_failed"


KINDS: Final[Mapping[n8n.Failure, type[ToolFailure]]] = MappingProxyType(
    {
        "timeout": WorkflowSlow,
        "workflow_timeout": WorkflowStopped,
        "unreachable": WorkflowsUnreachable,
        "not_registered": WorkflowOff,
        "unknown_tool": WorkflowOff,
        "wrong_method": WorkflowChanged,
        "redirected": WorkflowChanged,
        "rate_limited": WorkflowBusy,
        "auth": WorkflowLocked,
        "rejected": WorkflowRefused,
        "workflow_failed": WorkflowFailed,
        "invalid_arguments": InvalidArguments,
    }
)


def failure_of(error: n8n.N8nError) -> ToolFailure:
    """The failure of one call. What the author wrote for a person goes with it."""
    failure = KINDS.get(error.kind, WorkflowFailed)(str(error))
    failure.words = error.spoken
    return failure
