"""A model's server that runs tools by itself: heard, told, never run again.

The lines are written after the format as its users describe it (`task_id`, `task_status`,
`tool_results` inline); no recording of such a server was to be had.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.core.events import Spoken, ToolCallEnded, ToolCallStarted
from caal_node.room.hooks import Hooks
from tests.stand_ins.conversation import Conversation, conversation
from tests.stand_ins.stand_in_model import Raw, Reply, StandInModel, Vanish, Wait


def line(api: str, *, last: bool = False, **said: Any) -> Raw:
    """One piece of the stream. `said`: content, tool_calls, tool_results, task_status."""
    status = said.pop("task_status", None)
    task = {"task_id": "t1", "task_status": status} if status else {}
    if api == "ollama":
        message = {"role": "assistant", "content": "", **said}
        body = {"model": "stand-in", "message": message, "done": last, **task}
        return Raw(json.dumps(body).encode() + b"\n")
    choice = {"index": 0, "delta": said, "finish_reason": "stop" if last else None}
    return Raw(f"data: {json.dumps({'choices': [choice], **task})}\n\n".encode())


def made(api: str, name: str, **arguments: Any) -> dict[str, Any]:
    if api == "ollama":
        return {"function": {"name": name, "arguments": arguments}}
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"index": 0, "id": "c1", "type": "function", "function": function}


def run_by_the_server(api: str, *more: Any, **result: Any) -> Reply:
    return [
        line(api, tool_calls=[made(api, "get_weather", city="Paris")], task_status="working"),
        line(api, last=True, task_status="working"),
        *more,
        line(api, tool_results=[{"tool_name": "get_weather", "content": "21 C", **result}]),
        line(api, content="It is sunny."),
        line(api, last=True, task_status="completed"),
        *([Raw(b"data: [DONE]\n\n")] if api == "openai" else []),
        Vanish(),
    ]


STREAMED = {"CAAL_DETECTION": "streamed"}


def told(talk: Conversation) -> list[str]:
    kinds = (ToolCallStarted, ToolCallEnded, Spoken)
    return [event.type for event in talk.events if isinstance(event, kinds)]


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_its_calls_are_told_and_never_run_here(api: str) -> None:
    async with (
        StandInModel(run_by_the_server(api)) as server,
        conversation(server, api=api, env=STREAMED) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "It is sunny."
        assert talk.tier.calls == []
        assert told(talk) == ["tool_call_started", "tool_call_ended", "speech"]
        (started,) = talk.events_of(ToolCallStarted)
        assert (started.tool, started.tier, started.source) == (
            "get_weather",
            "mcp",
            "model server",
        )
        assert started.arguments == {"city": "Paris"}
        (ended,) = talk.events_of(ToolCallEnded)
        assert (ended.call_id, ended.outcome) == (started.call_id, "ok")


async def test_its_failure_is_told() -> None:
    async with (
        StandInModel(run_by_the_server("ollama", error="no such city")) as server,
        conversation(server, env=STREAMED) as talk,
    ):
        await talk.ask("weather in Paris?")
        assert [e.outcome for e in talk.events_of(ToolCallEnded)] == ["error"]


async def test_a_call_is_told_while_the_server_runs_it() -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    class Watched(CaalAgent):
        def __init__(self, **options: Any) -> None:
            super().__init__(hooks=Hooks(on_tool_call=lambda *_: begun.set()), **options)

    async with (
        StandInModel(run_by_the_server("ollama", Wait(done))) as server,
        conversation(server, agent=Watched, env=STREAMED) as talk,
    ):
        turn = asyncio.create_task(talk.ask("weather in Paris?"))
        async with asyncio.timeout(10):
            await begun.wait()
        assert not talk.events_of(ToolCallEnded)
        done.set()
        assert await turn == "It is sunny."


async def test_a_stream_that_breaks_off_leaves_no_call_open_and_asks_nothing_twice() -> None:
    broken = [*run_by_the_server("ollama")[:2], Vanish()]
    async with (
        StandInModel(broken) as server,
        conversation(server, env=STREAMED) as talk,
    ):
        await talk.ask("weather in Paris?")
        assert [e.outcome for e in talk.events_of(ToolCallEnded)] == ["cancelled"]
        assert len(server.chats) == 1


async def test_such_a_server_is_asked_in_a_stream_from_then_on() -> None:
    whole = {
        "model": "stand-in",
        "message": {
            "role": "assistant",
            "content": "It is sunny.",
            "tool_calls": [made("ollama", "get_weather", city="Paris")],
            "tool_results": [{"tool_name": "get_weather", "content": "21 C"}],
        },
        "task_status": "completed",
        "done": True,
    }
    async with (
        StandInModel(
            [Raw(json.dumps(whole).encode()), Vanish()], run_by_the_server("ollama")
        ) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "It is sunny."
        assert await talk.ask("and again?") == "It is sunny."
        assert [asked.json["stream"] for asked in server.chats] == [False, True]
        assert len(talk.events_of(ToolCallEnded)) == 2
        assert talk.tier.calls == []
