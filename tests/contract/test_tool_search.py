"""The search in a conversation: sixty own methods and an instance with 544 workflows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from livekit.agents import function_tool
from livekit.agents.llm import FunctionTool

from caal_node.agent import CaalAgent
from caal_node.cli.tools import all_entries, head_names, tool_table
from caal_node.config.settings import load_settings
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation
from tests.stand_ins.conversation import FakeTier
from tests.stand_ins.stand_in_model import Call, StandInModel

ROOMS = ("kitchen", "garage", "attic", "cellar", "hall", "bath")
THINGS = ("lamp", "blind", "heater", "fan", "radio", "door", "window", "camera", "plug", "bed")
SUBJECTS = tuple(f"subject{n}" for n in range(34))
DOINGS = ("list", "send", "count", "print", "archive", "share", "check", "sort")
DOINGS += ("merge", "split", "copy", "move", "plan", "draft", "sum", "log")
POLICY = '[[tools.rules]]\nthen = "deny"\ntools = ["send_*", "*_door"]\n'


def own_tool(room: str, thing: str) -> FunctionTool[..., Any]:
    async def switch(level: int) -> str:
        return f"{room} {thing}: {level}"

    about = f"Sets the {thing} in the {room}."
    return function_tool(switch, name=f"{room}_{thing}", description=about)


def own_tools() -> list[FunctionTool[..., Any]]:
    """Sixty function tools, as an author would write them."""
    return [own_tool(room, thing) for room in ROOMS for thing in THINGS]


def workflow(subject: str, doing: str) -> ToolSpec:
    about = f"Lets n8n {doing} the reports of {subject}."
    schema = {
        "type": "object",
        "properties": {"day": {"type": "string", "description": "which day"}},
        "required": ["day"],
    }
    name = f"{doing}_{subject}"
    return ToolSpec("n8n", "n8n", name, name, about, schema)


WORKFLOWS = [workflow(subject, doing) for subject in SUBJECTS for doing in DOINGS]


async def found(
    tmp_path: Path, *patterns: str, env: Mapping[str, str] | None = None, said: str = ""
) -> Any:
    """What a model reads that searches for `patterns` in such a house."""
    rules = tmp_path / "caal.toml"
    rules.write_text(POLICY, encoding="utf-8")
    rules.chmod(0o600)
    settings = load_settings({"CAAL_CUES": "off", **(env or {})}, rules)
    tier = FakeTier(*WORKFLOWS)
    search = Call("mcp_discover", {"patterns": list(patterns)}, id="c1")
    async with StandInModel([search], ["Found."]) as server:
        model = LLM(server.model, "ollama", server.url, native_tools=True)
        agent = CaalAgent(settings=settings, tools=own_tools(), tiers={"n8n": tier}, warm=False)
        async with AgentConversation(agent, model) as talk:
            await talk.say(said or f"find a tool for {patterns[0]}")
            assert len(talk.agent.table) == 604
            assert [entry.exposed for entry in talk.agent.head_entries] == ["mcp_discover"]
            offered = [tool["function"]["name"] for tool in server.chats[0].json["tools"]]
            assert offered[0] == "mcp_discover"
            assert len(offered) <= 2
            result = server.chats[1].json["messages"][-1]
        await model.aclose()
    assert tier.calls == []
    assert (result["role"], len(WORKFLOWS)) == ("tool", 544)
    return json.loads(result["content"])


async def test_tools_of_every_tier_are_found_with_all_that_a_call_needs(tmp_path: Path) -> None:
    answer = await found(tmp_path, "garage heater", "count subject7")
    names = list(answer["callable_now"])
    assert names[:2] == ["garage_heater", "count_subject7"]
    assert len(names) <= 10
    assert answer["callable_now"]["garage_heater"].startswith("(level: integer")
    text = "(day (which day))"  # the names say what they are for
    assert answer["callable_now"]["count_subject7"] == text


async def test_what_a_policy_hides_is_not_found(tmp_path: Path) -> None:
    answer = await found(tmp_path, "*send*", "garage_door")
    told = json.dumps(answer)
    assert "send_" not in told
    assert "_door" not in told


async def test_a_dry_run_searches(tmp_path: Path) -> None:
    answer = await found(tmp_path, "garage heater", env={"CAAL_DRY_RUN": "on"})
    assert next(iter(answer["callable_now"])) == "garage_heater"


@pytest.mark.parametrize("pinned", ["garage_*,sum_subject3"])
async def test_pinned_tools_of_every_tier_stay_in_front(pinned: str) -> None:
    settings = load_settings({"CAAL_CUES": "off", "CAAL_PINNED_TOOLS": pinned}, Path("none.toml"))
    agent = CaalAgent(
        settings=settings, tools=own_tools(), tiers={"n8n": FakeTier(*WORKFLOWS)}, warm=False
    )
    await agent.reload_tools()
    head = [entry.exposed for entry in agent.head_entries]
    assert head == ["mcp_discover", *(f"garage_{thing}" for thing in THINGS), "sum_subject3"]
    await agent.close_tools()


async def test_what_a_rule_hides_is_not_shown_and_is_listed_as_such(tmp_path: Path) -> None:
    (file := tmp_path / "caal.toml").write_text(POLICY, encoding="utf-8")
    settings = load_settings({"CAAL_CUES": "off"}, file)
    workflows = [workflow("subject0", doing) for doing in DOINGS]
    agent = CaalAgent(settings=settings, tiers={"n8n": FakeTier(*workflows)}, warm=False)
    await agent.reload_tools()
    shown = {entry.exposed for entry in agent.shown_entries}
    assert {entry.exposed for entry in agent.head_entries} - shown == {"send_subject0"}
    table = tool_table(await all_entries(agent), head_names(agent), agent.policies.hide)
    told = dict(zip(table.columns[0].cells, table.columns[3].cells, strict=True))
    assert [name for name, how in told.items() if how == "never, by a rule"] == ["send_subject0"]
    await agent.close_tools()


async def test_what_the_context_has_no_room_for_is_not_listed_as_shown() -> None:
    env = {"CAAL_CUES": "off", "CAAL_PINNED_TOOLS": "*"}
    agent = CaalAgent(
        settings=load_settings(env, Path("none.toml")),
        tiers={"n8n": FakeTier(*WORKFLOWS)},
        warm=False,
    )
    await agent.reload_tools()
    agent.choose_front(2_048)
    assert 1 < len(head_names(agent)) < len(agent.head_entries)
    await agent.close_tools()


async def test_what_a_glob_matches_is_ranked_by_what_the_person_said(tmp_path: Path) -> None:
    answer = await found(tmp_path, "*subject*", said="print me the thing about subject31")
    assert next(iter(answer["callable_now"])) == "print_subject31"
