"""The two APIs of an n8n instance that tell of workflows, and what their refusals mean."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import httpx2

from n8n.core.errors import N8nError
from n8n.core.http import Reply, exchange, retry_after_s, without_userinfo
from n8n.core.json_values import parse_json
from n8n.core.rate_limiter import Budget

MAX_BODY_BYTES = 16 * 1024 * 1024
"""Of one answer. A page of 50 workflows is a few hundred kilobytes as a rule."""
SCOPES = ("workflow:list", "workflow:read", "execution:list", "execution:read")
"""What a key needs; without the last two everything works but the cause of a failure."""
DEFAULT_RETRY_AFTER_S = 5.0
"""For a 429 that does not say how long to wait."""
MIN_RETRY_AFTER_S = 0.05
"""For one that says 0, again and again."""


class Api:
    """Requests to one API with one credential, until one deadline.

    Every request here only reads, so waiting and asking again is safe.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        base_url: str,
        *,
        credential: str,
        deadline: float,
        budget: Budget | None = None,
    ) -> None:
        """`budget`: where the API has a limit of its own, which is kept rather than run into."""
        self._client = client
        self._base_url = base_url
        self._shown = without_userinfo(base_url)
        self._credential = credential
        self._deadline = deadline
        self._budget = budget
        self.requests = 0

    async def ask(
        self,
        method: str,
        path: str,
        *,
        keep_back: int = 0,
        max_bytes: int = MAX_BODY_BYTES,
        **request: Any,
    ) -> Reply:
        """The reply of a 2xx. Raises N8nError, with the mend, for everything else.

        `keep_back`: how many requests of the budget are to be left for others.
        """
        while True:
            if self._budget is not None and (wait := self._budget.take(keep_back=keep_back)):
                await self._wait(wait)
                continue
            reply = await self._once(method, path, request, max_bytes)
            if reply.status != 429:
                break
            wait = retry_after_s(reply)
            wait = DEFAULT_RETRY_AFTER_S if wait is None else max(wait, MIN_RETRY_AFTER_S)
            await self._wait(wait, status=429)
        if not 200 <= reply.status < 300:
            self._refused(reply)
        if reply.truncated:
            raise N8nError("protocol", f"{path} answers more than {max_bytes >> 10} KiB.")
        return reply

    async def _wait(self, wait: float, *, status: int | None = None) -> None:
        if asyncio.get_running_loop().time() + wait >= self._deadline:
            raise N8nError(
                "rate_limited",
                f"n8n takes no more requests for {wait:.0f} s (100 in 5 minutes at its MCP "
                "server): reload later, or set N8N_API_KEY, which needs far fewer.",
                status=status,
                retry_after_s=wait,
            )
        await asyncio.sleep(wait)

    def strange(self, what: str) -> N8nError:
        """The error for a 2xx that n8n would not send."""
        return N8nError(
            "protocol", f"{self._shown} does not answer like n8n ({what}): check N8N_URL."
        )

    async def _once(self, method: str, path: str, request: dict[str, Any], max_bytes: int) -> Reply:
        self.requests += 1
        try:
            async with asyncio.timeout_at(self._deadline):
                return await exchange(
                    self._client,
                    method,
                    f"{self._base_url}{path}",
                    max_bytes=max_bytes,
                    **request,
                )
        except TimeoutError:
            raise N8nError("timeout", f"n8n at {self._shown} did not answer in time.") from None
        except (httpx2.TransportError, httpx2.InvalidURL):
            raise N8nError(
                "unreachable",
                f"n8n cannot be reached at {self._shown}: check N8N_URL and that n8n is running.",
            ) from None

    def _refused(self, reply: Reply) -> NoReturn:
        status, mcp = reply.status, self._credential == "N8N_MCP_TOKEN"
        where = "Settings > Instance-level MCP" if mcp else "Settings > n8n API"
        if status in (403, 404) and mcp:
            # 404 in 2.41, 403 in later versions: `MCP access is disabled`.
            raise N8nError(
                "disabled",
                f"The MCP server of n8n at {self._shown} is switched off: turn it on in {where}, "
                "or set N8N_API_KEY.",
                status=status,
            )
        if status == 403:
            raise N8nError(
                "unauthorized",
                f"{self._credential} may not read workflows: give it {', '.join(SCOPES)} in "
                f"{where}.",
                status=status,
            )
        if status == 401:
            raise N8nError(
                "unauthorized",
                f"n8n refused {self._credential}: make a new one in {where}.",
                status=status,
            )
        if status == 404:
            raise N8nError(
                "disabled",
                f"{self._shown} has no public API: check N8N_URL, or set N8N_MCP_TOKEN instead.",
                status=status,
            )
        if 300 <= status < 400:
            target = reply.headers.get("location", "")[:200]
            raise N8nError(
                "protocol", f"N8N_URL redirects to {target}: set it to that address.", status=status
            )
        raise N8nError(
            "protocol", f"n8n at {self._shown} answered with status {status}.", status=status
        )


def read_json(api: Api, body: bytes) -> Any:
    try:
        return parse_json(body)
    except (ValueError, RecursionError):
        raise api.strange("no JSON") from None
