"""The Tools API as people have it: a control process, a real livekit-server, an agent in a room."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from livekit import rtc
from livekit.agents import function_tool

from caal_node.agent import CaalAgent
from caal_node.control.listener import ControlListener
from caal_node.control.messages import ReloadReport, ReloadRequest
from caal_node.core.tool_spec import ToolSpec
from tests.stand_ins.api_fuzz import fuzz
from tests.stand_ins.control_process import control_process
from tests.stand_ins.conversation import FakeTier, conversation
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.stand_in_model import StandInModel

pytestmark = pytest.mark.livekit

TOKEN = "-".join(["a", "long", "random", "token"])
SCHEMA = {
    "type": "object",
    "properties": {
        f"field_{n}": {"type": "string", "description": f"what number {n} is for"} for n in range(8)
    },
}
ANSWER_S = 60.0


class Reader(CaalAgent):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.reads = 0

    @function_tool
    async def read_all(self) -> list[str]:
        """Give everything there is: 200 kB that do not compress."""
        self.reads += 1
        return [uuid.uuid4().hex for _ in range(6_000)]


@asynccontextmanager
async def served(livekit: LiveKit, *specs: ToolSpec) -> AsyncGenerator[tuple[str, str, Reader]]:
    """The address of a control process, a room's name, and the agent in it."""
    here, room = rtc.Room(), f"tools-{uuid.uuid4().hex[:8]}"

    async def nothing_new(_: ReloadRequest) -> ReloadReport:
        return ReloadReport(tool_count=0)

    async with (
        StandInModel() as model,
        conversation(model, agent=Reader, tier=FakeTier(*specs)) as talk,
        control_process(livekit, TOKEN) as address,
    ):
        assert isinstance(talk.agent, Reader)
        control = ControlListener(
            here,
            on_reload=nothing_new,
            on_tools=talk.agent.on_tools,
            api_key=livekit.key,
            api_secret=livekit.secret,
        )
        await here.connect(livekit.url, livekit.token(room, "a", agent=True))
        try:
            yield address, room, talk.agent
        finally:
            await control.aclose()
            await here.disconnect()


async def test_catalogue_search_and_calls_cross_a_real_room(livekit: LiveKit) -> None:
    specs = [
        ToolSpec("n8n", "n8n", f"tool_{n}", f"tool_{n}", f"Does thing {n}.", SCHEMA)
        for n in range(500)
    ]
    async with (
        served(livekit, *specs) as (address, room, agent),
        httpx2.AsyncClient(
            base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=ANSWER_S
        ) as http,
    ):
        # One server has the whole run's rooms, so this one is named.
        here = {"room_name": room}
        listed = await http.get("/api/tools", params=here)
        assert len(listed.json()["tools"]) == 501
        assert len(listed.content) > 300_000
        found = await http.post("/api/tools/search", json=here | {"query": "thing 77"})
        assert found.json()["tools"][0]["name"] == "tool_77"
        read = await http.post("/api/tools", json=here | {"name": "read_all"})
        assert len(read.content) > 200_000
        assert len(set(read.json()["result"])) == 6_000
        assert agent.reads == 1
        long = {"field_1": "".join(uuid.uuid4().hex for _ in range(3_000))}
        asked = here | {"name": "tool_3", "arguments": long}
        call = await http.post("/api/tools", json=asked)
        assert call.json()["result"] == {"city": None, "forecast": "sunny", "high_c": 21}


async def test_every_path_answers_as_it_is_described_in_a_real_room(livekit: LiveKit) -> None:
    async with served(livekit) as (address, room, _):
        counts = await asyncio.to_thread(fuzz, address, TOKEN, examples=4, room=room)
    assert {label for label, status in counts if status == 200} >= {
        "GET /health",
        "POST /api/tools/search",
    }
