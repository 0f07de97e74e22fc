"""The remote tiers that the settings ask for."""

from __future__ import annotations

from pydantic import SecretStr

from caal_node.events import TierName
from caal_node.settings import Settings
from caal_node.tools.tiers.mcp import McpTier
from caal_node.tools.tiers.n8n import N8nTier
from caal_node.tools.tiers.port import Tier


def configured_tiers(settings: Settings) -> dict[TierName, Tier]:
    """n8n where there is a URL; MCP always, as its file may appear before a reload."""
    tiers: dict[TierName, Tier] = {}
    if settings.n8n_url:
        tiers["n8n"] = N8nTier(
            settings.n8n_url,
            mcp_token=_plain(settings.n8n_mcp_token),
            api_key=_plain(settings.n8n_api_key),
            call_timeout_s=settings.tool_timeout,
        )
    tiers["mcp"] = McpTier(settings.mcp_servers, call_timeout_s=settings.tool_timeout)
    return tiers


def _plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
