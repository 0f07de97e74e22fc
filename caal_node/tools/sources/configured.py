"""Makes the remote sources that the settings ask for."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from pydantic import SecretStr

import n8n
from caal_node.config.settings import Settings, written_at
from caal_node.context.window import FRONT_TOKENS_MAX
from caal_node.core import paths
from caal_node.core.errors import ConfigError
from caal_node.core.events import TierName
from caal_node.tools.source import ToolSource
from caal_node.tools.sources.mcp import McpToolSource
from caal_node.tools.sources.n8n import N8nToolSource
from caal_node.weights import cache
from mcp_bridge import OAuth, Pins, SignIns


def configured_tiers(settings: Settings) -> dict[TierName, ToolSource]:
    """Return n8n where there is a URL, and MCP always, as its file may appear before a reload.

    Raises:
        ConfigError: a webhook's credentials are not what they should be.
    """
    tiers: dict[TierName, ToolSource] = {}
    if settings.n8n_url:
        tiers["n8n"] = n8n_tier(settings)
    tiers["mcp"] = mcp_tier(settings, catalogue=cache.root() / "mcp")
    return tiers


def mcp_tier(
    settings: Settings, *, catalogue: Path | None, ready_s: float | None = None
) -> McpToolSource:
    """Return the MCP servers of the settings, with what was accepted of them and their sign-ins.

    `catalogue` and `ready_s` are as in `McpToolSource`.
    """
    return McpToolSource(
        settings.mcp_servers,
        call_timeout_s=settings.tool_timeout,
        tool_tokens=FRONT_TOKENS_MAX if settings.tool_tokens is None else settings.tool_tokens,
        catalogue=catalogue,
        pins=Pins(paths.tool_pins()),
        room_path=settings.mcp_path,
        oauth=_sign_ins(paths.sign_ins()),
        ready_s=ready_s,
    )


@lru_cache
def _sign_ins(folder: Path) -> OAuth:
    """Return one for all rooms of a process, as rooms that sign in alike may share a server."""
    return OAuth(stores=SignIns(folder), fix="run: caal-node login {server}")


def n8n_tier(settings: Settings, *, poll_s: float = 0) -> N8nToolSource:
    """Return the n8n of the settings.

    Raises:
        ConfigError: there is none, or its address or a webhook's credentials are malformed.
    """
    if not settings.n8n_url:
        raise ConfigError("N8N_URL: not set. Write the address of your n8n.")
    credentials = {
        key: {name: value.get_secret_value() for name, value in credential.items()}
        for key, credential in settings.n8n_auth.items()
    }
    for key, credential in credentials.items():
        try:
            n8n.read_credentials({key: credential}, os.environ)
        except n8n.N8nError as error:
            wrong = str(error).partition(": ")[2]
            raise ConfigError(f"{written_at('n8n_auth', key)}: {wrong}") from error
    return N8nToolSource(
        settings.n8n_url,
        mcp_token=_secret_text(settings.n8n_mcp_token),
        api_key=_secret_text(settings.n8n_api_key),
        call_timeout_s=settings.tool_timeout,
        auth=credentials,
        poll_s=poll_s,
    )


def _secret_text(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
