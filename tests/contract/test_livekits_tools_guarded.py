"""Function tools that LiveKit's toolsets, MCP servers and sessions bring go through the middleware
of the agent that speaks, and are otherwise what LiveKit knows.
"""

from __future__ import annotations

# pyright: reportUnknownMemberType=false
# LiveKit leaves the types of its events open, so they are half unknown.
import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from livekit.agents import Agent, ModelSettings, RunContext, function_tool, llm, mcp
from livekit.agents.llm import ToolFlag, Toolset
from livekit.agents.llm.async_toolset import AsyncToolset

from caal_node import effect
from caal_node.agent import CaalAgent
from caal_node.control.messages import CallFailure, CallTool, ListAnswer, ListTools
from caal_node.core.events import ToolCallEnded
from caal_node.core.prompt_files import sentence
from caal_node.policy.policy import Policy
from caal_node.policy.rule import Action, Rule
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.call_middleware import CallMiddleware, Proceed, ToolCallRequest
from caal_node.tools.middleware.dry_run import DryRun
from caal_node.tools.middleware.policy_check import PolicyCheck
from caal_node.tools.pipeline import Gates

pytestmark = pytest.mark.long

SERVER = """
from pathlib import Path
from mcp.server import MCPServer

server = MCPServer("garden")


@server.tool()
def burn(what: str) -> str:
    "Burn something."
    with Path(__file__).with_name("burnt").open("a") as file:
        file.write(what)
    return f"burnt {what}"


server.run()
"""
Way: TypeAlias = Literal[
    "toolset", "nested", "session", "session_toolset", "mcp_toolset", "mcp_servers"
]
WAYS: list[Way] = [
    "toolset", "nested", "session", "session_toolset", "mcp_toolset", "mcp_servers",
]  # fmt: skip
BURN = ScriptedCall("burn", {"what": "shed"})


class Garden:
    """A tool `burn` that LiveKit has in one of its ways, and what it has burnt."""

    def __init__(self, way: Way, folder: Path) -> None:
        self._way = way
        self._folder = folder
        self._script = folder / "garden.py"
        self._script.write_text(SERVER, encoding="utf-8")

        @function_tool
        async def burn(what: str) -> str:
            """Burn something."""
            self._here.append(what)
            return f"burnt {what}"

        self.tool = burn
        self._here: list[str] = []

    @property
    def burnt(self) -> str:
        by_server = self._folder / "burnt"
        there = by_server.read_text(encoding="utf-8") if by_server.exists() else ""
        return "".join(self._here) + there

    @property
    def is_the_agents(self) -> bool:
        """Whether the agent itself was given it, so that lists of its tools have it."""
        return self._way in ("toolset", "nested", "mcp_toolset")

    def options(self) -> dict[str, Any]:
        """What an agent is given."""
        match self._way:
            case "toolset":
                return {"tools": [Toolset(id="garden", tools=[self.tool])]}
            case "nested":
                inner = AsyncToolset(id="garden", tools=[self.tool])
                return {"tools": [Toolset(id="house", tools=[inner])]}
            case "mcp_toolset":
                return {"tools": [mcp.MCPToolset(id="garden", mcp_server=self._server())]}
            case "mcp_servers":
                return {"mcp_servers": [self._server()]}
            case _:
                return {}

    def give(self, session: Any) -> None:
        """Give the tool to the session, where it is one of the session's."""
        if self._way == "session":
            session.tools.append(self.tool)
        elif self._way == "session_toolset":
            session.tools.append(Toolset(id="garden", tools=[self.tool]))

    def _server(self) -> mcp.MCPServerStdio:
        return mcp.MCPServerStdio(
            command=sys.executable, args=[str(self._script)], client_session_timeout_seconds=30
        )


class Noting(CallMiddleware):
    """Keeps the calls that it has seen."""

    name = "noting"

    def __init__(self) -> None:
        self.seen: list[ToolCallRequest] = []

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        self.seen.append(call)
        return await proceed()


def agent_with(middleware: list[CallMiddleware], base: type[CaalAgent], **options: Any) -> Any:
    gates = Gates(middleware=middleware)
    return base(settings=plain_settings(), tiers={}, gates=gates, warm=False, **options)


class WithNode(CaalAgent):
    """Its own node asks by that of the class above, as a generator of its own."""

    async def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
    ) -> AsyncGenerator[Any]:
        async for chunk in super().llm_node(chat_ctx, list(tools), model_settings):
            yield chunk


def reported_by(event: asyncio.Event, words: str) -> Any:
    """A listener that sets `event` once the agent has said `words`."""

    def listen(added: Any) -> None:
        if getattr(added.item, "text_content", "") == words:
            event.set()

    return listen


@pytest.fixture(params=WAYS)
def garden(request: pytest.FixtureRequest, tmp_path: Path) -> Garden:
    return Garden(request.param, tmp_path)


@pytest.mark.parametrize("base", [CaalAgent, WithNode])
async def test_a_call_is_run_once_through_the_middleware_and_answers_as_ever(
    garden: Garden, base: type[CaalAgent]
) -> None:
    noting = Noting()
    agent = agent_with([noting], base, **garden.options())
    async with AgentConversation(agent, ScriptedModel([BURN], "It burns.")) as talk:
        garden.give(talk.session)
        turn = await talk.say("burn the shed")
        (ended,) = talk.events_of(ToolCallEnded)
    assert garden.burnt == "shed"
    assert "burnt shed" in (turn.calls[0].result or "")
    assert turn.text == "It burns."
    (call,) = noting.seen
    assert (call.entry.exposed, dict(call.arguments)) == ("burn", {"what": "shed"})
    assert call.caller.origin == "terminal"
    assert call.context is not None
    assert ended.outcome == "ok"


@pytest.mark.parametrize("then", ["deny", "dry_run"])
async def test_a_rule_holds_for_it_and_the_call_says_so(garden: Garden, then: Action) -> None:
    # The rule is about a person, so the model is shown the tool and its call is refused.
    rule = Rule(then, tools=["burn"], participants=["*"], line="caal.toml, line 3")
    check = PolicyCheck(Policy([rule], "open"), runs_dry=True)
    agent = agent_with([check, DryRun(check.is_dry)], CaalAgent, **garden.options())
    async with AgentConversation(agent, ScriptedModel([BURN], "I may not.")) as talk:
        garden.give(talk.session)
        turn = await talk.say("burn the shed")
        (ended,) = talk.events_of(ToolCallEnded)
    assert garden.burnt == ""
    assert ended.decisions[-1].line == "caal.toml, line 3"
    if then == "deny":
        assert json.loads(turn.calls[0].result or "")["say"] == sentence("refused_for_person")
    else:
        assert "I would have used burn" in turn.text


async def test_what_lists_say_of_it_is_what_the_model_is_shown(garden: Garden) -> None:
    allowed = agent_with([], CaalAgent, **garden.options())
    denied = agent_with(
        [PolicyCheck(Policy([Rule("deny", tools=["burn"])]))], CaalAgent, **garden.options()
    )
    for agent, expected in ((allowed, True), (denied, False)):
        model = ScriptedModel("Hello.")
        async with AgentConversation(agent, model) as talk:
            garden.give(talk.session)
            await talk.say("hello")
            listed = await agent.on_tools(ListTools())
        shown = {schema["function"]["name"] for schema in model.requests[0].tools}
        assert ("burn" in shown) is expected
        assert isinstance(listed, ListAnswer)
        # What the session or `mcp_servers` bring is no tool of the agent's, and not listed.
        assert {tool.offered for tool in listed.tools if tool.name == "burn"} <= {expected}
        assert bool(listed.tools) is garden.is_the_agents


@pytest.mark.parametrize("way", ["toolset", "mcp_toolset"])
async def test_the_api_may_not_call_what_a_rule_denies(way: Way, tmp_path: Path) -> None:
    garden = Garden(way, tmp_path)
    check = PolicyCheck(Policy([Rule("deny", tools=["burn"])]))
    agent = agent_with([check], CaalAgent, **garden.options())
    async with AgentConversation(agent, ScriptedModel("Hello.")) as talk:
        await talk.say("hello")
        answer = await agent.on_tools(CallTool(name="burn", arguments={"what": "shed"}))
    assert isinstance(answer, CallFailure)
    assert answer.kind == "refused"
    assert garden.burnt == ""


async def test_another_agent_of_the_session_runs_the_tools_of_the_session_as_ever(
    tmp_path: Path,
) -> None:
    entered = asyncio.Event()

    class Other(Agent):
        async def on_enter(self) -> None:
            entered.set()

    garden = Garden("session", tmp_path)
    noting = Noting()
    agent = agent_with([noting], CaalAgent)
    model = ScriptedModel([BURN], "It burns.", [BURN], "Again.")
    async with AgentConversation(agent, model) as talk:
        garden.give(talk.session)
        await talk.say("burn the shed")
        assert talk.session.tools == [garden.tool]
        talk.session.update_agent(Other(instructions="Help."))
        async with asyncio.timeout(20):
            await entered.wait()
            await talk.session.run(user_input="burn it again")
    assert garden.burnt == "shedshed"
    assert len(noting.seen) == 1


async def test_a_tool_of_a_toolset_may_still_report_and_go_on(tmp_path: Path) -> None:
    """LiveKit runs it by the toolset's own executor, and speaks again once it is done."""

    @function_tool(flags=ToolFlag.CANCELLABLE)
    async def burn(context: RunContext[Any], what: str) -> str:
        """Burn something."""
        await context.update("lighting it")
        return f"burnt {what}"

    noting = Noting()
    options = {"tools": [AsyncToolset(id="garden", tools=[burn])]}
    agent = agent_with([noting], CaalAgent, **options)
    model = ScriptedModel([BURN], "I am lighting it.", "It has burnt.")
    async with AgentConversation(agent, model) as talk:
        reported = asyncio.Event()
        talk.session.on("conversation_item_added", reported_by(reported, "It has burnt."))
        turn = await talk.say("burn the shed")
        await asyncio.wait_for(reported.wait(), 20)
    assert "lighting it" in (turn.calls[0].result or "")
    assert any("burnt shed" in str(item) for item in model.requests[2].items)
    assert len(noting.seen) == 1


async def test_what_the_author_says_it_does_at_worst_counts(tmp_path: Path) -> None:
    @function_tool
    @effect("destructive")
    async def burn(what: str) -> str:
        """Burn something."""
        raise AssertionError(what)

    agent = agent_with([PolicyCheck(Policy())], CaalAgent)
    async with AgentConversation(agent, ScriptedModel([BURN], "It needs a yes.")) as talk:
        talk.session.tools.append(burn)
        turn = await talk.say("burn the shed")
    error = json.loads(turn.calls[0].result or "")
    assert error["say"] == sentence("refused_without_yes")


@pytest.mark.parametrize("then", ["allow", "confirm", "dry_run"])
async def test_what_a_nodes_own_list_adds_is_shown_only_where_it_may_simply_run(
    tmp_path: Path, then: Action
) -> None:
    garden = Garden("session", tmp_path)

    class Adding(CaalAgent):
        async def llm_node(
            self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
        ) -> AsyncGenerator[Any]:
            tools.append(garden.tool)  # LiveKit runs it, and nothing else sees its calls
            async for chunk in super().llm_node(chat_ctx, tools, model_settings):
                yield chunk

    check = PolicyCheck(Policy([Rule(then, tools=["burn"])]), asks=True, runs_dry=True)
    model = ScriptedModel("Hello.")
    async with AgentConversation(agent_with([check], Adding), model) as talk:
        await talk.say("hello")
    shown = {schema["function"]["name"] for schema in model.requests[0].tools}
    assert shown == ({"burn"} if then == "allow" else set())
