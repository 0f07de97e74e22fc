"""N8nTools: an n8n instance as a set of tools."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping
from typing import Any, Self

import httpx2

from n8n.calls.auth import WebhookAuth, auth_headers
from n8n.calls.call import call_webhook
from n8n.calls.executions import LOOK_S, TRIES, Sent, cause_of, slowest_runs
from n8n.calls.failures import LOOK_AT_RUN
from n8n.calls.progress import PROGRESS_S, Progress, told_every
from n8n.calls.results import CallResult
from n8n.checks.finding import Finding
from n8n.checks.lint import lint
from n8n.core.errors import N8nError
from n8n.core.http import open_client
from n8n.core.rate_limiter import Budget
from n8n.core.workflow_tool import Discovery, WorkflowTool
from n8n.discovery.access import Access, base_of
from n8n.discovery.cache import Known

CALL_TIMEOUT_S = 20.0
"""As long as a person waits for an answer before asking whether anybody is there."""
GRACE_S = 5.0
"""Beyond the time that an author says a run takes."""
DISCOVERY_TIMEOUT_S = 30.0
"""Details of 90 workflows by MCP take about 5 s; the rest is for an instance that just woke up."""


class N8nTools:
    """Discovers the workflows of one instance and calls them.

    async with N8nTools("http://127.0.0.1:5678", mcp_token=token) as n:
        await n.discover()
        result = await n.call("get_weather", {"city": "Paris"})

    Discovery goes by the public REST API when there is an `api_key` (one request for 50 workflows),
    by the instance's MCP server otherwise (one request a workflow). Calls go to the webhooks, with
    the credentials of `webhook_auth` (by path, tool name or workflow id) and no others.
    """

    def __init__(
        self,
        base_url: str,
        mcp_token: str | None = None,
        api_key: str | None = None,
        call_timeout_s: float = CALL_TIMEOUT_S,
        webhook_auth: Mapping[str, WebhookAuth] | None = None,
        *,
        webhook_base_url: str | None = None,
        discovery_timeout_s: float = DISCOVERY_TIMEOUT_S,
        budget: Budget | None = None,
    ) -> None:
        """`webhook_base_url` is n8n's WEBHOOK_URL where that differs; `budget`, how often its MCP
        server may be asked. Raises N8nError(config)."""
        self.base_url = base_of(base_url)
        self._webhooks_at = base_of(webhook_base_url or base_url)
        # An empty setting is none.
        self._access = Access(self.base_url, api_key or None, mcp_token or None, budget or Budget())
        self._call_timeout_s = call_timeout_s
        self._discovery_timeout_s = discovery_timeout_s
        self._webhook_auth = dict(webhook_auth or {})
        self._known = Known()
        self._table: dict[str, WorkflowTool] = {}
        self._discovering = asyncio.Lock()
        # Apart from the clients that carry the key and the token, so that these cannot slip in.
        self._webhooks: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._webhooks is not None:
            await self._webhooks.aclose()
            self._webhooks = None

    @property
    def tools(self) -> tuple[WorkflowTool, ...]:
        """Those of the last discovery, in the order of their names."""
        return tuple(self._table.values())

    async def discover(self) -> Discovery:
        """Look at the instance. When that fails (N8nError) the tools of the last time stay."""
        async with self._discovering:
            found = await self._access.discover(self._known, _in(self._discovery_timeout_s))
            if self._webhooks is None:
                self._webhooks = await open_client(self._webhooks_at)
            self._table = {tool.name: tool for tool in found.tools}
            return found

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        timeout_s: float | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> CallResult:
        """Call a tool of the last discovery. Raises N8nError.

        Without `timeout_s` the deadline is this object's, or what the author's `Takes:` asks for
        where that is more. `on_progress` is told every PROGRESS_S seconds that n8n still works,
        and at once of the steps that a streamed answer tells, four a second at most.
        Cancelling closes the connection; n8n runs the workflow to its end all the same.
        """
        tool = self._table.get(name)
        if tool is None or self._webhooks is None:
            near = difflib.get_close_matches(name, self._table, n=3, cutoff=0.5)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise N8nError("unknown_tool", f"There is no workflow named {name[:64]!r}.{hint}")
        sent: list[Sent] = []
        deadline_s = self.deadline_s(tool) if timeout_s is None else timeout_s
        try:
            with told_every(PROGRESS_S, deadline_s, on_progress) as on_step:
                result = await call_webhook(
                    self._webhooks,
                    self._webhooks_at,
                    tool,
                    arguments,
                    headers=auth_headers(tool, self._webhook_auth),
                    timeout_s=deadline_s,
                    on_sent=sent.append,
                    on_step=on_step,
                )
        except N8nError as error:
            if error.mend == LOOK_AT_RUN and sent:
                raise await self._explained(tool, error, sent[0]) from None
            raise
        if result.kind == "empty" and not tool.answers_nothing and sent:
            # n8n 1.100 to 2.6 answers 200 with nothing for a run that failed.
            failed = N8nError("workflow_failed", f"{name} failed while it was running.", status=200)
            if (error := await self._explained(tool, failed, sent[0], tries=1)) is not failed:
                raise error
        return result

    async def lint(self) -> tuple[Finding, ...]:
        """What could be better about the workflows of the last discovery; with an API key their
        latest runs are looked at as well. Those without a finding are not in it."""
        took: Mapping[str, float] = {}
        if self._access.api_key is not None:
            async with self._access.public_api(_in(LOOK_S)) as api:
                took = await slowest_runs(api)
        workflows = self._known.workflows
        return await asyncio.to_thread(
            lambda: tuple(f for w in workflows for f in lint(w, took.get(str(w.get("id")))))
        )

    def deadline_s(self, tool: WorkflowTool) -> float:
        """How long a call of this tool may take."""
        asked = 0.0 if tool.takes_s is None else tool.takes_s + GRACE_S
        return max(self._call_timeout_s, asked)

    async def _explained(
        self, tool: WorkflowTool, error: N8nError, sent: Sent, *, tries: int = TRIES
    ) -> N8nError:
        """The error with its real cause, where there is a key to ask for it; else the same."""
        if self._access.api_key is None:
            return error
        async with self._access.public_api(_in(LOOK_S)) as api:
            cause = await cause_of(api, tool, sent, tries=tries)
        if cause is None:
            return error
        return N8nError(
            "workflow_failed",
            f"{tool.name} failed while it was running: {cause.message}",
            status=error.status,
            mend=f"mend its node {cause.node}: {LOOK_AT_RUN}" if cause.node else LOOK_AT_RUN,
            spoken=error.spoken,
        )


def _in(seconds: float) -> float:
    """So long from now, by the event loop's clock."""
    return asyncio.get_running_loop().time() + seconds
