"""The second tier: n8n workflows, each called by its webhook."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import MappingProxyType
from typing import Any, Final

import n8n
from caal_node.core.errors import (
    ConfigError,
    InvalidArguments,
    ToolBroke,
    ToolFailure,
    ToolRefused,
    ToolTimeout,
    ToolUnavailable,
)
from caal_node.core.tool_spec import ToolSpec
from caal_node.telemetry.spans import trace_headers
from caal_node.tools.source import (
    Arguments,
    CallConversation,
    ToolListing,
    ToolSource,
    VerbatimResult,
)
from caal_node.tools.workflow_spec import SOURCE, spec_of
from mcp_bridge.core.computing import computed

logger = logging.getLogger("caal_node.tools")

SPARE_S: Final = 1.0
"""Seconds by which the pipeline's deadline is later than n8n's, whose message says more."""
DISCOVERY_S: Final = 13.0
"""Seconds for listing: less than all tiers together get, so that a slow n8n keeps its tools."""


class N8nToolSource(ToolSource):
    """One n8n instance. Opened at the first discovery, since a session must not wait for it."""

    def __init__(
        self,
        base_url: str,
        *,
        mcp_token: str | None,
        api_key: str | None,
        call_timeout_s: float,
        auth: Mapping[str, Mapping[str, str]] | None = None,
        poll_s: float = 0,
    ) -> None:
        """`auth` is what `n8n.read_credentials` reads.

        Raises:
            ConfigError: the address or a credential is malformed.
        """
        self._poll_s = poll_s
        self._specs: tuple[ToolSpec, ...] = ()
        self._exit_stack = AsyncExitStack()
        self._is_open = False
        try:
            self.workflows: Final = n8n.N8nTools(
                base_url,
                mcp_token=mcp_token,
                api_key=api_key,
                call_timeout_s=call_timeout_s,
                discovery_timeout_s=DISCOVERY_S,
                webhook_auth=n8n.read_credentials(auth or {}, os.environ),
            )
        except n8n.N8nError as error:
            raise ConfigError(str(error)) from error

    @property
    def poll_s(self) -> float:
        return self._poll_s

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.workflows.secrets

    async def discover(self) -> ToolListing:
        """List the workflows.

        Where n8n cannot be asked, the workflows that it had stay: their webhooks may well answer,
        and a call says what is wrong better than a tool that is gone.
        """
        try:
            if not self._is_open:
                await self._exit_stack.enter_async_context(self.workflows)
                self._is_open = True
            found = await self.workflows.discover()
        except n8n.N8nError as error:
            return ToolListing(self._specs, {SOURCE: str(error)})
        for notice in found.notices:
            logger.warning("n8n: %s", notice)
        self._specs = await computed(self._specs_of, found.tools)
        return ToolListing(self._specs)

    def _specs_of(self, tools: Sequence[n8n.WorkflowTool]) -> tuple[ToolSpec, ...]:
        """Describe the tools; the same objects where they are those of the last time."""
        made = tuple(spec_of(tool, self.workflows.deadline_s(tool) + SPARE_S) for tool in tools)
        return self._specs if made == self._specs else made

    async def call(
        self,
        spec: ToolSpec,
        arguments: Arguments,
        conversation: CallConversation | None = None,
        on_progress: Callable[[n8n.Progress], None] | None = None,
    ) -> Any:
        """See `ToolSource.call`; `on_progress` is given n8n's own reports in its place."""
        if not self._is_open:
            raise ToolUnavailable("n8n has not been asked for its workflows yet.")
        on_progress = on_progress or _progress_reporter(spec, conversation)
        try:
            result = await self.workflows.call(
                spec.name, dict(arguments), on_progress=on_progress, headers=trace_headers()
            )
        except n8n.N8nError as error:
            if error.fix:
                logger.warning("%s: %s; %s", spec.name, error.kind, error.fix)
            raise failure_of(error) from error
        return VerbatimResult(result.value, result.spoken) if result.spoken else result.value

    async def aclose(self) -> None:
        self._is_open = False
        await self._exit_stack.aclose()


def _progress_reporter(
    spec: ToolSpec, conversation: CallConversation | None
) -> Callable[[n8n.Progress], None]:
    """Return a callback that reports each step of a run once, counted.

    That a run merely goes on is logged alone: people hear ticks for that.
    """
    steps_done = 0.0
    last_step: str | None = None

    def report(progress: n8n.Progress) -> None:
        nonlocal steps_done, last_step
        if conversation is None or not progress.step or progress.step == last_step:
            logger.info("%s still runs after %.0f s", spec.name, progress.elapsed_s)
        else:
            steps_done, last_step = steps_done + 1, progress.step
            conversation.report_progress(steps_done, None, progress.step)

    return report


def _spoken_as(key: str, base: type[ToolFailure]) -> type[ToolFailure]:
    """Return a subclass of `base` that a person is told of by another sentence."""
    return type(base.__name__, (base,), {"spoken": key})


FAILURES: Final[Mapping[n8n.Failure, type[ToolFailure]]] = MappingProxyType(
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
"""The error for each kind of n8n's failures, with the sentence of prompts/sentences.toml for it."""


def failure_of(error: n8n.N8nError) -> ToolFailure:
    """Return the error of one failed call, with the words that the author wrote for a person."""
    failure = FAILURES.get(error.kind, FAILURES["workflow_failed"])(str(error))
    failure.words = error.spoken
    return failure
