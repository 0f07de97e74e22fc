"""Whole turns in which the person is asked before a tool runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from caal_node.core.events import ToolCallEnded
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import CallConversation
from caal_node.tools.sources import ApprovalRequiredSource
from mcp_bridge import Accepted, Question
from tests.stand_ins.conversation import FakeTier, conversation
from tests.stand_ins.stand_in_model import Call, StandInModel

CALL = Call("get_weather", {"city": "Paris"}, id="c1")


async def ask_person(
    spec: ToolSpec, arguments: Mapping[str, Any], talk: CallConversation | None
) -> bool:
    assert talk is not None
    question = Question(spec.source, spec.name, f"Shall I look at {arguments['city']}?")
    return isinstance(await talk.ask(question), Accepted)


@pytest.mark.parametrize(("answer", "outcome"), [("Yes, please.", "ok"), ("No!", "refused")])
async def test_the_next_words_decide_whether_the_tool_runs(answer: str, outcome: str) -> None:
    source = FakeTier()
    tier: Any = ApprovalRequiredSource(source, ask_person)
    async with (
        StandInModel([CALL], ["As you like."]) as server,
        conversation(server, tier=tier) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "Shall I look at Paris?"
        assert source.calls == []
        assert await talk.ask(answer) == "As you like."
        assert len(source.calls) == (outcome == "ok")
        assert [ended.outcome for ended in talk.events_of(ToolCallEnded)] == [outcome]
        result = server.chats[1].json["messages"][-1]["content"]
        assert json.loads(result).get("error") == (None if outcome == "ok" else "refused")
