"""Which tools on demand a model is shown is an event, once, and a part of the turn's trace."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console

from caal_node.agent import CaalAgent
from caal_node.cli.output import TerminalTranscript
from caal_node.cli.trace_pictures import picture_of, print_pictures
from caal_node.core.events import ToolsTold, from_json, to_json
from caal_node.core.tool_spec import ToolSpec
from caal_node.telemetry.turn_times import TurnTimes, read_trace, turns_of
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    ScriptedToolSource,
    plain_settings,
)
from tests.stand_ins import fifty_tools
from tests.stand_ins.recorded_spans import kept_provider

WORDS: Final = "turn off the light in the kitchen, it is freezing in here"
SEARCH: Final = ScriptedCall("mcp_discover", {"patterns": ["thermostat"]})
CALL: Final = ScriptedCall(
    "use_tool", {"name": "home__set_thermostat", "arguments": {"room": "kitchen", "celsius": 21}}
)
OPERATE: Final = Path(__file__).parents[3] / "docs" / "operate.md"
FOUND: Final = (
    "home__set_thermostat",
    "home__get_current_weather",
    "home__get_forecast",
    "home__set_light",
)
TURN_S: Final = 20.0


async def done(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    return {"done": True}


@asynccontextmanager
async def talk(*replies: ScriptedReply, **values: str) -> AsyncGenerator[AgentConversation]:
    specs = [
        ToolSpec("mcp", "home", each.name, f"home__{each.name}", each.description or "", schema)
        for each in fifty_tools.tools()
        if (schema := each.input_schema)
    ]
    source = ScriptedToolSource(*specs, answer=done)
    agent = CaalAgent(settings=plain_settings(**values), tiers={"mcp": source})
    async with AgentConversation(agent, ScriptedModel(*replies)) as conversation:
        yield conversation


async def test_tools_shown_with_words_are_an_event_once_behind_these_words() -> None:
    async with talk([CALL], "It is set.", "Still set.", "You are welcome.") as conversation:
        await conversation.say(WORDS)
        first, second = conversation.events[:2]
        assert first.type == "user"
        assert isinstance(second, ToolsTold)
        assert (second.by, second.tools) == ("words", ("home__set_light",))
        assert 20 < second.tokens < 200
        async with asyncio.timeout(TURN_S):  # the same words are answered once more
            await conversation.agent.session.generate_reply()
        await conversation.say("thank you")
        assert len(conversation.events_of(ToolsTold)) == 1


async def test_what_a_search_has_found_is_an_event_before_its_call_ends() -> None:
    async with talk([SEARCH], "There is one.") as conversation:
        await conversation.say(WORDS)
        kinds = [event.type for event in conversation.events]
        assert kinds[2:5] == ["tool_call_started", "tools_told", "tool_call_ended"]
        _, found = conversation.events_of(ToolsTold)
        assert (found.by, found.tools) == ("search", FOUND)
        assert 100 < found.tokens < 500


async def test_a_search_that_finds_nothing_is_no_event(tmp_path: Path) -> None:
    nothing = ScriptedCall("mcp_discover", {"patterns": ["xylophone"]})
    (turn,), events = await traced(tmp_path, [nothing], "There is none.")
    assert [event.by for event in events] == ["words"]
    assert [call.found for call in turn.calls] == [()]
    assert "mcp_discover found: no tool" in drawn(turn)


async def traced(folder: Path, *replies: ScriptedReply) -> tuple[list[TurnTimes], list[ToolsTold]]:
    file = folder / "trace.jsonl"
    with kept_provider():
        async with talk(*replies, CAAL_TRACE=str(file)) as conversation:
            await conversation.say(WORDS)
            events = conversation.events_of(ToolsTold)
    return turns_of(read_trace(file)), events


def drawn(turn: TurnTimes) -> str:
    written = io.StringIO()
    print_pictures(Console(file=written, width=100), [picture_of(turn)])
    return written.getvalue()


async def test_the_trace_shows_what_was_shown_and_found_and_the_example_in_the_docs_is_such_a_turn(
    tmp_path: Path,
) -> None:
    (turn,), _ = await traced(tmp_path, [SEARCH], [CALL], "I have set it to 21 degrees.")
    assert turn.told == ("home__set_light",)
    assert [(call.tool, call.found) for call in turn.calls] == [
        ("mcp_discover", FOUND),
        ("home__set_thermostat", None),
    ]
    assert turn.as_json()["told"] == ["home__set_light"]
    shown = drawn(turn)
    documented = re.findall(r"```text\n(Turn .*?)```", OPERATE.read_text("utf-8"), re.DOTALL)
    assert without_times(shown) == without_times(documented[0]), shown


def without_times(picture: str) -> list[str]:
    """The words of a picture's lines; the axis has none."""
    lines = (re.sub(r"-?[\d.]+ s\b|[^\S\n]*[░█│]+", "", line) for line in picture.splitlines())
    return [" ".join(line.split()) for line in lines if re.search("[a-z_]{2}", line)]


@pytest.mark.parametrize("by", ["words", "search"])
def test_the_event_is_read_again_and_printed(by: Any) -> None:
    event = ToolsTold(by, ("home__set_light", "home__move_blinds"), 120)
    assert from_json(to_json(event)) == event
    written = io.StringIO()
    TerminalTranscript(Console(file=written, width=80))(event)
    word = "shown" if by == "words" else "found"
    assert written.getvalue().split() == [word, "home__set_light,", "home__move_blinds"]
