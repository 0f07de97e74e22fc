"""The second tier: n8n workflows, each called by its webhook."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import n8n
from caal_node.core.errors import ConfigError, ToolUnavailable
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.tools.outcomes import Verbatim
from caal_node.tools.source import CallConversation, Listing
from caal_node.tools.sources.n8n_failures import failure_of

logger = logging.getLogger("caal_node.tools")

SOURCE: Final = "n8n"
SPARE_S: Final = 1.0
"""By which the pipeline's deadline is later than n8n's, whose words for it say more."""
DISCOVERY_S: Final = 13.0
"""For listing; less than what all tiers together get, so that an n8n too slow keeps its tools."""
_ORIGINS: Final[Mapping[str, str]] = {
    "schema": "the notes' schema block",
    "param": "an @param line of the notes",
    "prose": "the parameters that the notes list",
    "path": "the webhook's path",
    "nodes": "an expression in the published nodes",
    "pinned": "the webhook's pinned data",
    "trigger": "the inputs of the sibling Execute Workflow Trigger",
}


class N8nToolSource:
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
        """`auth`: what `n8n.read_credentials` reads.

        Raises:
            ConfigError: the address or a credential is malformed.
        """
        self.poll_s: Final = poll_s
        self._specs: tuple[ToolSpec, ...] = ()
        self._open = AsyncExitStack()
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

    async def discover(self) -> Listing:
        """Where n8n cannot be asked, the workflows that it had stay: their webhooks may well
        answer, and a call says what is wrong better than a tool that is gone."""
        try:
            found = await (await self._opened()).discover()
        except n8n.N8nError as error:
            return Listing(self._specs, {SOURCE: str(error)})
        for notice in found.notices:
            logger.warning("n8n: %s", notice)
        self._specs = tuple(self._spec(tool) for tool in found.tools)
        return Listing(self._specs)

    async def call(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        on_progress: Callable[[n8n.Progress], None] | None = None,
    ) -> Any:
        if not self._is_open:
            raise ToolUnavailable("n8n has not been asked for its workflows yet.")
        try:
            result = await self.workflows.call(
                spec.name, dict(arguments), on_progress=on_progress or _teller(spec)
            )
        except n8n.N8nError as error:
            if error.mend:
                logger.warning("%s: %s; %s", spec.name, error.kind, error.mend)
            raise failure_of(error) from error
        return Verbatim(result.value, result.spoken) if result.spoken else result.value

    async def call_for(
        self, spec: ToolSpec, arguments: Mapping[str, Any], caller: CallConversation
    ) -> Any:
        return await self.call(spec, arguments, _teller(spec, caller))

    async def aclose(self) -> None:
        self._is_open = False
        await self._open.aclose()

    async def _opened(self) -> n8n.N8nTools:
        if not self._is_open:
            await self._open.enter_async_context(self.workflows)
            self._is_open = True
        return self.workflows

    def _spec(self, tool: n8n.WorkflowTool) -> ToolSpec:
        return ToolSpec(
            tier="n8n",
            source=SOURCE,
            name=tool.name,
            wanted=tool.name,
            description=tool.description,
            parameters=tool.input_schema,
            examples=tuple(Example(e.utterance, e.arguments) for e in tool.examples),
            details=tool.full_description if tool.full_description != tool.description else "",
            origins={name: _ORIGINS[origin] for name, origin in tool.origins.items()},
            facts=_facts(tool),
            timeout_s=self.workflows.deadline_s(tool) + SPARE_S,
        )


def _teller(
    spec: ToolSpec, caller: CallConversation | None = None
) -> Callable[[n8n.Progress], None]:
    """Tells `caller` what a run says that it does, each step once, counted. That it merely still
    runs goes to the log: people hear ticks for that."""
    done = 0.0
    last: str | None = None

    def told(progress: n8n.Progress) -> None:
        nonlocal done, last
        if caller is None or not progress.step or progress.step == last:
            logger.info("%s still runs after %.0f s", spec.name, progress.elapsed_s)
        else:
            done, last = done + 1, progress.step
            caller.progressed(done, None, progress.step)

    return told


def _facts(tool: n8n.WorkflowTool) -> tuple[str, ...]:
    auth = "" if tool.auth_kind == "none" else f", {tool.auth_kind} auth"
    facts = [
        f"workflow {tool.title!r}: {tool.method} /webhook/{tool.path}{auth}, "
        f"answers by {tool.response_mode}"
    ]
    if tool.spoken_field:
        facts.append(f"its field {tool.spoken_field!r} is spoken as it stands")
    if tool.takes_s:
        facts.append(f"takes up to {tool.takes_s:g} s")
    if tool.input_schema.get("additionalProperties") is True:
        facts.append("its notes list no parameters and its nodes read none: it takes anything")
    return (*facts, *tool.problems)
