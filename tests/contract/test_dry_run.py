"""A dry run against servers that write down what reaches them: no call does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.control.messages import CallAnswer, CallTool
from caal_node.core.events import ToolCallEnded
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel
from caal_node.tools.sources.mcp import McpToolSource
from caal_node.tools.sources.n8n import N8nToolSource
from tests.recorded_n8n import RecordedN8n
from tests.stand_ins.conversation import NOWHERE
from tests.stand_ins.mcp_events import Events, HttpStandIn

ASKING = Path(__file__).parents[1] / "stand_ins" / "asking_mcp_server.py"
WEATHER = ScriptedCall("get_weather", {"city": "Oslo"})
MCP = ScriptedCall("house__echo", {"text": "hello"})
OPEN = ScriptedCall("files__open", {})


async def test_no_call_reaches_a_webhook_or_a_server_and_no_server_asks_anything(
    tmp_path: Path,
) -> None:
    seen = Events()
    house = HttpStandIn(seen)
    await house.start()
    question = tmp_path / "question.json"
    question.write_text(json.dumps({"message": "Which folder?", "requestedSchema": {}}))
    command = {"command": sys.executable, "args": [str(ASKING), str(question)]}
    config = tmp_path / "mcp_servers.json"
    config.write_text(json.dumps({"house": {"url": house.url}, "files": command}))
    try:
        async with RecordedN8n(active=["get_weather"]) as recorded:
            n8n = N8nToolSource(
                recorded.base_url, mcp_token=None, api_key=recorded.api_key, call_timeout_s=5
            )
            tiers: Any = {"n8n": n8n, "mcp": McpToolSource(config, call_timeout_s=5, ready_s=60)}
            settings = load_settings({"CAAL_CUES": "off", "CAAL_DRY_RUN": "on"}, NOWHERE)
            agent = CaalAgent(settings=settings, tiers=tiers, warm=False)
            model = ScriptedModel([WEATHER], [MCP], [OPEN])
            async with AgentConversation(agent, model, turn_s=60) as talk:
                assert {"get_weather", "house__echo", "files__open"} <= {
                    entry.exposed for entry in agent.table
                }
                listed = len(recorded.requests), len(house.seen_headers)
                said = [(await talk.say(words)).text for words in ("weather?", "echo", "open it")]
                over_api = [
                    await agent.on_tools(CallTool(name=call.name, arguments=dict(call.arguments)))
                    for call in (WEATHER, MCP, OPEN)
                ]
                reached = len(recorded.requests), len(house.seen_headers)
                outcomes = [event.outcome for event in talk.events_of(ToolCallEnded)]
    finally:
        await house.stop()
    assert reached == listed
    assert not seen.any("echo")
    assert outcomes == ["dry_run"] * 6
    assert all("would have" in text for text in said)
    assert all(isinstance(each, CallAnswer) and each.result["dry_run"] for each in over_api)
