"""Whole turns in which calls wait for each other, and in which a search makes tools callable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import ToolListing
from tests.stand_ins.conversation import FakeTier, conversation, weather_spec
from tests.stand_ins.stand_in_model import Call, StandInModel


def spec(name: str) -> ToolSpec:
    return ToolSpec("n8n", "n8n", name, name, f"Does {name}.", {"type": "object"})


def results(server: StandInModel, chat: int = 1) -> list[str]:
    messages = server.chats[chat].json["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


async def test_readers_run_at_once_and_results_keep_the_models_order() -> None:
    second_done = asyncio.Event()

    async def answer(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
        if spec.name == "get_slow":
            await second_done.wait()  # comes only if the two run side by side
            return "slow"
        second_done.set()
        return "quick"

    tier = FakeTier(spec("get_slow"), spec("get_quick"), answer=answer)
    calls = [Call("get_slow", {}, id="c1"), Call("get_quick", {}, id="c2")]
    async with (
        StandInModel(calls, ["Both."]) as server,
        conversation(server, tier=tier) as talk,
    ):
        assert await talk.ask("both, please") == "Both."
        assert results(server) == ["slow", "quick"]


async def test_writers_of_one_source_run_in_the_models_order() -> None:
    log: list[str] = []

    async def answer(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
        log.append(f"{spec.name} began")
        await asyncio.sleep(0)
        log.append(f"{spec.name} ended")
        return spec.name

    tier = FakeTier(spec("create_event"), spec("invite_people"), answer=answer)
    calls = [Call("create_event", {}, id="c1"), Call("invite_people", {}, id="c2")]
    async with (
        StandInModel(calls, ["Done."]) as server,
        conversation(server, tier=tier) as talk,
    ):
        await talk.ask("make it and invite them")
        first, second = "create_event", "invite_people"
        assert log == [f"{first} began", f"{first} ended", f"{second} began", f"{second} ended"]
        assert results(server) == [first, second]


class Searching(FakeTier):
    """Offers a search, and what it has found."""

    def __init__(self) -> None:
        super().__init__(spec("find_tools"), answer=self._run)
        self._changed: Callable[[ToolListing], None] | None = None

    async def _run(self, called: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        if called.name == "find_tools":
            self.specs.append(weather_spec())
            assert self._changed is not None
            self._changed(ToolListing(tuple(self.specs)))
            return {"callable_now": ["get_weather"]}
        return {"forecast": "sunny"}

    def watch_changes(self, changed: Callable[[ToolListing], None]) -> None:
        self._changed = changed


async def test_what_a_search_finds_is_called_in_the_same_turn_and_stays() -> None:
    search = Call("find_tools", {}, id="c1")
    weather = Call("get_weather", {"city": "Paris"}, id="c2")
    async with (
        StandInModel([search], [weather], ["Sunny."], ["Bye."]) as server,
        conversation(server, tier=Searching()) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "Sunny."
        assert await talk.ask("bye") == "Bye."
        offered = [
            [tool["function"]["name"] for tool in chat.json["tools"]] for chat in server.chats
        ]
        assert offered == [["find_tools"], *[["find_tools", "get_weather"]] * 3]
        assert [name for name, _ in talk.tier.calls] == ["find_tools", "get_weather"]
        first, second = (chat.json["tools"] for chat in server.chats[:2])
        assert second[:1] == first, "the prompt's prefix stays up to the end of what was offered"


class ThreeMethods:
    """A source without the base class, as the README describes one."""

    async def discover(self) -> ToolListing:
        return ToolListing((weather_spec(),))

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return f"sunny in {arguments['city']}"

    async def aclose(self) -> None:
        pass


async def test_an_object_with_discover_call_and_aclose_is_a_tier() -> None:
    weather = Call("get_weather", {"city": "Paris"}, id="c1")
    tier: Any = ThreeMethods()
    async with (
        StandInModel([weather], ["Sunny."]) as server,
        conversation(server, tier=tier) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "Sunny."
        assert results(server) == ["sunny in Paris"]
