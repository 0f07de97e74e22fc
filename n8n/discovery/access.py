"""The two ways into an instance: its public API with a key, its MCP server with a token."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from n8n.core.api_client import ApiClient
from n8n.core.errors import N8nError
from n8n.core.http import open_client, without_userinfo
from n8n.core.rate_limiter import RateLimiter
from n8n.core.workflow_tool import Discovery
from n8n.discovery.cache import DiscoveryCache
from n8n.discovery.discover import discover_mcp, discover_rest
from n8n.discovery.mcp_server import MCP_PATH


@dataclass(frozen=True, slots=True)
class InstanceAccess:
    """An instance and the credentials for it, which never go to a webhook."""

    base_url: str
    api_key: str | None = field(repr=False)
    mcp_token: str | None = field(repr=False)
    rate_limiter: RateLimiter

    async def discover(self, cache: DiscoveryCache, deadline: float) -> Discovery:
        """Discover by the public API if there is a key, else by MCP. Raises N8nError."""
        if self.api_key is None:
            return await self._discover_mcp(cache, deadline)
        try:
            async with self.public_api(deadline) as api:
                return await discover_rest(api, cache)
        except N8nError as e:
            if e.kind not in ("unauthorized", "disabled") or self.mcp_token is None:
                raise
            found = await self._discover_mcp(cache, deadline)
            notices = (f"{e} Found by MCP instead.", *found.notices)
            return replace(found, requests=found.requests + 1, notices=notices)

    @asynccontextmanager
    async def public_api(self, deadline: float) -> AsyncGenerator[ApiClient]:
        """Open the public API, for which there must be an `api_key`.

        `deadline` is the event loop's time.
        """
        key = {"x-n8n-api-key": self.api_key or ""}
        async with await open_client(self.base_url, key) as client:
            yield ApiClient(client, self.base_url, credential="N8N_API_KEY", deadline=deadline)

    async def _discover_mcp(self, cache: DiscoveryCache, deadline: float) -> Discovery:
        if self.mcp_token is None:
            raise N8nError(
                "config",
                f"n8n at {without_userinfo(self.base_url)} needs N8N_API_KEY "
                "(Settings > n8n API) or N8N_MCP_TOKEN (Settings > Instance-level MCP).",
            )
        bearer = {"authorization": f"Bearer {self.mcp_token}"}
        async with await open_client(self.base_url, bearer) as client:
            api = ApiClient(
                client,
                self.base_url,
                credential="N8N_MCP_TOKEN",
                deadline=deadline,
                rate_limiter=self.rate_limiter,
            )
            return await discover_mcp(api, cache)


def instance_url(url: str) -> str:
    """Return the address of an instance. Raises N8nError(config)."""
    # People paste the address that n8n shows for its MCP server.
    url = url.strip().rstrip("/").removesuffix(MCP_PATH)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise N8nError("config", f"N8N_URL {without_userinfo(url)[:100]!r} is no http(s) address.")
    return url
