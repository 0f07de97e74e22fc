"""The Tools API over HTTP, down to a real agent in a session: catalogue, search, calls, errors."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from livekit.agents import RunContext, ToolError, function_tool, llm
from pydantic import SecretStr

from caal_node import effect
from caal_node.agent import CaalAgent
from caal_node.config.settings import Settings
from caal_node.control.app import MAX_CALL_BYTES, make_app
from caal_node.control.rpc import FetchChunk, SendChunk
from caal_node.core.errors import ToolBroke, ToolRefused, ToolTimeout, ToolUnavailable
from caal_node.core.events import Spoken, ToolCallEnded, ToolCallStarted, TurnEnded
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.call_middleware import ToolCallRequest
from caal_node.tools.pipeline import Gates
from caal_node.tools.source import VerbatimResult
from tests.stand_ins.agent_rooms import AgentRooms
from tests.stand_ins.before_call import BeforeCall
from tests.stand_ins.conversation import Conversation, FakeTier, conversation, weather_spec
from tests.stand_ins.stand_in_model import StandInModel

TOKEN = "-".join(["a", "long", "random", "token"])
BEARER = {"Authorization": f"Bearer {TOKEN}"}
_DICE = random.Random(5)
LARGE = [{"n": n, "text": _DICE.randbytes(20).hex()} for n in range(4000)]

BEGINNING = {"agent_handoff", "agent_config_update"}
"""What LiveKit's history holds before anybody has said a word."""


async def keep_no_cards(call: ToolCallRequest) -> None:
    if "card" in str(call.arguments):
        raise ToolRefused("no cards may be given to tools")


class Kitchen(CaalAgent):
    def __init__(self, **options: Any) -> None:
        gates = Gates(
            middleware=[BeforeCall(keep_no_cards)],
            redact=lambda text: text.replace("hunter2", "***"),
        )
        super().__init__(gates=gates, **options)
        self.timers: list[float] = []

    @function_tool
    async def set_timer(self, minutes: float) -> dict[str, Any]:
        """Start a timer.

        Example: ten minutes for the pasta -> {"minutes": 10}
        """
        self.timers.append(minutes)
        return {"started": True, "minutes": minutes}

    @function_tool
    async def read_all(self, context: RunContext) -> list[dict[str, Any]]:  # type: ignore[type-arg]  # as people write it
        """Give everything there is."""
        assert context.session is self.session
        return LARGE

    @function_tool
    async def whisper(self, how: str) -> Any:
        """Say something that has its own end."""
        match how:
            case "secret":
                return {"password": "hunter2"}
            case "error":
                raise ToolError("the lamp is not plugged in")
            case "crash":
                raise ValueError("hunter2")
            case "agent":
                return llm.ChatContext()
            case "nothing":
                return None
            case _:
                return float("nan")


@asynccontextmanager
async def kitchen(
    tier: FakeTier | None = None,
    env: Mapping[str, str] | None = None,
    agent: type[CaalAgent] = Kitchen,
) -> AsyncGenerator[tuple[httpx2.AsyncClient, Conversation, AgentRooms]]:
    async with (
        StandInModel() as model,
        conversation(model, agent=agent, tier=tier, env=env) as talk,
    ):
        rooms = AgentRooms(talk.agent.on_tools)
        app = make_app(Settings(control_token=SecretStr(TOKEN)), rooms)
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(
                transport=transport, base_url="http://control", headers=BEARER
            ) as http,
        ):
            yield http, talk, rooms


async def test_the_catalogue_has_every_tool_with_tier_server_and_schema() -> None:
    async with kitchen() as (http, _, _):
        reply = (await http.get("/api/tools")).json()
    assert (reply["status"], reply["room_name"], reply["failed"]) == ("ok", "kitchen", {})
    tools = {tool["name"]: tool for tool in reply["tools"]}
    assert tools["get_weather"] == {
        "name": "get_weather",
        "tier": "n8n",
        "server": "n8n",
        "tool": "get_weather",
        "description": "Weather of a city.",
        "input_schema": weather_spec().parameters,
        "read_only": None,
        "offered": True,
        "effect": "write",
        "verdict": "allow",
    }
    assert (tools["set_timer"]["tier"], tools["set_timer"]["server"]) == ("agent", "Kitchen")
    assert tools["set_timer"]["input_schema"]["required"] == ["minutes"]


async def test_tools_on_demand_are_listed_found_and_called() -> None:
    tier = FakeTier(weather_spec())
    env = {"CAAL_TOOL_TOKENS": "10", "CAAL_PINNED_TOOLS": "set_timer"}
    async with kitchen(tier, env) as (http, _, _):
        tools = {tool["name"]: tool for tool in (await http.get("/api/tools")).json()["tools"]}
        assert (tools["get_weather"]["offered"], tools["set_timer"]["offered"]) == (False, True)
        found = (await http.post("/api/tools/search", json={"query": "weather"})).json()
        assert found["tools"][0]["name"] == "get_weather"
        body = {"name": "get_weather", "arguments": {"city": "Paris"}}
        assert (await http.post("/api/tools", json=body)).status_code == 200
        body = {"name": "mcp_discover", "arguments": {"patterns": ["weather"]}}
        reply = await http.post("/api/tools", json=body)
        assert reply.status_code == 404, "the search is the model's own, and in no table"
    assert tier.calls == [("get_weather", {"city": "Paris"})]


async def test_a_source_that_is_down_is_told_with_its_reason() -> None:
    tier = FakeTier()
    tier.failed = {"files": "nothing answers; start it"}
    async with kitchen(tier) as (http, _, _):
        reply = (await http.get("/api/tools", params={"room_name": "kitchen"})).json()
    assert reply["failed"] == {"files": "nothing answers; start it"}


async def test_five_hundred_tools_come_whole_through_messages_that_livekit_carries() -> None:
    schema = {
        "type": "object",
        "properties": {
            f"field_{n}": {"type": "string", "description": f"what number {n} is for"}
            for n in range(8)
        },
    }
    specs = [
        ToolSpec("n8n", "n8n", f"tool_{n}", f"tool_{n}", f"Does thing {n}.", schema)
        for n in range(500)
    ]
    async with kitchen(FakeTier(*specs)) as (http, _, rooms):
        response = await http.get("/api/tools")
        assert len(response.json()["tools"]) == 503
        assert len(response.content) > 300_000
        pages = [asked for asked in rooms.asked if isinstance(asked, FetchChunk)]
        assert len(pages) < 20
        found = await http.post("/api/tools/search", json={"query": "thing 77", "limit": 3})
        assert found.json()["tools"][0]["name"] == "tool_77"


async def test_a_search_ranks_tools_of_all_tiers_and_says_how_many_match() -> None:
    async with kitchen() as (http, _, _):
        one = (await http.post("/api/tools/search", json={"query": "start a timer"})).json()
        assert one["tools"][0]["name"] == "set_timer"
        both = await http.post(
            "/api/tools/search", json={"patterns": ["*weather*", "*timer*"], "limit": 1}
        )
        assert [tool["name"] for tool in both.json()["tools"]] == ["get_weather"]
        assert both.json()["found"] == 2
        none = (await http.post("/api/tools/search", json={"query": "zzzz"})).json()
        assert (none["found"], none["tools"]) == (0, [])


async def test_a_call_of_a_remote_tool_gives_its_value_and_is_seen_as_events() -> None:
    async with kitchen() as (http, talk, _):
        response = await http.post(
            "/api/tools", json={"name": "get_weather", "arguments": {"city": "Paris"}}
        )
        assert response.status_code == 200
        reply = response.json()
        assert reply.pop("duration_ms") >= 0
        call_id = reply.pop("call_id")
        assert call_id.startswith("api_")
        assert reply == {
            "status": "called",
            "room_name": "kitchen",
            "name": "get_weather",
            "tier": "n8n",
            "server": "n8n",
            "result": {"city": "Paris", "forecast": "sunny", "high_c": 21},
            "truncated": False,
            "spoken": None,
        }
        [started], [ended] = talk.events_of(ToolCallStarted), talk.events_of(ToolCallEnded)
        assert (started.call_id, started.tool, started.tier) == (call_id, "get_weather", "n8n")
        assert (ended.call_id, ended.outcome) == (call_id, "ok")
        # Nobody in the conversation asked: no turn, no words, no history, no data for the model.
        assert talk.events_of(TurnEnded) == talk.events_of(Spoken) == []
        assert {item.type for item in talk.history} == BEGINNING
        assert len(talk.agent.tool_data) == 0


async def test_the_agents_own_tools_are_called_and_checked() -> None:
    async with kitchen() as (http, talk, _):
        body: dict[str, Any] = {"name": "set_timer", "arguments": {"minutes": 10}}
        reply = (await http.post("/api/tools", json=body)).json()
        assert reply["result"] == {"started": True, "minutes": 10}
        assert isinstance(talk.agent, Kitchen)
        assert talk.agent.timers == [10.0]
        body["arguments"] = {"minutes": "ten"}
        refused = await http.post("/api/tools", json=body)
        assert refused.status_code == 422
        assert refused.json()["kind"] == "invalid_arguments"
        assert "minutes" in refused.json()["detail"]
        assert talk.agent.timers == [10.0]


class Workshop(CaalAgent):
    """An agent with the standard rules and a tool that destroys."""

    wiped = 0

    @function_tool
    @effect("destructive")
    async def wipe(self, shelf: str) -> str:
        """Wipe a shelf."""
        self.wiped += 1
        return "wiped"


async def test_a_call_that_needs_a_yes_is_named_and_runs_once_that_is_sent_with_it() -> None:
    async with kitchen(agent=Workshop) as (http, talk, _):
        body: dict[str, Any] = {"name": "wipe", "arguments": {"shelf": "top"}}
        asked = await http.post("/api/tools", json=body)
        assert asked.status_code == 409
        told = asked.json()
        assert told["kind"] == "needs_confirmation"
        assert told["question"] == "Shall I wipe: shelf top?"
        other = {"name": "wipe", "arguments": {"shelf": "all"}}
        wrong = await http.post("/api/tools", json={**other, "confirmation": told["confirmation"]})
        assert wrong.status_code == 409
        assert isinstance(talk.agent, Workshop)
        assert talk.agent.wiped == 0
        done = await http.post("/api/tools", json={**body, "confirmation": told["confirmation"]})
        assert (done.status_code, talk.agent.wiped) == (200, 1)
        (*_, ended) = talk.events_of(ToolCallEnded)
    assert ended.decisions[-1].verdict == "confirmed"


async def test_a_large_result_comes_whole() -> None:
    async with kitchen() as (http, talk, rooms):
        response = await http.post("/api/tools", json={"name": "read_all"})
        assert len(response.content) > 200_000
        assert len([asked for asked in rooms.asked if isinstance(asked, FetchChunk)]) > 10
        assert response.json()["result"] == LARGE
        assert len(talk.agent.tool_data) == 0


async def test_large_arguments_reach_the_tool_whole() -> None:
    tier = FakeTier()
    city = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(100_000))
    async with kitchen(tier) as (http, _, rooms):
        body = {"name": "get_weather", "arguments": {"city": city}}
        assert (await http.post("/api/tools", json=body)).status_code == 200
        assert len([a for a in rooms.asked if isinstance(a, SendChunk)]) > 10
    assert tier.calls == [("get_weather", {"city": city})]


async def test_an_answer_that_gets_lost_is_asked_for_again_and_the_call_is_made_once() -> None:
    tier = FakeTier()
    async with kitchen(tier) as (http, _, rooms):
        rooms.lose = 3
        body = {"name": "get_weather", "arguments": {"city": "Paris"}}
        assert (await http.post("/api/tools", json=body)).status_code == 200
    assert len(tier.calls) == 1


async def test_calls_that_conflict_wait_for_one_another() -> None:
    running = most = 0
    began, may_end = asyncio.Event(), asyncio.Event()

    async def slow(_: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        began.set()
        await may_end.wait()
        running -= 1
        return "done"

    spec = weather_spec(name="save_file")
    tier = FakeTier(spec, answer=slow)
    async with kitchen(tier) as (http, _, _):
        body = {"name": "save_file", "arguments": {"city": "Paris"}}
        both = [asyncio.create_task(http.post("/api/tools", json=body)) for _ in range(2)]
        await began.wait()
        may_end.set()
        assert [r.status_code for r in await asyncio.gather(*both)] == [200, 200]
    assert (most, len(tier.calls)) == (1, 2)


@pytest.mark.parametrize(
    ("failure", "status", "kind", "outcome"),
    [
        (ToolBroke("the file is not there"), 502, "tool_error", "error"),
        (ToolUnavailable("files is down; start it"), 503, "unavailable", "error"),
        (ToolTimeout("no answer in 20 seconds"), 504, "timeout", "timeout"),
        (ToolRefused("not at night"), 403, "refused", "refused"),
        (ValueError("hunter2"), 502, "tool_error", "error"),
    ],
)
async def test_a_call_that_fails_has_a_status_a_kind_and_the_words_that_the_model_gets(
    failure: Exception, status: int, kind: str, outcome: str
) -> None:
    async def answer(_: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        raise failure

    async with kitchen(FakeTier(answer=answer)) as (http, talk, _):
        body = {"name": "get_weather", "arguments": {"city": "Paris"}}
        response = await http.post("/api/tools", json=body)
        assert response.status_code == status
        assert response.json()["status"] == "error"
        assert response.json()["kind"] == kind
        assert "hunter2" not in response.text
        [ended] = talk.events_of(ToolCallEnded)
        assert ended.outcome == outcome


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("error", 502, "the lamp is not plugged in"),
        ("crash", 502, "whisper failed with ValueError."),
        ("agent", 502, "whisper gave what only a conversation can take."),
        ("nothing", 200, None),
        ("nan", 200, None),
        ("secret", 200, {"password": "***"}),
    ],
)
async def test_every_end_of_a_method_is_an_answer(how: str, status: int, words: Any) -> None:
    async with kitchen() as (http, _, _):
        body = {"name": "whisper", "arguments": {"how": how}}
        response = await http.post("/api/tools", json=body)
    assert response.status_code == status
    reply = response.json()
    assert (reply["result"] if status == 200 else reply["detail"]) == words


async def test_what_an_author_would_have_said_is_told_and_not_spoken() -> None:
    async def answer(_: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return VerbatimResult({"ok": True}, "It is done, hunter2.")

    async with kitchen(FakeTier(answer=answer)) as (http, talk, _):
        body = {"name": "get_weather", "arguments": {"city": "Paris"}}
        reply = (await http.post("/api/tools", json=body)).json()
        assert (reply["result"], reply["spoken"]) == ({"ok": True}, "It is done, ***.")
        assert {item.type for item in talk.history} == BEGINNING


async def test_policy_and_schema_hold_for_the_api_as_for_the_model() -> None:
    tier = FakeTier()
    async with kitchen(tier) as (http, _, _):
        for arguments, status in (({"city": "card 4111"}, 403), ({}, 422), ({"city": 3}, 422)):
            body = {"name": "get_weather", "arguments": arguments}
            assert (await http.post("/api/tools", json=body)).status_code == status
    assert tier.calls == []


async def test_an_unknown_name_is_answered_with_the_nearest_ones() -> None:
    async with kitchen() as (http, talk, _):
        response = await http.post("/api/tools", json={"name": "get_wether"})
        assert response.status_code == 404
        assert response.json()["kind"] == "unknown_tool"
        assert response.json()["valid_names"][0] == "get_weather"
        assert talk.events_of(ToolCallStarted) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/api/tools", {"name": "x", "command": "sh"}, 422, "no field 'command'"),
        ("POST", "/api/tools", {"name": "x", "env": {"A": "b"}}, 422, "no field 'env'"),
        ("POST", "/api/tools", {"name": "x", "url": "http://x"}, 422, "no field 'url'"),
        ("POST", "/api/tools", {}, 422, "name: field required."),
        ("POST", "/api/tools", {"name": "x", "arguments": []}, 422, "arguments: "),
        ("POST", "/api/tools", {"name": "x", "room_name": "cellar"}, 404, "no live room 'cellar'"),
        ("POST", "/api/tools/search", {}, 422, "send either query or patterns."),
        ("POST", "/api/tools/search", {"query": "a", "patterns": ["b"]}, 422, "either"),
        ("POST", "/api/tools/search", {"patterns": []}, 422, "patterns: "),
        ("POST", "/api/tools/search", {"query": "a", "limit": 0}, 422, "limit: "),
        ("POST", "/api/tools/search", {"query": "a", "limit": 1.5}, 422, "limit: "),
        ("POST", "/api/tools/search", {"query": "a", "limit": "5"}, 422, "limit: "),
        ("POST", "/api/tools/search", {"query": None}, 422, "query: "),
        ("GET", "/api/tools?room_name=cellar", None, 404, "no live room 'cellar'"),
        ("GET", "/api/tools?room=cellar", None, 422, "room: "),
        ("DELETE", "/api/tools", None, 405, "Method Not Allowed."),
        ("GET", "/api/nothing", None, 404, "Not Found."),
    ],
)
async def test_a_wrong_request_is_refused_in_one_shape(
    method: str, path: str, body: object, status: int, words: str
) -> None:
    tier = FakeTier()
    async with kitchen(tier) as (http, _, _):
        response = await http.request(method, path, json=body)
    assert response.status_code == status
    assert response.json()["status"] == "error"
    assert words in response.json()["detail"]
    assert tier.calls == []


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (b"1e400", "The number 1e400 is too large; send a smaller one, or a text."),
        (b"[[-1.5E+999]]", "The number -1.5E+999 is too large"),
        (b"1" * 500 + b".0", f"The number {'1' * 40}... is too large"),
        (b"NaN", "NaN is not JSON"),
        (b"-Infinity", "-Infinity is not JSON"),
        (b'{"x": Infinity}', "Infinity is not JSON"),
    ],
)
async def test_a_number_that_cannot_be_sent_on_is_refused_and_never_becomes_null(
    number: bytes, words: str
) -> None:
    tier = FakeTier(weather_spec())
    async with kitchen(tier) as (http, _, _):
        body = b'{"name": "get_weather", "arguments": {"city": "Paris", "n": %s}}' % number
        response = await http.post("/api/tools", content=body)
        assert (response.status_code, response.json()["status"]) == (422, "error")
        assert words in response.json()["detail"]
        assert tier.calls == []


async def test_numbers_arrive_as_they_were_sent() -> None:
    tier = FakeTier(ToolSpec("n8n", "n8n", "count", "count", "Count.", {"type": "object"}))
    sent = {"a": 1e308, "b": -0.5, "c": 10**30, "d": 5e-324}
    async with kitchen(tier) as (http, _, _):
        body = {"name": "count", "arguments": sent}
        assert (await http.post("/api/tools", json=body)).status_code == 200
    assert tier.calls == [("count", sent)]


async def test_a_lone_surrogate_is_no_text() -> None:
    async with kitchen() as (http, _, _):
        response = await http.post("/api/tools", content=rb'{"name": "\ud800"}')
    assert response.status_code == 422


async def test_a_body_that_is_too_large_is_cut_off() -> None:
    async with kitchen() as (http, _, _):
        for path, size in (("/api/tools", MAX_CALL_BYTES), ("/api/tools/search", 16 * 1024)):
            response = await http.post(path, content=b" " * (size + 1))
            assert response.status_code == 413


@pytest.mark.parametrize("path", ["/api/tools", "/api/tools/search", "/api/openapi.json"])
async def test_nothing_is_told_without_the_token(path: str) -> None:
    async with kitchen() as (http, _, rooms):
        for method in ("GET", "POST"):
            response = await http.request(
                method, path, json={"name": "set_timer"}, headers={"Authorization": "Bearer x"}
            )
            assert response.status_code in (401, 405)
        assert rooms.asked == []


async def test_neither_arguments_nor_results_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    async with kitchen() as (http, _, _):
        for city in ("Timbuktu", 77_123):
            body = {"name": "get_weather", "arguments": {"city": city}}
            await http.post("/api/tools", json=body)
        await http.post("/api/tools", json={"name": "set_timer", "arguments": {"minutes": "Oslo"}})
    ours = [r for r in caplog.records if r.name.startswith(("caal_node", "livekit"))]
    text = "\n".join(json.dumps(vars(record), default=str) for record in ours)
    assert "get_weather" in text
    assert "Timbuktu" not in text
    assert "77123" not in text
    assert "Oslo" not in text


async def test_an_agent_that_leaves_cancels_what_was_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def forever(_: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with caplog.at_level(logging.ERROR):
        async with kitchen(FakeTier(answer=forever)) as (http, talk, rooms):
            body = {"name": "get_weather", "arguments": {"city": "Paris"}}
            call = asyncio.create_task(http.post("/api/tools", json=body))
            await began.wait()
            await rooms.listener.aclose()
            assert ended.is_set()
            assert (await call).status_code == 502
            assert [e.outcome for e in talk.events_of(ToolCallEnded)] == ["cancelled"]
    assert caplog.text == ""
