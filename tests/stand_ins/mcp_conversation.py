"""A conversation whose agent has real MCP servers, and whose cues are reported as events."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from caal_node.agent import CaalAgent
from caal_node.core.events import CuePlayed, Event
from caal_node.room.cue_player import SilentCueSink
from caal_node.tools.sources.mcp import McpToolSource
from tests.stand_ins.conversation import Conversation, conversation
from tests.stand_ins.stand_in_model import StandInModel

PATIENCE_S: Final = 10.0
WITH_CUES: Final = {"CAAL_CUES": "on"}


class CueAgent(CaalAgent):
    """Plays cues that nobody hears."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, cue_sink=SilentCueSink())


class McpAgent(CueAgent):
    """Takes the conversation's tier as its MCP servers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "tiers": {"mcp": options["tiers"]["n8n"]}})


@asynccontextmanager
async def mcp_conversation(
    model: StandInModel, servers: Mapping[str, Any], *, call_timeout_s: float = 5.0
) -> AsyncIterator[Conversation]:
    """`servers` are the entries of a mcp_servers.json."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "mcp_servers.json")
        await asyncio.to_thread(config.write_text, json.dumps(servers), encoding="utf-8")
        tier: Any = McpToolSource(config, call_timeout_s=call_timeout_s, ready_s=PATIENCE_S)
        async with conversation(model, agent=McpAgent, tier=tier, env=WITH_CUES) as talk:
            yield talk


def cues(talk: Conversation) -> list[str]:
    """The cues so far, without the ticks that only a busy machine hears."""
    return [cue.kind for cue in talk.events_of(CuePlayed) if cue.kind != "tick"]


async def until(talk: Conversation, kind: type[Event], count: int = 1) -> None:
    """Returns once so many events of that kind are there."""
    async with asyncio.timeout(PATIENCE_S):
        while len(talk.events_of(kind)) < count:  # noqa: ASYNC110 - a session takes no listener later
            await asyncio.sleep(0.005)
