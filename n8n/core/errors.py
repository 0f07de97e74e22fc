"""The one error of this package."""

from __future__ import annotations

from typing import Literal, TypeAlias

DiscoveryFailure: TypeAlias = Literal[
    "config",  # a URL, a token or a credential is missing or malformed
    "unreachable",  # no connection
    "unauthorized",  # the token or key was refused
    "disabled",  # the MCP server of the instance, or its public API, is switched off
    "rate_limited",  # 429, and waiting would pass the deadline
    "timeout",  # the deadline passed
    "protocol",  # an answer that is not n8n's
]
CallFailure: TypeAlias = Literal[
    "unknown_tool",  # no such name in the last discovery
    "invalid_arguments",  # the request cannot be built, or n8n could not read it
    "unreachable",
    "timeout",  # no answer in time; the workflow may still be running
    "not_registered",  # the workflow is not active any more, or its path has changed
    "wrong_method",  # the webhook listens for another method now
    "auth",  # the webhook wants other credentials
    "rejected",  # a 4xx of the workflow's own
    "rate_limited",
    "workflow_failed",  # the run ended with an error
    "workflow_timeout",  # n8n stopped the run at the workflow's own time limit
    "redirected",
]
Failure: TypeAlias = DiscoveryFailure | CallFailure


class N8nError(Exception):
    """A discovery or a call failed.

    `str()` is one line without secrets and without a stack trace. After a call it is written for
    the model, which can act on it. After a discovery it is written for the person who set n8n up,
    and says how to fix the fault. `fix` of a failed call is for that person too, never for the
    model.
    """

    def __init__(
        self,
        kind: Failure,
        message: str,
        *,
        status: int | None = None,
        fix: str | None = None,
        retry_after_s: float | None = None,
        spoken: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: Failure = kind
        self.message = message
        self.status = status
        """The HTTP status that caused it, if there was one."""
        self.fix = fix
        self.retry_after_s = retry_after_s
        """How many seconds n8n asked to wait (`rate_limited` only)."""
        self.spoken = spoken
        """The author's own words for a person: the text of the `Speak:` field of a refusal."""
