"""MCP servers that an author gives to LiveKit itself work in a CaalAgent as they do without it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from livekit.agents import Agent, mcp

from caal_node.testing import ScriptedCall
from tests.stand_ins.plain_beside_ours import same

CLOCK = """
from mcp.server import MCPServer

server = MCPServer("clock")


@server.tool()
def now(zone: str) -> dict:
    "The time in a zone."
    return {"zone": zone, "time": "noon", "none": None}


server.run()
"""


@pytest.mark.parametrize("way", ["mcp_servers", "toolset"])
async def test_they_are_offered_and_called_as_in_plain_livekit(tmp_path: Path, way: str) -> None:
    script = tmp_path / "clock.py"
    script.write_text(CLOCK, encoding="utf-8")

    def make(base: type[Agent], **options: Any) -> Agent:
        clock = mcp.MCPServerStdio(
            command=sys.executable, args=[str(script)], client_session_timeout_seconds=30
        )
        if way == "mcp_servers":
            options["mcp_servers"] = [clock]
        else:
            options["tools"] = [mcp.MCPToolset(id="clock", mcp_server=clock)]
        return base(instructions="Help.", **options)

    played = await same(make, [ScriptedCall("now", {"zone": "Oslo"})], "Noon.")
    ((told, failed),) = played.results
    assert not failed
    assert "noon" in told
