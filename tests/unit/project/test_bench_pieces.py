"""What the benches' figures rest on: the script, the layouts, the clock of the loop."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import httpx2
import pytest
from aiohttp import web
from livekit.agents import llm

pytest.importorskip("livekit.plugins.openai", reason="pip install 'caal-node[dev]'")

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import BackendRequest
from tests.bench.counting_engine import CountingEngine, Counts, Read
from tests.bench.layouts import DataSecond, FollowUpWithoutTools
from tests.bench.loop_clock import watched
from tests.bench.prompt_parts import new_parts
from tests.bench.prompt_picture import TOKENS_A_POINT, Panel, draw
from tests.bench.prompt_tokens import not_run
from tests.bench.scripted_day import DAY, EVENING, Turn
from tests.bench.scripted_model import Did, Script
from tests.stand_ins import fifty_tools, many_tools
from tests.stand_ins.conversation import weather_spec
from tests.stand_ins.stand_in_model import Call as SaidCall

TOOL = {"type": "function", "function": {"name": weather_spec().name}}
HISTORY: tuple[Item, ...] = (
    SystemItem("Help."),
    UserItem("Weather?"),
    CallItem("c1", "get_weather", "{}"),
    ResultItem("c1", "get_weather", '{"forecast":"sunny"}'),
    AssistantItem("Sunny."),
    UserItem("And tomorrow?"),
)


def names() -> list[str]:
    return [tool.name for tool in fifty_tools.tools()]


def test_there_are_fifty_and_five_hundred_tools_of_different_names_and_words() -> None:
    assert len(names()) == len(set(names())) == 50
    many = many_tools.tools()
    assert [tool.name for tool in many[:50]] == names()
    for words in ([tool.name for tool in many], [tool.description for tool in many]):
        assert len(words) == len(set(words)) == 500


@pytest.mark.parametrize("turn", [*DAY, *EVENING], ids=lambda turn: turn.said[:20])
def test_every_scripted_call_fits_its_tool(turn: Turn) -> None:
    schemas = {tool.name: tool.input_schema for tool in many_tools.tools()}
    for call in turn.calls:
        assert call.arguments.keys() <= schemas[call.tool]["properties"].keys()
        assert set(schemas[call.tool]["required"]) <= call.arguments.keys()


@pytest.mark.parametrize("turns", [DAY, EVENING])
def test_an_identifier_that_a_call_needs_is_in_an_earlier_result(turns: tuple[Turn, ...]) -> None:
    known = ""
    for call in (call for turn in turns for call in turn.calls):
        needed = re.findall(r"[a-z]{3}_\d{5}", json.dumps(dict(call.arguments)))
        assert all(each in known for each in needed)
        known += fifty_tools.result(call.tool)


def body(*messages: Any, tools: Iterable[str] = (), **fields: Any) -> dict[str, Any]:
    """A request that shows `messages`, texts being a person's words."""
    said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    return {"messages": said, **({"tools": offered} if offered else {}), **fields}


def in_turn(turn: Turn) -> Script:
    script = Script()
    script.begin(turn)
    return script


def test_a_turn_makes_its_calls_one_a_round_and_then_speaks() -> None:
    turn = next(turn for turn in DAY if len(turn.calls) == 2)
    script = in_turn(turn)
    shown = body("sea_07067", tools=names())
    said = [script.next(shown) for _ in range(3)]
    made = [reply[0].name for reply in said[:2] if isinstance(reply[0], SaidCall)]
    assert made == [call.tool for call in turn.calls]
    assert said[2] == [turn.answer]
    assert script.told_first == {1}
    assert not script.searched


def test_a_tool_is_found_behind_its_servers_name() -> None:
    script = in_turn(DAY[0])
    (call,) = script.next(body("hi", tools=[f"home__{name}" for name in names()]))
    assert isinstance(call, SaidCall)
    assert call.name == "home__list_events"


def test_a_tool_that_the_conversation_tells_of_is_carried() -> None:
    told = "(Tools that may fit:\n- home__list_events: Lists.\n  {day: string})"
    script = in_turn(DAY[0])
    (call,) = script.next(body(told, "what is on", tools=["mcp_discover", "use_tool"]))
    assert isinstance(call, SaidCall)
    assert call.name == "use_tool"
    arguments = dict(DAY[0].calls[0].arguments)
    assert call.arguments == {"name": "home__list_events", "arguments": arguments}
    assert script.told_first == {1}


def test_a_tool_that_is_nowhere_is_searched_and_then_carried() -> None:
    script, head = in_turn(DAY[0]), ["mcp_discover", "use_tool"]
    # Another tool's line, whose name only begins alike, tells nothing of this one.
    (search,) = script.next(body("- home__list_events_of_friends: Lists.", tools=head))
    assert isinstance(search, SaidCall)
    assert search.name == "mcp_discover"
    found = json.dumps({"callable_now": {"home__list_events": "Lists. {day: string}"}})
    result = {"role": "tool", "tool_call_id": search.id, "content": found}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": search.id}]}
    (call,) = script.next(body("what is on", asked, result, tools=head))
    assert isinstance(call, SaidCall)
    assert call.name == "use_tool"
    assert script.searched == [1]
    assert not script.told_first
    assert not script.lost_ids


def test_a_tool_that_no_search_brings_is_given_up() -> None:
    script = in_turn(DAY[0])
    said = [script.next(body("what is on", tools=["mcp_discover"])) for _ in range(3)]
    assert said[2] == [DAY[0].answer]
    assert script.given_up == ["list_events"]


def test_by_text_a_told_tool_is_called_where_the_grammar_admits_it() -> None:
    told = "- home__list_events: Lists.\n  {day: string}\n- mcp_discover: Finds."
    admits = {"response_format": {"enum": ["home__list_events"]}}
    reply = in_turn(DAY[0]).next(body(told, **admits))
    assert json.loads(str(reply[0]))["calls"][0]["name"] == "home__list_events"
    reply = in_turn(DAY[0]).next(body(told, response_format={"enum": ["mcp_discover"]}))
    assert json.loads(str(reply[0]))["calls"][0]["name"] == "mcp_discover"


def test_an_identifier_that_the_prompt_has_lost_is_noticed() -> None:
    turn = next(turn for turn in DAY if len(turn.calls) == 2)
    script = in_turn(turn)
    for _ in turn.calls:
        script.next(body("what is new", tools=names()))
    assert script.lost_ids == ["sea_07067"]


def test_a_call_without_its_result_is_noticed() -> None:
    script = in_turn(DAY[3])
    script.next(body({"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}))
    assert script.lost_ids == ["1 calls in turn 1"]


def test_what_is_new_in_a_request_is_told_apart() -> None:
    first = body({"role": "system", "content": "Help."}, "Hello.", tools=["a"])
    told = "(Tools that may fit:\n- get_it: Gets.\n  {day: string})"
    more = {**first, "messages": [*first["messages"], {"role": "user", "content": told}]}
    assert new_parts(first, more)["told"] == len("- get_it: Gets.\n  {day: string})")
    assert new_parts(first, first) == {}
    assert new_parts(first, {**first, "tools": []})["head"] == len("Help.")


async def lettered(engine: list[dict[str, Any]]) -> web.AppRunner:
    """An engine whose tokens are letters and that evaluates nothing; it notes what it is asked."""

    async def template(request: web.Request) -> web.Response:
        asked = await request.json()
        engine.append(asked)
        return web.json_response({"prompt": "".join(m["content"] for m in asked["messages"])})

    async def tokens(request: web.Request) -> web.Response:
        return web.json_response({"tokens": [*map(ord, (await request.json())["content"])]})

    app = web.Application()
    app.router.add_post("/apply-template", template)
    app.router.add_post("/tokenize", tokens)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner


def test_what_livekits_search_has_found_counts_as_found() -> None:
    result = {"role": "tool", "content": '{"name": "get_it", "description": "Gets.", "p": {}}'}
    assert list(new_parts({}, {"messages": [result]})) == ["found"]
    assert list(new_parts({}, {"messages": [{**result, "content": '{"name": "Ada"}'}]})) == [
        "results"
    ]


def test_the_picture_shows_each_request_and_marks_the_cuts() -> None:
    grown, cut = {"told": 30, "words": 10}, {"words": 10}
    reads = [Read(1, "call", 400, 0, 0, grown), Read(2, "answer", 4_000, 400, 0, cut)]
    reads.append(Read(3, "answer", 200, 100, 0, cut))
    counts = Counts(reads)
    assert counts.cuts == (2,)
    assert [read.tools for read in reads] == [300, 0, 0]
    svg = ElementTree.fromstring(draw([Panel("A day", counts)]))
    bars = [each for each in svg.iter() if each.tag.endswith("rect") and each.get("rx") is None]
    tall = [float(each.get("height", 0)) * TOKENS_A_POINT for each in bars[1:]]
    assert tall == pytest.approx([300, 100, 400, 4_000, 100, 200], abs=4)
    words = [each.text for each in svg.iter() if each.tag.endswith("text")]
    assert words.count("cut") == 1
    assert {"A day", "turn 1", "2", "3", "4,096 tokens", "8,192 tokens"} <= {*words}


async def test_tokens_that_are_only_made_count_from_the_first_difference_on() -> None:
    asked: list[dict[str, Any]] = []
    runner = await lettered(asked)
    host, port = runner.addresses[0][:2]
    try:
        async with (
            CountingEngine(f"http://{host}:{port}/v1", "m", 512, tokenize=True) as counting,
            httpx2.AsyncClient(base_url=counting.openai_url, trust_env=False) as client,
        ):
            for said in (["abc"], ["abc", "de"], ["abc", "de"], ["abX", "de"], ["a"]):
                reply = await client.post("/chat/completions", json=body(*said))
                assert reply.status_code == 200
            reads = [(read.tokens, read.cached) for read in counting.counts.reads]
    finally:
        await runner.cleanup()
    # The last token of a prompt is evaluated in any case.
    assert reads == [(3, 0), (2, 3), (1, 4), (3, 2), (1, 0)]


def test_the_wait_ends_with_the_first_spoken_words() -> None:
    def read(turn: int, did: Did, tokens: int) -> Read:
        return Read(turn, did, tokens, 0, 0, {"told": 1, "words": 3})

    counts = Counts([read(0, "warm-up", 90), read(1, "search", 8), read(1, "call", 16)])
    counts.reads += [read(1, "answer", 4), read(1, "answer", 100), read(2, "answer", 12)]
    assert (counts.warm_up, counts.in_turns, counts.longest) == (90, 140, 100)
    assert [counts.before_first_word(turn) for turn in (1, 2)] == [28, 12]
    assert counts.by_part() == {"told": 35, "words": 105}


def history(*calls: tuple[str, str, bool]) -> list[llm.ChatItem]:
    items: list[llm.ChatItem] = []
    for number, (name, arguments, is_error) in enumerate(calls):
        call_id = f"c{number}"
        items.append(llm.FunctionCall(call_id=call_id, name=name, arguments=arguments))
        items.append(
            llm.FunctionCallOutput(call_id=call_id, name=name, output="", is_error=is_error)
        )
    return items


def test_a_call_counts_as_run_by_its_real_name_with_its_arguments_and_well() -> None:
    arguments = json.dumps(dict(DAY[0].calls[0].arguments))
    assert not_run(DAY[0], history(("home__list_events", arguments, False))) == []
    assert not_run(DAY[0], history(("home__list_events", arguments, True))) == ["list_events"]
    assert not_run(DAY[0], history(("home__list_events", "{}", False))) == []
    other = json.dumps({"day": "2027-01-01"})
    assert not_run(DAY[0], history(("home__list_events", other, False))) == [
        "list_events",
        "list_events (for nothing)",
    ]
    assert not_run(DAY[3], history(("mcp_discover", "{}", False))) == []
    assert not_run(DAY[3], history(("use_tool", "{}", False))) == ["use_tool (for nothing)"]


def test_call_ids_are_new_in_every_turn() -> None:
    script, ids = Script(), list[str]()
    for turn in DAY[:3]:
        script.begin(turn)
        reply = script.next(body("hi", tools=names()))
        ids += [step.id for step in reply if isinstance(step, SaidCall)]
    assert len(ids) == len(set(ids)) == 3


def test_results_are_the_same_every_time_and_are_json() -> None:
    assert json.loads(fifty_tools.result("find_trains"))["count"] == 4
    assert fifty_tools.result("set_light") == fifty_tools.result("set_light")


def test_only_the_request_after_a_result_loses_its_tools() -> None:
    layout = FollowUpWithoutTools(None)  # type: ignore[arg-type]  # it is only laid out
    assert layout.laid_out(BackendRequest(HISTORY, tools=(TOOL,))).tools == (TOOL,)
    assert layout.laid_out(BackendRequest(HISTORY[:4], tools=(TOOL,))).tools == ()


def test_earlier_results_stand_second_and_the_newest_turn_is_as_it_was() -> None:
    layout = DataSecond(None)  # type: ignore[arg-type]  # it is only laid out
    laid_out = layout.laid_out(BackendRequest(HISTORY)).items
    kinds = [type(item) for item in laid_out]
    assert kinds == [SystemItem, SystemItem, UserItem, AssistantItem, UserItem]
    assert isinstance(laid_out[1], SystemItem)
    assert "sunny" in laid_out[1].text
    assert layout.laid_out(BackendRequest(HISTORY[:4])).items == HISTORY[:4]


async def test_the_loop_clock_sees_what_holds_the_loop_and_names_it() -> None:
    async def holds() -> None:
        until = time.thread_time() + 0.03
        while time.thread_time() < until:
            pass

    async def work() -> None:
        await asyncio.sleep(0)
        await asyncio.create_task(holds(), name="holder")

    held = await watched(work)
    assert held.late_ms > 25
    assert held.step_ms > 25
    assert held.step.startswith("holder: ")
