"""The demo has tools of an MCP server over stdio, and an n8n workflow by webhook."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from caal_node.cli.demo.replayed_n8n import ReplayedN8n
from caal_node.config.settings import Settings

_TIME_EXAMPLES = [
    {"say": "what time is it in London", "arguments": {"timezone": "Europe/London"}},
    {"say": "tell me the time in Los Angeles", "arguments": {"timezone": "America/Los_Angeles"}},
]
_SETTINGS = """\
[examples]
get_weather = [
  {say = "what's the weather like in Oslo", arguments = {city = "Oslo"}},
  {say = "will it rain in Rome over the next five days", arguments = {city = "Rome", days = 5}},
]
"""


def write_settings(folder: Path) -> dict[str, str]:
    """Write `caal.toml` and `mcp_servers.json` into `folder`; return what else must be set."""
    (folder / "caal.toml").write_text(_SETTINGS, encoding="utf-8")
    servers = {
        "time": {
            "command": sys.executable,
            "args": ["-m", "mcp_server_time", "--local-timezone", "Europe/London"],
            "examples": {"get_current_time": _TIME_EXAMPLES},
        }
    }
    path = folder / "mcp_servers.json"
    path.write_text(json.dumps(servers, indent=2), encoding="utf-8")
    path.chmod(0o600)  # a file that the group may write is not read
    return {"CAAL_MCP_SERVERS": str(path)}


async def open_n8n(settings: Settings, open_: AsyncExitStack) -> tuple[str, dict[str, str]]:
    """Use the person's own n8n where N8N_URL is set, else a replay.

    Returns:
        What to call it, and the settings that ask it.
    """
    if settings.n8n_url:
        return f"n8n at {settings.n8n_url}", {}
    recorded = await open_.enter_async_context(ReplayedN8n())
    return (
        "n8n (recorded: a local server replays a real n8n 2.41.1)",
        {"N8N_URL": recorded.base_url, "N8N_API_KEY": recorded.api_key, "N8N_MCP_TOKEN": ""},
    )
