"""Searches by meaning work from the servers' tools to the model's search and the Tools API."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from caal_node.control.messages import FindAnswer, FindTools
from caal_node.tools.sources.mcp import McpToolSource
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import ToolSearch
from caal_node.weights import MINILM
from mcp_bridge import (
    EmbeddingUnavailable,
    MiniLM,
    ServerConfig,
    ServerManager,
    VectorCache,
)
from mcp_bridge.embedding.semantic_index import SemanticIndex
from tests.stand_ins.cached_weights import cached
from tests.stand_ins.conversation import Conversation, FakeTier, conversation, weather_spec
from tests.stand_ins.embedding_server import embedding_server
from tests.stand_ins.embedding_stand_ins import StandInEmbedder
from tests.stand_ins.mcp_events import Events, events, sdk_server
from tests.stand_ins.stand_in_model import StandInModel

pytestmark = pytest.mark.long

DEADLINE_S = 150.0
"""Longer than an embedder that was late three times on a busy machine is left alone."""
ROOT = str(Path(__file__).parents[2])


@pytest.fixture
async def seen() -> AsyncIterator[Events]:
    async with events() as found:
        yield found


async def soon(manager: ServerManager, said: str) -> list[str]:
    """Search until something is found, and return it."""
    async with asyncio.timeout(DEADLINE_S):
        while not (found := await manager.discover(said)):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.02)  # the embedder's thread needs the time
    return [tool.tool for tool in found]


async def _named(talk: Conversation, *patterns: str) -> list[str]:
    """Return the names that the Tools API finds, best first."""
    answer = await talk.agent.on_tools(FindTools(patterns=patterns))
    assert isinstance(answer, FindAnswer)
    return [tool.name for tool in answer.tools]


async def test_a_search_that_shares_no_word_finds_the_tool_and_a_second_session_embeds_nothing_new(
    seen: Events, tmp_path: Path
) -> None:
    for texts in (12, 1):
        embedder = StandInEmbedder()
        options: Any = {"embedder": embedder, "vectors": VectorCache(tmp_path)}
        async with ServerManager([sdk_server(seen)], **options) as manager:
            assert (await soon(manager, "parrot"))[0] == "echo"
            of_tools = {text for some in embedder.asked for text in some} - {"parrot"}
            assert len(of_tools) == texts
            # An exact name needs no vector.
            embedder.asked.clear()
            assert (await manager.discover("sdk__echo"))[0].tool == "echo"
            assert embedder.asked == []
    assert len(asyncio.all_tasks()) == 1


async def test_an_embedder_that_fails_costs_one_warning_and_no_search(
    seen: Events, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = StandInEmbedder()
    failed = asyncio.Event()

    async def fail() -> None:
        failed.set()
        raise EmbeddingUnavailable("gone; bring it back")

    embedder.before = fail
    async with ServerManager([sdk_server(seen)], embedder=embedder) as manager:
        await failed.wait()
        for _ in range(3):
            assert [tool.tool for tool in await manager.discover("echo")] == ["echo"]
        embedder.before = None
        await manager.reload([])
        await manager.reload([sdk_server(seen)])
        assert (await soon(manager, "parrot"))[0] == "echo"
    warned = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert [r.getMessage() for r in warned] == [
        "tools are searched for without a model: gone; bring it back"
    ]


async def test_closing_while_tools_are_embedded_leaves_nothing_running(seen: Events) -> None:
    embedder = StandInEmbedder()
    begun = embedder.hold()
    async with ServerManager([sdk_server(seen)], embedder=embedder) as manager:
        await begun.wait()
        assert [tool.tool for tool in await manager.discover("echo")] == ["echo"]
    assert embedder.cancelled == 1
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.usefixtures("servers_may_start_slowly")
async def test_the_model_s_own_search_goes_by_meaning(tmp_path: Path) -> None:
    file = tmp_path / "mcp_servers.json"
    env = {"PYTHONPATH": ROOT}
    fifty = {"command": sys.executable, "args": ["-m", "tests.stand_ins.fifty_tools"], "env": env}
    fifty |= {"connect_timeout": 60, "allow": ["env"]}
    file.write_text(json.dumps({"fifty": fifty}))
    search = ToolSearch(StandInEmbedder(), lambda _: False)
    tier = McpToolSource(file, call_timeout_s=30, ready_s=DEADLINE_S)
    try:
        table = ToolTable((await tier.discover()).specs)
        found: list[ToolEntry] = []
        async with asyncio.timeout(DEADLINE_S):
            while not found:
                await asyncio.sleep(0.02)  # the embedder's thread needs the time
                found = await search.find_shown(table, ["freezing"])
        assert found[0].exposed == "fifty__set_thermostat"
    finally:
        await tier.aclose()
        await search.aclose()


async def test_the_tools_api_ranks_by_meaning_over_all_tiers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    lamp = dataclasses.replace(weather_spec(name="switch_lamp"), description="Switch a light.")
    async with embedding_server() as server, StandInModel() as model:
        env = {"CAAL_EMBEDDING": f"ollama:small@{server.url}"}
        tier = FakeTier(weather_spec(), lamp)
        async with conversation(model, tier=tier, env=env) as talk:
            found: list[str] = []
            async with asyncio.timeout(DEADLINE_S):
                while not found:  # vectors may be late on a busy machine
                    found = await _named(talk, "so dark in here")
                    await asyncio.sleep(0.02)
            assert found == ["switch_lamp"]
            assert await _named(talk, "*weather*") == ["get_weather"]
        texts = [text for body in server.asked for text in body["input"]]
        assert texts[-1] == "so dark in here"


@pytest.mark.model
async def test_the_real_model_finds_among_fifty_tools_what_shares_no_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # How well it finds, and not how fast: a busy machine has no vector within the second.
    patient = partial(SemanticIndex, request_s=DEADLINE_S)
    monkeypatch.setattr("mcp_bridge.connection.manager.SemanticIndex", patient)
    folder = cached(MINILM)
    args = (
        "-m",
        "tests.stand_ins.fifty_tools",
        "set_thermostat",
        "set_light",
        "send_mail",
        "get_balance",
    )
    fifty = ServerConfig("fifty", command=sys.executable, args=args, cwd=ROOT, connect_timeout_s=60)
    async with ServerManager([fifty], embedder=MiniLM(folder)) as manager:
        assert (await soon(manager, "I am freezing in here"))[0] == "set_thermostat"
        assert (await soon(manager, "it's so dark"))[0] == "set_light"
        assert (await soon(manager, "how much is in my savings pot"))[0] == "get_balance"
