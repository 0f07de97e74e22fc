"""What the bench of small models rests on where it asks the whole agent."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

pytest.importorskip("livekit.plugins.openai", reason="pip install 'caal-node[dev]'")

from caal_node.models.backends.openai import OpenAIBackend
from tests.bench import agent_ways
from tests.bench.asked_ways import Setting, wall
from tests.bench.spoken_requests import Heard, load
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

TIMER = ("set_timer", {"minutes": 12})


def searching(asked: Asked) -> Reply:
    """A model that searches for a timer and then sets it, and calls a timer that it has."""
    messages, tools = asked.json["messages"], asked.json.get("tools") or []
    names = [tool["function"]["name"] for tool in tools]
    said = "\n".join(str(each.get("content")) for each in messages)
    if names == ["get_weather"]:  # the question by which it is found out how it calls
        return [Call("get_weather", {"city": "Oslo"})]
    if "twelve" not in said:
        return ["Hello."]
    if TIMER[0] in names:
        return [Call(*TIMER)]
    if TIMER[0] in said:
        return [Call("use_tool", {"name": TIMER[0], "arguments": TIMER[1]})]
    return [Call("mcp_discover", {"patterns": ["timer"]})]


async def heard(way: Any, *says: str) -> tuple[list[Heard], list[dict[str, Any]]]:
    """What each request came to, and the bodies of all that was asked."""
    async with StandInModel(answer=searching, llama=True) as server:
        server.prompt_tokens = 4_000  # as much as it is asked, so that nothing looks cut off
        backend = OpenAIBackend(server.model, base_url=server.openai_url)
        try:
            setting = Setting(backend, "", server.model, load("measured"), wall)
            async with way(setting) as ask:
                results = [await ask(words) for words in says]
        finally:
            await backend.aclose()
        return results, [asked.json for asked in server.chats]


async def test_a_call_by_the_carrier_is_heard_by_its_own_name_and_not_run() -> None:
    way = agent_ways.on_demand(100)
    (call, none), bodies = await heard(way, "set a timer for twelve minutes", "how are you")
    assert call.calls == (TIMER,)
    assert none.calls == ()
    assert none.spoken.strip() == "Hello."
    heads = {json.dumps(body["tools"]) for body in bodies if body.get("tools")}
    names = [[tool["function"]["name"] for tool in json.loads(head)] for head in heads]
    assert ["mcp_discover", "use_tool"] in names


async def test_a_search_runs_and_what_it_finds_is_heard() -> None:
    (call,), bodies = await heard(agent_ways.on_demand(100), "the twelve, you know what")
    assert call.calls == (TIMER,)
    assert any("callable_now" in str(body["messages"]) for body in bodies)


async def test_requests_share_no_conversation() -> None:
    way = agent_ways.on_demand(100)
    _, bodies = await heard(way, "set a timer for twelve minutes", "how are you")
    assert "twelve" not in str(bodies[-1]["messages"])


async def test_in_front_the_tool_is_called_as_it_is() -> None:
    (call,), bodies = await heard(agent_ways.in_front(), "set a timer for twelve minutes")
    assert call.calls == (TIMER,)
    own = [tool["function"]["name"] for tool in load("measured").tools]
    assert sorted(tool["function"]["name"] for tool in bodies[-1]["tools"]) == sorted(own)


def test_the_requests_own_tools_are_spread_among_others_that_are_no_rivals() -> None:
    requests = load("measured")
    own = {tool["function"]["name"] for tool in requests.tools}
    specs = agent_ways.among(requests, 100)
    assert len({spec.name for spec in specs}) == 100
    assert own < {spec.name for spec in specs}
    assert not [s.name for s in specs if s.name not in own and agent_ways.RIVALS.search(s.name)]
    places = [number for number, spec in enumerate(specs) if spec.name in own]
    assert {later - earlier for earlier, later in itertools.pairwise(places)} == {6}
    assert all(spec.examples for spec in specs if spec.name in own)
