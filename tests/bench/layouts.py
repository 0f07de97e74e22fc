"""Ways of laying out a prompt, each by a client of its own on the same engine."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from livekit.agents import Agent, AgentSession, APIConnectOptions, TurnHandlingOptions
from livekit.agents.beta.toolsets import ToolProxyToolset
from livekit.agents.llm import Toolset
from livekit.agents.llm.mcp import MCPServerStdio, MCPToolset
from livekit.agents.voice.agent_session import SessionConnectOptions
from livekit.plugins import openai

from caal_node import CaalAgent, ToolDataCache
from caal_node.config.settings import load_settings
from caal_node.core.items import CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.paths import STATE_VARIABLE
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import Backend, BackendRequest, Capabilities, Chunk
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.llm import LLM
from caal_node.tools.sources.mcp import McpToolSource
from tests.bench.counting_engine import DEADLINE_S, CountingEngine

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENT: Final = {"PYTHONPATH": str(ROOT), "PATH": os.environ.get("PATH", "")}
PATIENT: Final = SessionConnectOptions(
    # Once, and with time: a request that is given up and sent again would be counted twice.
    llm_conn_options=APIConnectOptions(max_retry=0, timeout=DEADLINE_S)
)
TOOL_TOKENS: Final = "CAAL_TOOL_TOKENS"
"""The setting of the budget for tools in the head."""
START_S: Final = 60.0
"""For the MCP server's process on a busy machine; LiveKit's own default is 5 s."""

Session: TypeAlias = AgentSession[Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """What every layout works in."""

    engine: CountingEngine
    folder: Path
    """For files of its own."""
    tools: tuple[str, ...] = ()
    """Of the MCP server; all five hundred unless given."""

    @property
    def arguments(self) -> list[str]:
        return ["-m", "tests.stand_ins.many_tools", *self.tools]


Layout: TypeAlias = Callable[[Setting], AsyncGenerator[Session]]
"""A session that is ready for its first turn: warmed up, where the client does that."""


def _session(model: Any) -> Session:
    return AgentSession(
        llm=model,
        vad=None,
        turn_handling=TurnHandlingOptions(turn_detection=None),
        conn_options=PATIENT,
    )


@contextmanager
def own_state() -> Generator[None]:
    """No tool was used before, and nothing is left of what is used meanwhile."""
    with TemporaryDirectory() as folder, patch.dict(os.environ, {STATE_VARIABLE: folder}):
        yield


async def _caal(
    setting: Setting,
    wrapped: Callable[[Backend], Backend] = lambda backend: backend,
    *,
    native: bool = True,
    **values: str,
) -> AsyncGenerator[Session]:
    engine, folder = setting.engine, setting.folder
    servers = folder / "mcp_servers.json"
    entry = {"command": sys.executable, "args": setting.arguments, "env": ENVIRONMENT}
    entry["allow"] = ["env"]
    servers.write_text(json.dumps({"home": {**entry, "connect_timeout": START_S}}))
    rules = folder / "caal.toml"
    rules.write_text('[tools]\noutside = "off"\n')  # nobody is there to say yes
    settings = load_settings(
        {
            "CAAL_CUES": "off",
            "CAAL_MCP_SERVERS": str(servers),
            # Large enough that no window is cut, as in LiveKit's own client.
            "CAAL_NUM_CTX": str(engine.context_tokens),
            **values,
        },
        rules,
    )
    backend = OpenAIBackend(
        engine.model, base_url=engine.openai_url, deadlines=TransportDeadlines(first=DEADLINE_S)
    )
    model = LLM(backend=wrapped(backend), native_tools=native)
    mcp: Any = McpToolSource(servers, call_timeout_s=START_S, ready_s=START_S)
    session = _session(model)
    with own_state():
        try:
            agent = CaalAgent(settings=settings, tiers={"mcp": mcp})
            await session.start(agent)
            await agent.warmed()
            yield session
        finally:
            await session.aclose()
            await model.aclose()


def _whole(
    setting: Setting,
    wrapped: Callable[[Backend], Backend] = lambda backend: backend,
    **values: str,
) -> AsyncGenerator[Session]:
    """Every schema in the head, however many there are."""
    budget = str(setting.engine.context_tokens)
    return _caal(setting, wrapped, **{TOOL_TOKENS: budget}, **values)


def whole(setting: Setting) -> AsyncGenerator[Session]:
    """CaalAgent and our LLM with every schema in the head, warmed."""
    return _whole(setting)


def on_demand(setting: Setting) -> AsyncGenerator[Session]:
    """CaalAgent and our LLM as they are, with the default budget for tools."""
    return _caal(setting)


def on_demand_by_text(setting: Setting) -> AsyncGenerator[Session]:
    """The same by text, as one JSON object held to a schema, as for small models."""
    return _caal(setting, native=False)


def without_hints(setting: Setting) -> AsyncGenerator[Session]:
    """`whole`, but nobody says what "the second one" means."""
    return _whole(setting, CAAL_CHECKS="claims,facts,hedges,needless_calls")


def tools_dropped(setting: Setting) -> AsyncGenerator[Session]:
    """`whole`, but the request after a tool's result offers no tools."""
    return _whole(setting, FollowUpWithoutTools)


def data_second(setting: Setting) -> AsyncGenerator[Session]:
    """`whole`, but results of earlier turns stand in one message behind the instructions."""
    return _whole(setting, DataSecond)


def dropped_and_second(setting: Setting) -> AsyncGenerator[Session]:
    """Both at once."""
    return _whole(setting, lambda backend: FollowUpWithoutTools(DataSecond(backend)))


def livekits_own(setting: Setting) -> AsyncGenerator[Session]:
    """livekit's openai plugin, its MCP toolset and a plain Agent with the same instructions."""
    return _livekits(setting)


def livekits_proxy(setting: Setting) -> AsyncGenerator[Session]:
    """The same, with LiveKit's own tools on demand around each of the server's tools. Around the
    toolset as a whole, the first search returns every schema."""
    return _livekits(setting, proxy=True)


async def _livekits(setting: Setting, *, proxy: bool = False) -> AsyncGenerator[Session]:
    server = MCPServerStdio(
        sys.executable,
        setting.arguments,
        ENVIRONMENT,
        client_session_timeout_seconds=START_S,
    )
    engine = setting.engine
    model = openai.LLM(model=engine.model, base_url=engine.openai_url, api_key="none")
    toolset: Toolset = MCPToolset(id="home", mcp_server=server)
    session = _session(model)
    try:
        if proxy:
            await toolset.setup()
            toolset = ToolProxyToolset(id="proxy", tools=[*toolset.tools])
        await session.start(Agent(instructions=read("system.md"), tools=[toolset]))
        yield session
    finally:
        await session.aclose()
        await model.aclose()
        await server.aclose()


LAYOUTS: Final[Mapping[str, Layout]] = MappingProxyType(
    {
        "on-demand": on_demand,
        "on-demand-text": on_demand_by_text,
        "whole": whole,
        "livekit-openai": livekits_own,
        "livekit-proxy": livekits_proxy,
        "tools-dropped": tools_dropped,
        "data-second": data_second,
        "dropped-and-second": dropped_and_second,
        "without-hints": without_hints,
    }
)


@asynccontextmanager
async def opened(name: str, setting: Setting) -> AsyncGenerator[Session]:
    async with aclosing(LAYOUTS[name](setting)) as sessions:
        yield await anext(sessions)


class _Around:
    """A backend that lays out the request anew, and otherwise is the one it wraps."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def address(self) -> str:
        return self._inner.address

    async def capabilities(self) -> Capabilities:
        return await self._inner.capabilities()

    def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        return self._inner.ask(self.laid_out(request))

    async def aclose(self) -> None:
        await self._inner.aclose()

    def laid_out(self, request: BackendRequest) -> BackendRequest:
        raise NotImplementedError


class FollowUpWithoutTools(_Around):
    def laid_out(self, request: BackendRequest) -> BackendRequest:
        after_a_result = bool(request.items) and isinstance(request.items[-1], ResultItem)
        return dataclasses.replace(request, tools=()) if after_a_result else request


class DataSecond(_Around):
    """Calls and results of earlier turns leave the history for one message behind the head."""

    def laid_out(self, request: BackendRequest) -> BackendRequest:
        items = request.items
        newest = max((at for at, item in enumerate(items) if isinstance(item, UserItem)), default=0)
        earlier = items[:newest]
        if not (text := _rendered(earlier)):
            return request
        head = [item for item in earlier if isinstance(item, SystemItem)]
        said = [
            item for item in earlier if not isinstance(item, (SystemItem, CallItem, ResultItem))
        ]
        data = SystemItem(f"(Earlier tool results, for reference.)\n{text}")
        return dataclasses.replace(request, items=(*head, data, *said, *items[newest:]))


def _rendered(items: tuple[Item, ...]) -> str:
    data = ToolDataCache()
    calls = {item.call_id: item for item in items if isinstance(item, CallItem)}
    for item in items:
        if isinstance(item, ResultItem) and (call := calls.get(item.call_id)):
            data.add_result(call.call_id, call.name, call.arguments, item.output)
    return data.render(calls)
