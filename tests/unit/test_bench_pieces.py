"""What the benches' figures rest on: the script, the layouts, the clock of the loop."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

pytest.importorskip("livekit.plugins.openai", reason="pip install 'caal-node[dev]'")

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import BackendRequest
from tests import fifty_tools
from tests.bench.counting_engine import Script
from tests.bench.layouts import DataSecond, FollowUpWithoutTools
from tests.bench.loop_clock import watched
from tests.bench.scripted_day import DAY, Turn
from tests.conversation import weather_spec
from tests.stand_in_model import Call as SaidCall

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


def test_there_are_fifty_tools_of_different_names() -> None:
    assert len(names()) == len(set(names())) == 50


@pytest.mark.parametrize("turn", DAY, ids=lambda turn: turn.said[:20])
def test_every_scripted_call_fits_its_tool(turn: Turn) -> None:
    schemas = {tool.name: tool.input_schema for tool in fifty_tools.tools()}
    for name, arguments in turn.calls:
        assert arguments.keys() <= schemas[name]["properties"].keys()
        assert set(schemas[name]["required"]) <= arguments.keys()


def test_a_turn_makes_its_calls_one_a_round_and_then_speaks() -> None:
    script = Script()
    turn = next(turn for turn in DAY if len(turn.calls) == 2)
    script.begin(turn)
    said = [script.next(names()) for _ in range(3)]
    made = [reply[0].name for reply in said[:2] if isinstance(reply[0], SaidCall)]
    assert made == [name for name, _ in turn.calls]
    assert said[2] == [turn.answer]


def test_a_tool_is_found_behind_its_servers_name() -> None:
    (call,) = DAY[0].reply(0, [f"fifty__{name}" for name in names()], "c1")
    assert isinstance(call, SaidCall)
    assert call.name == "fifty__list_events"


def test_call_ids_are_new_in_every_turn() -> None:
    script, ids = Script(), []
    for turn in DAY[:3]:
        script.begin(turn)
        ids += [step.id for step in script.next(names()) if isinstance(step, SaidCall)]
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
