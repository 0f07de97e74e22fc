"""What the owner's rules deny is run by nobody: no tier, no API, no conversation."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from livekit.agents import function_tool, llm

from caal_node import effect
from caal_node.agent import CaalAgent
from caal_node.config.settings import Settings, load_settings
from caal_node.control.messages import (
    CallAnswer,
    CallFailure,
    CallTool,
    ListAnswer,
    ListTools,
    ReloadRequest,
)
from caal_node.core.errors import ToolRefused
from caal_node.core.events import ToolCallEnded
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Caller, ToolSpec
from caal_node.policy.policy import Policy
from caal_node.policy.rule import Action, Rule
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedToolSource,
    plain_settings,
)
from caal_node.tools.call_middleware import Preview, ToolCallRequest
from caal_node.tools.middleware.policy_check import PolicyCheck, PolicyChecks
from caal_node.tools.pipeline import Gates
from caal_node.tools.table import ToolEntry

SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}


def spec(tier: Any, name: str, worst: Any = "write") -> ToolSpec:
    return ToolSpec(tier, tier, name, name, f"Does {name}.", SCHEMA, effect=worst)


async def done(tool: ToolSpec, arguments: Any) -> Any:
    return {"done": tool.name}


class House(CaalAgent):
    """An agent with a tool of each tier, and a way to see which of them ran."""

    def __init__(self, **options: Any) -> None:
        self.ran: list[str] = []
        self.sources = {
            "n8n": ScriptedToolSource(
                spec("n8n", "send_mail"), spec("n8n", "get_mail", "read"), answer=done
            ),
            "mcp": ScriptedToolSource(spec("mcp", "unlock_door"), answer=done),
        }
        super().__init__(tiers=self.sources, warm=False, **options)

    @function_tool
    @effect("destructive")
    async def wipe(self, what: str) -> str:
        """Wipe something."""
        self.ran.append("wipe")
        return "wiped"

    @function_tool
    @effect("read")
    async def get_time(self) -> str:
        """Tell the time."""
        self.ran.append("get_time")
        return "noon"

    def forget(self) -> None:
        self.ran.clear()
        for source in self.sources.values():
            source.calls.clear()

    @property
    def all_ran(self) -> list[str]:
        return self.ran + [name for source in self.sources.values() for name, _ in source.calls]


def with_rules(text: str, folder: Path) -> Settings:
    path = folder / "caal.toml"
    path.write_text(text, encoding="utf-8")
    return load_settings({"CAAL_CUES": "off"}, path)


def house(policy: Policy) -> House:
    check = PolicyCheck(policy)
    return House(settings=plain_settings(), gates=Gates(middleware=[check]))


TOOLS = ("wipe", "get_time", "send_mail", "get_mail", "unlock_door")
CALLER = Caller("terminal")


@pytest.mark.parametrize("name", TOOLS)
async def test_a_denied_tool_is_run_neither_for_the_model_nor_for_the_api(name: str) -> None:
    rule = Rule("deny", tools=[name], participants=["*"], line="caal.toml, line 3")
    agent = house(Policy([rule], "open"))
    call = ScriptedCall(name, arguments_of(name))
    async with AgentConversation(agent, ScriptedModel([call], "It may not be.")) as talk:
        turn = await talk.say("go")
        answer = await agent.on_tools(CallTool(name=name, arguments=dict(call.arguments)))
        (by_model, by_api) = talk.events_of(ToolCallEnded)
    assert agent.all_ran == []
    assert turn.calls[0].outcome == "refused"
    error = json.loads(turn.calls[0].result or "")
    assert (error["error"], error["say"]) == ("refused", sentence("refused_for_person"))
    assert "do not call it again" in error["message"]
    assert isinstance(answer, CallFailure)
    assert answer.kind == "refused"
    for ended in (by_model, by_api):
        (decision,) = ended.decisions
        told = (decision.by, decision.verdict, decision.line)
        assert told == ("policy", "refused", "caal.toml, line 3")


@pytest.mark.parametrize("name", TOOLS)
async def test_what_is_allowed_runs_and_its_line_is_noted(name: str) -> None:
    agent = house(Policy([Rule("allow", tools=[name], line="line 1"), Rule("deny")]))
    call = ScriptedCall(name, arguments_of(name))
    async with AgentConversation(agent, ScriptedModel([call], "Done.")) as talk:
        await talk.say("go")
        answer = await agent.on_tools(CallTool(name=name, arguments=dict(call.arguments)))
        ended = talk.events_of(ToolCallEnded)
    assert isinstance(answer, CallAnswer)
    assert agent.all_ran == [name, name]
    assert [each.decisions[0].line for each in ended] == ["line 1", "line 1"]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.builds(
            Rule,
            st.sampled_from(["allow", "deny"]),
            tools=st.lists(st.sampled_from([*TOOLS, "*", "get_*"]), max_size=2),
            tier=st.lists(st.sampled_from(["agent", "n8n", "mcp"]), max_size=1),
            origin=st.lists(st.sampled_from(["api", "terminal"]), max_size=1),
            participants=st.sampled_from([[], ["*"], ["ann"]]),
        ),
        max_size=4,
    ),
    st.sampled_from(["open", "read-only"]),
)
async def test_whatever_the_rules_only_what_they_allow_has_run(rules: Any, mode: Any) -> None:
    policy = Policy(rules, mode)
    agent = house(policy)
    async with AgentConversation(agent, ScriptedModel("Hello.")) as talk:
        await talk.say("hello")
        entries = list(agent.table)
        shown = [entry.exposed for entry in entries if not agent.policies.hide(entry)]
    # Each in a turn of its own, as a reply with a name that is not offered is asked for again.
    replies: list[Any] = []
    for name in shown:
        replies += [[ScriptedCall(name, arguments_of(name))], "So it is."]
    agent = house(policy)
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        for name in shown:
            await talk.say(f"use {name}")
        assert set(agent.all_ran) == allowed_to(policy, entries, CALLER)
        agent.forget()
        for name in TOOLS:
            await agent.on_tools(CallTool(name=name, arguments=arguments_of(name)))
        assert set(agent.all_ran) == allowed_to(policy, entries, Caller("api"))


def arguments_of(name: str) -> dict[str, Any]:
    return {} if name == "get_time" else {"what": "all"}


def allowed_to(policy: Policy, entries: Sequence[ToolEntry], caller: Caller) -> set[str]:
    judged = {each.exposed: policy.judge(each.exposed, each.spec, caller) for each in entries}
    return {name for name, judgement in judged.items() if judgement.action == "allow"}


async def test_what_is_denied_to_all_is_not_shown_to_the_model_and_listed_for_the_api(
    tmp_path: Path,
) -> None:
    rules = """\
[tools]
mode = "open"
[[tools.rules]]
tools = ["unlock_*", "wipe"]
then = "deny"
[[tools.rules]]
tools = ["send_*"]
attributes = {role = "guest"}
then = "deny"
"""
    agent = House(settings=with_rules(rules, tmp_path))
    model = ScriptedModel("Hello.", "Hello again.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("hello")
        listed = await agent.on_tools(ListTools())
        shown = names_offered(model, 0)
        (tmp_path / "caal.toml").write_text("[tools]\nmode = 'open'\n", encoding="utf-8")
        await agent.on_reload(ReloadRequest())
        await talk.say("hello")
    assert shown == {"get_time", "send_mail", "get_mail"}
    assert isinstance(listed, ListAnswer)
    verdicts = {tool.name: (tool.offered, tool.effect, tool.verdict) for tool in listed.tools}
    assert verdicts["wipe"] == (False, "destructive", "deny")
    assert verdicts["unlock_door"] == (False, "write", "deny")
    assert verdicts["send_mail"] == (True, "write", "allow")
    assert names_offered(model, 1) == set(TOOLS), "after a reload without the rules"


class Shed(llm.Toolset):
    """A toolset that LiveKit knows, and no table."""

    def __init__(self) -> None:
        self.burnt: list[str] = []
        super().__init__(id="shed")

    @function_tool
    async def burn_shed(self) -> str:
        """Burn it down."""
        self.burnt.append("shed")
        return "burnt"


@pytest.mark.parametrize("then", ["deny", "confirm", "dry_run"])
@pytest.mark.parametrize("of_session", [False, True], ids=["toolset", "session"])
async def test_a_tool_of_a_toolset_or_a_session_does_not_run_where_a_rule_holds_it(
    then: Action, of_session: bool
) -> None:
    gates = Gates(middleware=[PolicyCheck(Policy([Rule(then, tools=["burn_*"])], "open"))])
    calls = [[ScriptedCall("burn_shed")]] * 3
    assert await burning(ScriptedModel(*calls, "I cannot.", "No."), of_session, gates) == set()
    model = ScriptedModel([ScriptedCall("burn_shed")], "It burns.")
    assert await burning(model, of_session) == {"shed"}, "without the rule it runs"


async def test_in_a_dry_run_it_does_not_run_either() -> None:
    model = ScriptedModel(*[[ScriptedCall("burn_shed")]] * 3, "I cannot.", "No.")
    assert await burning(model, of_session=False, CAAL_DRY_RUN="on") == set()


async def burning(
    model: ScriptedModel, of_session: bool, gates: Gates | None = None, **env: str
) -> set[str]:
    """What has burnt once the model was asked for it."""
    shed = Shed()
    given = [] if of_session else [shed]
    settings = plain_settings(**env)
    agent = CaalAgent(settings=settings, tiers={}, gates=gates, tools=given, warm=False)
    async with AgentConversation(agent, model) as talk:
        if of_session:
            talk.session.tools.extend(shed.tools)
        await talk.say("burn it")
    return {*shed.burnt}


def names_offered(model: ScriptedModel, request: int) -> set[str]:
    return {schema["function"]["name"] for schema in model.requests[request].tools}


async def test_with_a_faulty_policy_reading_goes_on_and_each_write_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = with_rules("[[tools.rules]]\ntools = ['x']\nthen = 'denny'\n", tmp_path)
    with caplog.at_level(logging.ERROR):
        agent = House(settings=broken)
    assert (
        f"{tmp_path / 'caal.toml'}, line 3, tools.rules.then: 'denny' does not fit" in caplog.text
    )
    calls = [ScriptedCall("get_mail"), ScriptedCall("get_time"), ScriptedCall("send_mail")]
    async with AgentConversation(agent, ScriptedModel(calls, "Well.")) as talk:
        turn = await talk.say("go")
    assert set(agent.all_ran) == {"get_mail", "get_time"}
    refused = json.loads(turn.calls[2].result or "")
    assert refused["say"] == sentence("policy_faulty")
    assert "cannot be read" in refused["message"]


@pytest.mark.parametrize("text", ["[tools]\nmode = 'opne'\n", "[tools\n", "\0"])
async def test_a_policy_that_breaks_before_a_reload_stops_writes_until_it_is_mended(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = House(settings=with_rules("[tools]\nmode = 'open'\n", tmp_path))
    call = CallTool(name="send_mail", arguments={})
    async with AgentConversation(agent, ScriptedModel("Hello.")):
        (tmp_path / "caal.toml").write_text(text, encoding="utf-8")
        report = await agent.on_reload(ReloadRequest())
        broken = await agent.on_tools(call)
        read = await agent.on_tools(CallTool(name="get_mail", arguments={}))
        (tmp_path / "caal.toml").write_text("", encoding="utf-8")
        mended = await agent.on_reload(ReloadRequest())
        after = await agent.on_tools(call)
    assert report.failed == ("policy",)
    (fault,) = report.faults
    assert fault.startswith(f"{tmp_path / 'caal.toml'}")
    assert str(tmp_path / "caal.toml") in caplog.text
    assert isinstance(broken, CallFailure)
    assert isinstance(read, CallAnswer)
    assert (mended.failed, mended.faults) == ((), ())
    assert isinstance(after, CallAnswer)


async def test_what_needs_a_yes_is_refused_where_nobody_asks() -> None:
    agent = house(Policy())
    wipe = ScriptedCall("wipe", {"what": "all"})
    async with AgentConversation(agent, ScriptedModel([wipe], "No.")) as talk:
        turn = await talk.say("go")
    assert agent.ran == []
    assert json.loads(turn.calls[0].result or "")["say"] == sentence("refused_without_yes")


def request(name: str, caller: Caller = CALLER, worst: Any = "write") -> ToolCallRequest:
    return ToolCallRequest(ToolEntry(name, spec("mcp", name, worst), {}), "c1", {}, caller)


async def proceed() -> str:
    return "ran"


async def test_the_others_are_told_which_line_asks_for_a_yes_or_a_dry_run() -> None:
    rule = Rule("dry_run", tools=["send_*"], line="line 2")
    check = PolicyCheck(Policy([rule]), asks=True, runs_dry=True)
    wipe, send, other = request("wipe", worst="destructive"), request("send_mail"), request("x")
    assert check.needs_yes(wipe) == "mode house: destructive"
    assert check.is_dry(send) == "line 2"
    assert (check.needs_yes(send), check.is_dry(wipe)) == ("", "")
    assert (check.needs_yes(other), check.is_dry(other)) == ("", "")
    assert await check.run(wipe, proceed) == "ran"
    assert await check.run(send, proceed) == "ran"
    with pytest.raises(ToolRefused):
        await PolicyCheck(Policy([rule])).run(send, proceed)


async def test_a_preview_says_what_a_run_would_do_and_notes_nothing() -> None:
    guests = Rule("deny", tools=["unlock_*"], attributes={"role": "guest"}, line="line 4")
    check = PolicyCheck(Policy([guests]))
    guest = request("unlock_door", Caller("room", "hall", "bob", {"role": "guest"}))
    assert check.preview(guest) == Preview("refused", "line 4", sentence("refused_for_person"))
    assert check.preview(request("unlock_door")) == Preview("allowed", "mode house: write")
    assert guest.decisions == []


def test_of_several_policies_the_strictest_is_felt() -> None:
    asks = PolicyCheck(Policy([Rule("confirm", line="one")]))
    denies = PolicyCheck(Policy([Rule("deny", line="two")]))
    entry = request("x").entry
    assert PolicyChecks([asks, denies]).judge(entry, CALLER).line == "two"
    assert PolicyChecks([asks]).judge(entry, CALLER).line == "one"
    assert PolicyChecks([]).judge(entry, CALLER).action == "allow"
