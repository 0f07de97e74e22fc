"""Names that a person need not type whole, in their shell and in `caal-node chat`.

Tools are those that were last listed in this folder, as listing them may start programs. What
cannot be found out completes nothing: a shell has no place for an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from caal_node.core import paths
from caal_node.core.errors import CaalError

if TYPE_CHECKING:
    from caal_node.config.settings import Settings

FILE_NAME: Final = "known-tools.json"
FILE_MAX_BYTES: Final = 4 << 20
FOLDERS: Final = 50
"""Folders whose tools are kept, the last ones that were listed."""
SERVER_S: Final = 1.0
"""Seconds for the model's server: a person waits with a finger on the key."""


def tools(incomplete: str) -> list[str]:
    """Complete the name of a tool."""
    return [name for name in known_tools() if name.startswith(incomplete)]


def toolsets(incomplete: str) -> list[str]:
    """Complete the name of a toolset that is installed."""
    from caal_node.toolsets.installed import installed

    return [name for name in installed() if name.startswith(incomplete)]


def models(incomplete: str) -> list[str]:
    """Complete the name of a model."""
    with contextlib.suppress(CaalError):
        names = asyncio.run(known_models(_settings()))
        return [name for name in names if name.startswith(incomplete)]
    return []


def servers(incomplete: str) -> list[str]:
    """Complete the name of an MCP server that one can sign in to."""
    import mcp_bridge  # with the MCP SDK, which takes a second

    with contextlib.suppress(CaalError, mcp_bridge.BridgeError):
        found = mcp_bridge.load_servers(_settings().mcp_servers, missing_ok=True)
        return [
            config.name
            for config in found
            if mcp_bridge.takes_sign_in(config) and config.name.startswith(incomplete)
        ]
    return []


def _settings() -> Settings:
    # Every command imports this module, for its options; 0.3 s is for those with settings.
    from caal_node.config.file import read_env_files
    from caal_node.config.process_guard import guard_process

    env = dict(os.environ)
    read_env_files(env)
    return guard_process(env)


def known_tools() -> tuple[str, ...]:
    """Return the names that were last kept for the working directory."""
    return tuple(_kept().get(str(Path.cwd()), ()))


def keep_tools(names: Iterable[str]) -> None:
    """Keep the names of all tools that this folder's agent has, where the disk lets them."""
    from mcp_bridge.core.files import replace_file

    here = str(Path.cwd())
    folders = {here: list(names)} | {k: v for k, v in _kept().items() if k != here}
    kept = dict(list(folders.items())[:FOLDERS])
    with contextlib.suppress(OSError):
        replace_file(paths.state_folder() / FILE_NAME, json.dumps(kept).encode())


def _kept() -> Mapping[str, list[str]]:
    from mcp_bridge.core.files import read_capped

    try:
        kept: Any = json.loads(read_capped(paths.state_folder() / FILE_NAME, FILE_MAX_BYTES))
        return {str(folder): list(map(str, names)) for folder, names in kept.items()}
    except (CaalError, OSError, ValueError, TypeError, AttributeError):
        return {}


async def known_models(settings: Settings) -> list[str]:
    """Return the models of the settings, and those that their server has."""
    import httpx2

    from caal_node.http_client import open_client

    names = [settings.model, *map(str, settings.fallbacks.models)]
    ollama = settings.api == "ollama"
    path, models, name = ("/api/tags", "models", "name") if ollama else ("/models", "data", "id")
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with contextlib.suppress(
        TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValueError, TypeError, KeyError
    ):
        async with asyncio.timeout(SERVER_S), open_client(headers=headers) as http:
            listed = (await http.get(f"{settings.model_address}{path}")).json()
        names += [str(model[name]).removesuffix(":latest") for model in listed[models]]
    return list(dict.fromkeys(names))
