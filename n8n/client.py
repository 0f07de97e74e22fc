"""N8nTools: an n8n instance as a set of tools."""

from __future__ import annotations

import asyncio
import difflib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Self

import httpx2

from mcp_bridge.core.computing import computed
from n8n.calls.call import (
    LOOKUP_S,
    TRIES,
    AnsweredCall,
    WebhookAuth,
    auth_headers,
    call_webhook,
    cause_of,
    secrets_of,
    slowest_runs,
)
from n8n.calls.results import (
    PROGRESS_S,
    SEE_EXECUTION,
    CallResult,
    Progress,
    report_progress,
    run_failed,
)
from n8n.core.errors import N8nError
from n8n.core.http import ApiClient, RateLimiter, instance_url, open_client, without_userinfo
from n8n.core.workflow_tool import Discovery, WorkflowTool
from n8n.discovery.discover import DiscoveryCache, discover_mcp, discover_rest
from n8n.workflow_lint import Finding, check

CALL_TIMEOUT_S = 20.0
"""As long as a person waits for an answer before asking whether anybody is there."""
GRACE_S = 5.0
"""How much longer a call may take than its author says that a run takes."""
SENT_KEPT = 16
"""Tokens signed for one call each that are still known for secrets: more than calls run at once."""
DISCOVERY_TIMEOUT_S = 30.0
"""Details of 90 workflows by MCP take about 5 s; the rest is for an instance that just woke up."""
READING_S = 1.0
"""How much longer it may take to read what n8n has answered in time."""


class N8nTools:
    """Discovers the workflows of one instance and calls them.

    async with N8nTools("http://127.0.0.1:5678", mcp_token=token) as n:
        await n.discover()
        result = await n.call("get_weather", {"city": "Paris"})

    Discovery goes by the public REST API if there is an `api_key` (one request for 50 workflows),
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
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        """`base_url` may leave out the scheme, as N8N_URL may: `localhost:5678`, `localhost`.

        `webhook_base_url` is n8n's WEBHOOK_URL where that differs.
        `rate_limiter` counts the requests to its MCP server. Raises N8nError(config).
        """
        self.base_url = _usable(base_url)
        self._webhook_base_url = _usable(webhook_base_url or base_url)
        # They go to the instance alone, never to a webhook. An empty setting is none.
        self._api_key = api_key or None
        self._mcp_token = mcp_token or None
        self._rate_limiter = rate_limiter or RateLimiter()
        self._call_timeout_s = call_timeout_s
        self._discovery_timeout_s = discovery_timeout_s
        self._webhook_auth = dict(webhook_auth or {})
        self._sent: deque[str] = deque(maxlen=SENT_KEPT)
        self._cache = DiscoveryCache()
        self._tools: dict[str, WorkflowTool] = {}
        self._discovering = asyncio.Lock()
        # Apart from the clients that carry the key and the token, so that these cannot slip in.
        self._webhook_client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections to the webhooks."""
        if self._webhook_client is not None:
            await self._webhook_client.aclose()
            self._webhook_client = None

    @property
    def tools(self) -> tuple[WorkflowTool, ...]:
        """The tools of the last discovery, in the order of their names."""
        return tuple(self._tools.values())

    @property
    def secrets(self) -> tuple[str, ...]:
        """What n8n and its webhooks are asked with; a reply that repeats it is to be redacted."""
        keys = (self._api_key or "", self._mcp_token or "")
        own = (each for auth in self._webhook_auth.values() for each in secrets_of(auth))
        return tuple(filter(None, (*keys, *own, *self._sent)))

    def _headers_for(self, tool: WorkflowTool) -> dict[str, str]:
        headers = auth_headers(tool, self._webhook_auth)
        for value in headers.values():
            token = value.rpartition(" ")[2]
            if token not in self._sent:
                self._sent.append(token)
        return headers

    async def discover(self) -> Discovery:
        """Look at the instance. When that fails (N8nError), the tools of the last time stay."""
        async with self._discovering:
            deadline = _after(self._discovery_timeout_s)
            try:
                async with asyncio.timeout_at(deadline + READING_S):
                    found = await self._look(deadline)
            except TimeoutError:
                # It answered in time, and what it answered could not be read in time.
                shown = without_userinfo(self.base_url)
                raise N8nError("timeout", f"The workflows of {shown} take too long.") from None
            if self._webhook_client is None:
                self._webhook_client = await open_client(self._webhook_base_url)
            self._tools = {tool.name: tool for tool in found.tools}
            return found

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        timeout_s: float | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> CallResult:
        """Call a tool of the last discovery. Raises N8nError.

        Without `timeout_s` the deadline is this object's, or what the author's `Takes:` asks for
        if that is more. `on_progress` is told every PROGRESS_S seconds that n8n still works,
        and at once of the steps that a streamed answer tells, four a second at most.
        `headers` are sent as well, such as the trace that the call belongs to; the webhook's
        own win. Cancelling closes the connection; n8n runs the workflow to its end all the same.
        """
        tool = self._tools.get(name)
        if tool is None or self._webhook_client is None:
            near = difflib.get_close_matches(name, self._tools, n=3, cutoff=0.5)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise N8nError("unknown_tool", f"There is no workflow named {name[:64]!r}.{hint}")
        answered: list[AnsweredCall] = []
        deadline_s = self.deadline_s(tool) if timeout_s is None else timeout_s
        try:
            with report_progress(PROGRESS_S, deadline_s, on_progress) as on_step:
                result = await call_webhook(
                    self._webhook_client,
                    self._webhook_base_url,
                    tool,
                    arguments,
                    headers={**(headers or {}), **self._headers_for(tool)},
                    timeout_s=deadline_s,
                    on_answer=answered.append,
                    on_step=on_step,
                )
        except N8nError as error:
            if error.fix != SEE_EXECUTION or not answered:
                raise
            raise await self._explained(tool, error, answered[0]) or error from None
        if result.kind == "empty" and not tool.answers_nothing:
            # n8n 1.100 to 2.6 answers 200 with nothing for a run that failed.
            failed = run_failed(tool, status=200)
            if explained := await self._explained(tool, failed, answered[0], tries=1):
                raise explained
        return result

    async def lint(self) -> tuple[Finding, ...]:
        """Say what could be better about the workflows of the last discovery.

        With an API key their latest runs are looked at as well.
        """
        slowest_s: Mapping[str, float] = {}
        if self._api_key is not None:
            async with self._public_api(self._api_key, _after(LOOKUP_S)) as api:
                slowest_s = await slowest_runs(api)
        found = await computed(check, self._cache.workflows, self._cache.names, slowest_s)
        return found.findings

    def deadline_s(self, tool: WorkflowTool) -> float:
        """Return how long a call of this tool may take."""
        asked_s = 0.0 if tool.takes_s is None else tool.takes_s + GRACE_S
        return max(self._call_timeout_s, asked_s)

    async def _look(self, deadline: float) -> Discovery:
        """Look by the public API if there is a key, else by MCP. Raises N8nError."""
        refusal: N8nError | None = None
        if self._api_key is not None:
            try:
                async with self._public_api(self._api_key, deadline) as api:
                    return await discover_rest(api, self._cache)
            except N8nError as e:
                if e.kind not in ("unauthorized", "disabled") or self._mcp_token is None:
                    raise
                refusal = e
        if self._mcp_token is None:
            raise N8nError(
                "config",
                f"n8n at {without_userinfo(self.base_url)} needs N8N_API_KEY "
                "(Settings > n8n API) or N8N_MCP_TOKEN (Settings > Instance-level MCP).",
            )
        bearer, limiter = {"authorization": f"Bearer {self._mcp_token}"}, self._rate_limiter
        async with await open_client(self.base_url, bearer) as client:
            api = ApiClient(client, self.base_url, "N8N_MCP_TOKEN", deadline, limiter)
            found = await discover_mcp(api, self._cache)
        if refusal is None:
            return found
        notices = (f"{refusal} Found by MCP instead.", *found.notices)
        return replace(found, requests=found.requests + 1, notices=notices)

    @asynccontextmanager
    async def _public_api(self, api_key: str, deadline: float) -> AsyncGenerator[ApiClient]:
        async with await open_client(self.base_url, {"x-n8n-api-key": api_key}) as client:
            yield ApiClient(client, self.base_url, "N8N_API_KEY", deadline)

    async def _explained(
        self, tool: WorkflowTool, error: N8nError, answered: AnsweredCall, *, tries: int = TRIES
    ) -> N8nError | None:
        """Return the error with its real cause, if there is a key to ask for it."""
        if self._api_key is None:
            return None
        async with self._public_api(self._api_key, _after(LOOKUP_S)) as api:
            cause = await cause_of(api, tool, answered, tries=tries)
        if cause is None:
            return None
        return N8nError(
            "workflow_failed",
            f"{tool.name} failed while it was running: {cause.message}",
            status=error.status,
            fix=f"fix its node {cause.node}: {SEE_EXECUTION}" if cause.node else SEE_EXECUTION,
            spoken=error.spoken,
        )


def _after(seconds: float) -> float:
    """Return the event loop's time after so many seconds."""
    return asyncio.get_running_loop().time() + seconds


def _usable(address: str) -> str:
    """Return the URL of an instance. Raises N8nError(config)."""
    try:
        return instance_url(address)
    except ValueError as error:
        shown = without_userinfo(address.strip())[:100]
        raise N8nError("config", f"N8N_URL {shown!r}: {error}.") from None
