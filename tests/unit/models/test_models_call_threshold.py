"""How sure of a call a model has to be is found out from its own odds, beside its own tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any

import pytest

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import AssistantItem, SystemItem, UserItem
from caal_node.core.tool_spec import Example
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    GeneratedToken,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.model_connection import ModelConnection
from caal_node.models.model_preparation import calibrate
from caal_node.models.question import Question


def tool(name: str, description: str) -> Any:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = (tool("set_timer", "Start a timer. Rings once."), tool("play", "Play a song."))
HEAD = Question(
    (SystemItem("You help."), UserItem("Earlier."), AssistantItem("Yes.")),
    PromptTools(TOOLS),
    stream=False,
)


class Odds:
    """A backend whose first key has the odds that `margin` gives a request."""

    model, address = "odds", "http://odds"

    def __init__(self, margin: Callable[[str], float] | None) -> None:
        self.margin = margin
        self.asked: list[BackendRequest] = []

    async def capabilities(self) -> Capabilities:
        return Capabilities(tools=False, schema=True)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        self.asked.append(request)
        said = request.items[-1]
        assert isinstance(said, UserItem)
        if request.top_logprobs and self.margin is not None:
            margin = self.margin(said.text)
            key = "calls" if margin > 0 else "say"
            top = (("calls", margin), ("say", 0.0))
            yield TextChunk('{"', (GeneratedToken('{"', (('{"', 0.0),)),))
            yield TextChunk(key, (GeneratedToken(key, top),))
        else:
            yield TextChunk('{"say":"')
        yield ReplyDone("stop", Usage(1, 1, 0))

    async def aclose(self) -> None:
        pass


def apart(low: float, high: float) -> Callable[[str], float]:
    return lambda said: high if said.startswith("please") else low


async def test_the_bound_lies_in_the_middle_of_small_talk_and_what_the_tools_do() -> None:
    assert await calibrate(Odds(apart(6.0, 10.0)), HEAD) == 8.0
    assert await calibrate(Odds(apart(-4.0, 1.0)), HEAD) == -1.5


async def test_odds_that_do_not_part_leave_the_model_its_choice() -> None:
    assert await calibrate(Odds(apart(8.0, 9.0)), HEAD) == 0.0
    assert await calibrate(Odds(apart(9.0, 3.0)), HEAD) == 0.0


async def test_where_descriptions_sound_like_small_talk_the_tools_examples_count() -> None:
    examples = {"set_timer": (Example("ten minutes", {}),), "play": (Example("some jazz", {}),)}
    spoken = replace(HEAD, tools=PromptTools(TOOLS, examples))
    odds = Odds(lambda said: 5.0 if said.startswith("um") else 1.0)
    assert await calibrate(odds, spoken) == 3.0
    said = [request.items[-1] for request in odds.asked]
    assert UserItem("um, ten minutes please") in said
    assert await calibrate(Odds(lambda _: 1.0), spoken) == 0.0


async def test_examples_are_asked_only_where_they_are_needed() -> None:
    spoken = replace(HEAD, tools=PromptTools(TOOLS, {"play": (Example("some jazz", {}),)}))
    odds = Odds(apart(6.0, 10.0))
    assert await calibrate(odds, spoken) == 8.0
    assert not any("jazz" in str(request.items[-1]) for request in odds.asked)


async def test_a_server_that_tells_no_odds_is_asked_once() -> None:
    silent = Odds(None)
    assert await calibrate(silent, HEAD) == 0.0
    assert len(silent.asked) == 1


async def test_no_tools_no_bound() -> None:
    assert await calibrate(Odds(apart(1.0, 9.0)), Question(HEAD.items)) == 0.0


async def test_only_the_head_is_asked_behind_and_descriptions_are_short() -> None:
    odds = Odds(apart(1.0, 9.0))
    long = tool("long", "word " * 100)
    many = (long, *(tool(f"tool_{n}", f"Do thing {n}.") for n in range(40)))
    await calibrate(odds, Question(HEAD.items, PromptTools(many), stream=False))
    said = [item.text for r in odds.asked for item in r.items[-1:] if isinstance(item, UserItem)]
    described = [text for text in said if text.startswith("please")]
    assert described[0] == "please " + " ".join(["word"] * 12)
    assert len(described) == 6
    assert len(set(described)) == 6
    assert all(UserItem("Earlier.") not in request.items for request in odds.asked)
    assert {request.items[:-1] for request in odds.asked} == {odds.asked[0].items[:-1]}


class Kept:
    """A memory in memory."""

    def __init__(self) -> None:
        self.thresholds: dict[str, float] = {}

    async def keep_strategy(self, strategy: str, why: str) -> None: ...

    async def thinks_aloud(self) -> bool:
        return False

    async def keep_thinks_aloud(self, thinks_aloud: bool) -> None: ...

    async def call_threshold(self, prefix: str) -> float | None:
        return self.thresholds.get(prefix)

    async def keep_call_threshold(self, prefix: str, threshold: float) -> None:
        self.thresholds[prefix] = threshold


async def test_a_bound_is_found_out_once_for_the_same_tools() -> None:
    memory = Kept()
    first, again, other = (Odds(apart(6.0, 10.0)) for _ in range(3))
    for odds, head in (
        (first, HEAD),
        (again, HEAD),
        (other, Question(HEAD.items, PromptTools(TOOLS[:1]), stream=False)),
    ):
        connection = ModelConnection(odds, False, memory=memory)
        await connection.warm(head)
        assert connection.retry_policy.stats.call_threshold == 8.0
        await connection.aclose()
    assert len(first.asked) > len(again.asked) == 1  # the warm-up alone
    assert len(other.asked) > 1


async def test_a_call_below_the_bound_becomes_speech() -> None:
    odds = Odds(apart(6.0, 10.0))
    connection = ModelConnection(odds, False)
    await connection.warm(HEAD)
    asked = Question(
        (SystemItem("You help."), UserItem("how do birds sleep")), PromptTools(TOOLS), stream=False
    )
    with pytest.raises(Exception, match="no reply"):  # this backend never says anything
        async for _ in connection.ask(asked):
            pass
    assert connection.retry_policy.stats.signals["unsure"] == 1
    await connection.aclose()


async def test_leaving_while_it_is_found_out_leaves_nothing_behind() -> None:
    begun = asyncio.Event()

    class Slow(Odds):
        async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
            if request.top_logprobs:
                begun.set()
                await asyncio.Event().wait()
            async for chunk in super().ask(request):
                yield chunk

    connection = ModelConnection(Slow(apart(1.0, 9.0)), False)
    warming = asyncio.create_task(connection.warm(HEAD))
    await begun.wait()
    warming.cancel()
    await asyncio.gather(warming, return_exceptions=True)
    assert warming.cancelled()
    assert connection.retry_policy.stats.call_threshold == 0.0
    await connection.aclose()


async def test_of_a_tool_on_demand_the_model_is_told_before_it_is_asked() -> None:
    backend = Odds(apart(6.0, 10.0))
    assert await calibrate(backend, replace(HEAD, head=PromptTools(TOOLS[:1]))) == 8.0
    said = [
        [item.text for item in each.items if isinstance(item, UserItem)] for each in backend.asked
    ]
    assert "- play(): Play a song." in said[-1][-2]
    assert said[-1][-1] == "please play a song"
    assert not any("play" in text for texts in said[:-1] for text in texts)
