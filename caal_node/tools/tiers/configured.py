"""The remote tiers that the settings ask for."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pydantic import SecretStr

from caal_node.embedding import kept_vectors
from caal_node.errors import ConfigError
from caal_node.events import TierName
from caal_node.settings import Settings
from caal_node.tools.tiers.mcp import McpTier
from caal_node.tools.tiers.n8n import N8nTier
from caal_node.tools.tiers.port import Tier
from caal_node.validation import place
from caal_node.weights import cache
from mcp_bridge import Embedder, OAuth, SignIns


def configured_tiers(settings: Settings, embedder: Embedder | None = None) -> dict[TierName, Tier]:
    """n8n where there is a URL; MCP always, as its file may appear before a reload.

    `embedder`: for searches by meaning; closing it is the caller's.

    Raises:
        ConfigError: a webhook's credentials are not what they should be.
    """
    tiers: dict[TierName, Tier] = {}
    if settings.n8n_url:
        tiers["n8n"] = n8n_tier(settings)
    tiers["mcp"] = McpTier(
        settings.mcp_servers,
        call_timeout_s=settings.tool_timeout,
        offer_tokens=settings.mcp_tokens,
        catalogue=cache.root() / "mcp",
        pins=place.pins(),
        room_path=settings.mcp_path,
        embedder=embedder,
        vectors=kept_vectors(),
        oauth=_kept_sign_ins(place.sign_ins()),
    )
    return tiers


@lru_cache
def _kept_sign_ins(folder: Path) -> OAuth:
    """One for all rooms of a process, as rooms that sign in alike may share a server."""
    return OAuth(stores=SignIns(folder), mend="run: caal-node login {server}")


def n8n_tier(settings: Settings) -> N8nTier:
    """The n8n of the settings.

    Raises:
        ConfigError: there is none, or its address or a webhook's credentials are malformed.
    """
    if not settings.n8n_url:
        raise ConfigError("N8N_URL: not set. Write the address of your n8n.")
    return N8nTier(
        settings.n8n_url,
        mcp_token=_plain(settings.n8n_mcp_token),
        api_key=_plain(settings.n8n_api_key),
        call_timeout_s=settings.tool_timeout,
        auth={
            key: {name: value.get_secret_value() for name, value in told.items()}
            for key, told in settings.n8n_auth.items()
        },
        poll_s=settings.n8n_poll,
    )


def _plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
