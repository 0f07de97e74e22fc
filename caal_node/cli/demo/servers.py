"""The servers behind the demo: a model, an MCP server over stdio, and an n8n workflow by webhook.

The model and the n8n are the person's own where there are any. Else the demo brings along a model,
and a local server replays one workflow of a real n8n 2.41.1 as it was recorded.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Self

import httpx
import ollama
from aiohttp import web
from rich.console import Console

from caal_node import weights
from caal_node.config.settings import Settings
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.weights import cache
from n8n.core.json_values import mapping

WEIGHT: Final = weights.QWEN_CODER_05B
"""It is small enough to answer in a second on two cores, and right on what the demo asks."""
OLLAMA_S: Final = 3.0
"""Seconds for Ollama to say what it has; it answers in milliseconds, or is not there."""
CONTEXT: Final = 4096
"""Tokens: instructions, tools, examples and the demo's turns take 1,500; less memory to touch."""

WORKFLOW: Final = "get_weather"
API_KEY: Final = "recorded-api-key"
"""Any key opens the replay: it guards nothing but recordings."""
_CLOSE_S: Final = 1.0
"""Seconds that a request may still take when the server is closed."""
_TIME_EXAMPLES = [
    {"say": "what time is it in London", "arguments": {"timezone": "Europe/London"}},
    {"say": "tell me the time in Los Angeles", "arguments": {"timezone": "America/Los_Angeles"}},
]
_SETTINGS = """\
[toolsets.timers]

# Who only sets a timer and stops it need not wait until the model has read the other five tools.
[[tools.rules]]
tools = ["set_alarm", "set_reminder", "list_timers", "change_timer", "snooze_alarm"]
then = "deny"

[examples]
get_weather = [
  {say = "what's the weather like in Oslo", arguments = {city = "Oslo"}},
  {say = "will it rain in Rome over the next five days", arguments = {city = "Rome", days = 5}},
]
"""


async def choose_model(
    settings: Settings, console: Console, open_: AsyncExitStack
) -> tuple[str, dict[str, str]]:
    """Start a model if there is none; return what to call it, and the settings that ask it.

    Raises:
        ConfigError: there is no Ollama, and the weights cannot be fetched.
    """
    env = {"CAAL_TEMPERATURE": "0"}
    host = settings.ollama_host
    if (name := await find_ollama_model(settings)) is not None:
        env |= {"CAAL_MODEL": name, "CAAL_API": "ollama", "CAAL_BASE_URL": host}
        return f"{name} on the Ollama at {host}", {**env, "CAAL_TOOL_CALLS": "auto"}
    path = await asyncio.to_thread(weights.ensure, WEIGHT, console=console)
    states = cache.root() / "states"
    states.mkdir(parents=True, exist_ok=True)
    engine = await open_.enter_async_context(EmbeddedEngine(path, ctx=CONTEXT, states=states))
    await engine.recall(WEIGHT.key)
    open_.push_async_callback(engine.keep, WEIGHT.key)
    env |= {"CAAL_MODEL": engine.name, "CAAL_API": "openai", "CAAL_BASE_URL": engine.base_url}
    # These weights write their calls as text; asking them whether they do would take 3 seconds.
    return f"{WEIGHT.title}, embedded (llama.cpp)", {**env, "CAAL_TOOL_CALLS": "text"}


async def find_ollama_model(settings: Settings) -> str | None:
    """Return the configured model if Ollama has it with tools, else Ollama's first with tools."""
    client = ollama.AsyncClient(settings.ollama_host, timeout=OLLAMA_S)
    try:
        names = [model.model for model in (await client.list()).models if model.model]
        for name in sorted(names, key=lambda name: name != settings.model):
            if "tools" in ((await client.show(name)).capabilities or ()):
                return name
    except (ConnectionError, ollama.ResponseError, httpx.HTTPError):  # what ollama speaks through
        return None
    return None


class ReplayedN8n:
    """Replays the recorded workflow on 127.0.0.1: the public API's list, and the webhook.

    async with ReplayedN8n() as replay:
        async with N8nTools(replay.base_url, api_key=replay.api_key) as n: ...

    A call takes as long as the recorded one. Its body is what the workflow's own expression gives
    for the request, so there is a forecast for any city, and it is always sunny.
    """

    def __init__(self) -> None:
        self.base_url = ""
        self.api_key: Final = API_KEY
        recorded = json.loads(Path(__file__).with_name("recorded_workflow.json").read_text("utf-8"))
        self._workflow: Final[dict[str, Any]] = recorded["workflow"]
        self._call_s: Final[float] = recorded["exchange"]["ms"] / 1000
        app = web.Application()
        app.router.add_get("/api/v1/workflows", self._list_workflows)
        app.router.add_post(f"/webhook/{WORKFLOW}", self._call)
        self._runner: Final = web.AppRunner(app, access_log=None, shutdown_timeout=_CLOSE_S)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _list_workflows(self, _: web.Request) -> web.Response:
        return _json_response({"data": [self._workflow], "nextCursor": None})

    async def _call(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self._call_s)
        try:
            body = mapping(await request.json())
        except ValueError:
            message = "Failed to parse request body"
            return _json_response({"code": 0, "message": message}, status=422)
        return _json_response(forecast(body))


def forecast(body: Any) -> dict[str, Any]:
    """Return what the recorded workflow's Set node makes of a request's body.

    Its expression is `{city:$json.body.city, days:$json.body.days ?? 1, forecast:"sunny",
    high_c:21}`, where JSON.stringify leaves out a city that is undefined.
    """
    city = {"city": body["city"]} if "city" in body else {}
    days = body.get("days")
    return {**city, "days": 1 if days is None else days, "forecast": "sunny", "high_c": 21}


def _json_response(value: object, *, status: int = 200) -> web.Response:
    return web.json_response(value, status=status, dumps=_compact_json)


def _compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


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
