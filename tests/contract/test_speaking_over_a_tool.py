"""Somebody speaks while a tool runs: they are answered at once, and its result is kept and told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from livekit.agents import RunContext, function_tool

from caal_node.core.events import ToolCallEnded
from caal_node.core.tool_spec import Effect, ToolSpec
from caal_node.tools.pipeline import STILL_RUNNING
from mcp_bridge import Answer, Dismissed, Question
from tests.stand_ins.conversation import Conversation, FakeTier, conversation, weather_spec
from tests.stand_ins.stand_in_model import Call, Hang, StandInModel

ORDER = Call("order_taxi", {"city": "Paris"}, id="c1")
AT_ONCE_S = 4.0
"""LiveKit alone waits for a running tool for five seconds."""


class Slow:
    """A tool that runs until it is let go, in whichever tier."""

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.may_end = asyncio.Event()
        self.runs = 0

    async def __call__(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        self.runs += 1
        self.running.set()
        await self.may_end.wait()
        return {"taxi": "number 7"}


def own_tool(slow: Slow) -> Any:
    @function_tool
    async def order_taxi(city: str) -> dict[str, Any]:
        """Order a taxi."""
        return await slow(weather_spec(name="order_taxi"), {"city": city})

    return order_taxi


async def spoken_over(talk: Conversation, slow: Slow, words: str) -> str:
    """Ask for a taxi, and say `words` while the tool runs; returns what is answered to them."""
    talk.session.generate_reply(user_input="order a taxi in Paris and close the gate, please")
    async with asyncio.timeout(20):
        await slow.running.wait()
    async with asyncio.timeout(AT_ONCE_S):
        await talk.session.interrupt()  # as LiveKit does for each turn that somebody speaks
        return await talk.ask(words)


def results(server: StandInModel, request: int) -> list[str]:
    messages = server.chats[request].json["messages"]
    calls = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    told = [m for m in messages if m["role"] == "tool"]
    assert calls == [m["tool_call_id"] for m in told], "each call has its result"
    return [m["content"] for m in told]


@pytest.mark.parametrize("own", [False, True])
async def test_the_person_is_answered_at_once_and_the_result_is_told(own: bool) -> None:
    slow = Slow()
    tier = FakeTier(answer=slow) if own else FakeTier(weather_spec(name="order_taxi"), answer=slow)
    replies = [ORDER], ["It is noon."], ["Your taxi is number 7."], ["You are welcome."]
    async with StandInModel(*replies) as server, conversation(server, tier=tier) as talk:
        if own:
            await talk.agent.update_tools([own_tool(slow)])
        assert await spoken_over(talk, slow, "what time is it?") == "It is noon."
        assert results(server, 1) == [STILL_RUNNING]
        slow.may_end.set()
        async with asyncio.timeout(20):
            while len(server.chats) < 3:
                await server.request_arrived()
        assert "You are welcome." in await talk.ask("thanks")
        assert json.loads(results(server, 3)[-1]) == {"taxi": "number 7"}
        first, second, third = (asked.json["messages"] for asked in server.chats[1:])
        assert second[: len(first)] == first
        assert third[: len(first)] == first
        assert slow.runs == 1


async def test_a_result_that_comes_during_the_next_turn_is_told_in_it() -> None:
    slow = Slow()
    tier = FakeTier(weather_spec(name="order_taxi"), answer=slow)
    hang = Hang()
    replies = [ORDER], [hang], ["Your taxi is number 7."]
    async with StandInModel(*replies) as server, conversation(server, tier=tier) as talk:
        talk.session.generate_reply(user_input="order a taxi in Paris and close the gate, please")
        async with asyncio.timeout(20):
            await slow.running.wait()
            await talk.session.interrupt()
            turn = asyncio.create_task(talk.ask("is it ordered?"))
            while len(server.chats) < 2:
                await server.request_arrived()
            slow.may_end.set()
            talk.session.interrupt()
            await turn
            while len(server.chats) < 3:
                await server.request_arrived()
        assert json.loads(results(server, 2)[-1]) == {"taxi": "number 7"}
        assert slow.runs == 1


async def test_a_tool_that_has_reported_by_itself_reports_nothing_else() -> None:
    slow = Slow()

    @function_tool
    async def order_taxi(context: RunContext[Any], city: str) -> dict[str, Any]:
        """Order a taxi."""
        await context.update("I am calling them.")
        return await slow(weather_spec(name="order_taxi"), {"city": city})

    replies = [ORDER], ["I am calling."], ["It is noon."], ["Your taxi is number 7."], ["Bye."]
    async with StandInModel(*replies) as server, conversation(server) as talk:
        await talk.agent.update_tools([order_taxi])
        await talk.ask("order a taxi in Paris, please")
        talk.session.interrupt()
        assert await talk.ask("what time is it?") == "It is noon."
        told = results(server, 2)
        assert len(told) == 1
        assert "I am calling them." in told[0]
        slow.may_end.set()
        async with asyncio.timeout(20):
            while len(server.chats) < 4:
                await server.request_arrived()
        await talk.ask("bye")
        assert json.loads(results(server, 4)[-1]) == {"taxi": "number 7"}
        assert slow.runs == 1


CLOSE = Call("close_gate", {"city": "Paris"}, id="c2")
AFTERWARDS = ["It is noon."], ["That is all."], ["That is all."], ["That is all."]


def two_tools(slow: Slow, effect: Effect = "write") -> FakeTier:
    """A taxi that is ordered slowly, and a gate."""

    async def answer(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return await slow(spec, arguments) if spec.name == "order_taxi" else {"gate": "shut"}

    gate = replace(weather_spec(name="close_gate"), effect=effect)
    return FakeTier(weather_spec(name="order_taxi"), gate, answer=answer)


async def all_results(talk: Conversation, server: StandInModel, calls: int) -> list[str]:
    """What the model reads of the calls once all have ended."""
    async with asyncio.timeout(20):
        while len(talk.events_of(ToolCallEnded)) < calls:  # noqa: ASYNC110 - events come as they come
            await asyncio.sleep(0.005)
    await talk.ask("thanks")
    return results(server, -1)


@pytest.mark.parametrize("own", [False, True])
async def test_a_call_that_is_queued_behind_it_holds_up_nobody_either(own: bool) -> None:
    slow = Slow()
    closed: list[str] = []

    @function_tool
    async def close_gate(city: str) -> dict[str, Any]:
        """Close the gate."""
        closed.append(city)
        return {"gate": "shut"}

    tier = FakeTier() if own else two_tools(slow)
    async with (
        StandInModel([ORDER, CLOSE], *AFTERWARDS) as server,
        conversation(server, tier=tier) as talk,
    ):
        if own:
            await talk.agent.update_tools([own_tool(slow), close_gate])
        assert await spoken_over(talk, slow, "what time is it?") == "It is noon."
        assert results(server, 1) == [STILL_RUNNING] * 2
        assert not closed
        assert [name for name, _ in tier.calls] == ([] if own else ["order_taxi"])
        slow.may_end.set()
        told = await all_results(talk, server, 2)
        assert [json.loads(one) for one in told if one != STILL_RUNNING] == [
            {"taxi": "number 7"},
            {"gate": "shut"},
        ]
        assert slow.runs == 1


async def test_a_queued_call_that_needs_a_yes_is_refused_in_words_and_does_not_run() -> None:
    slow = Slow()
    tier = two_tools(slow, "destructive")
    async with (
        StandInModel([ORDER, CLOSE], *AFTERWARDS) as server,
        conversation(server, tier=tier) as talk,
    ):
        assert await spoken_over(talk, slow, "what time is it?") == "It is noon."
        slow.may_end.set()
        told = await all_results(talk, server, 2)
        assert "spoke before they could be asked" in told[-1]
        assert [name for name, _ in tier.calls] == ["order_taxi"]
        assert [one.outcome for one in talk.events_of(ToolCallEnded)] == ["ok", "refused"]


class AskingTaxi(FakeTier):
    """It asks something in the middle of its call."""

    def __init__(self, slow: Slow) -> None:
        super().__init__(weather_spec(name="order_taxi"), answer=slow)
        self.answers: list[Answer] = []

    async def call(
        self, spec: ToolSpec, arguments: Mapping[str, Any], conversation: Any = None
    ) -> Any:
        found = await super().call(spec, arguments, conversation)
        self.answers.append(await conversation.ask(Question("taxis", "order_taxi", "Which one?")))
        return found


async def test_a_server_that_asks_behind_what_was_spoken_over_gets_no_answer_and_goes_on() -> None:
    slow = Slow()
    tier = AskingTaxi(slow)
    async with (
        StandInModel([ORDER], *AFTERWARDS) as server,
        conversation(server, tier=tier) as talk,
    ):
        assert await spoken_over(talk, slow, "what time is it?") == "It is noon."
        slow.may_end.set()
        told = await all_results(talk, server, 1)
        assert tier.answers == [Dismissed()]
        assert json.loads(told[-1]) == {"taxi": "number 7"}
