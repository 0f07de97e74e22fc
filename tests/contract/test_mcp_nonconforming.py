"""A server that repeats its key and takes JSON and the protocol loosely: its answers come, and its
key does not."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mcp_bridge import (
    Accepted,
    Answer,
    BridgeEvent,
    CallProgressed,
    Question,
    ServerConfig,
    ServerError,
    ServerManager,
)
from mcp_bridge.core.errors import BridgeError

LOOSE = Path(__file__).parents[1] / "stand_ins" / "nonconforming_mcp_server.py"
KEY = "sk-very-secret-very-secret-123456"


class Host:
    """What a room would show and say."""

    def __init__(self) -> None:
        self.events: list[BridgeEvent] = []
        self.questions: list[Question] = []

    async def asked(self, question: Question) -> Answer:
        self.questions.append(question)
        return Accepted({"why": "because"})


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
async def loose(host: Host) -> AsyncGenerator[ServerManager]:
    config = ServerConfig(
        "loose",
        command=sys.executable,
        args=(str(LOOSE),),
        env={"API_KEY": KEY},
        connect_timeout_s=60,
    )
    async with ServerManager([config], on_event=host.events.append, elicitor=host.asked) as manager:
        yield manager


@pytest.mark.parametrize(
    ("tool", "said"), [("half_an_emoji", "cut \ufffd"), ("no_utf8", "caf\ufffd")]
)
async def test_an_answer_that_is_no_whole_unicode_is_read_all_the_same(
    loose: ServerManager, tool: str, said: str
) -> None:
    assert (await loose.call_tool(f"loose__{tool}")).value == said


async def test_an_answer_that_cannot_be_read_is_an_error_at_once(loose: ServerManager) -> None:
    with pytest.raises(ServerError, match="its answer is not JSON that can be read"):
        await loose.call_tool("loose__endless_number")


async def test_the_key_is_in_no_description_and_a_schema_that_holds_it_is_left_out(
    loose: ServerManager,
) -> None:
    found = await loose.list_tools()
    assert {tool.description for tool in found} == {"Asks with ***.", "Says."}
    assert KEY not in repr(found)
    (status,) = loose.servers
    assert status.notes[-1] == (
        "the schema of secret schema holds a secret that the server was given; left out"
    )


async def test_tools_of_an_odd_form_cost_no_others(loose: ServerManager) -> None:
    found = {tool.name: tool.input_schema for tool in await loose.list_tools()}
    assert found["loose__no_schema"]["type"] == found["loose__odd_icon"]["type"] == "object"
    assert "loose__ask" in found
    (status,) = loose.servers
    assert status.notes[0] == "a tool without a name is no tool as the protocol has them; left out"


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        ("nulls", "done"),
        ("bare_text", "done"),
        ("list", ["a", "b"]),
        ("no_schema", "done with ***"),
        ("odd_icon", "done with ***"),
    ],
)
async def test_an_answer_that_takes_the_protocol_loosely_is_read_all_the_same(
    loose: ServerManager, tool: str, value: object
) -> None:
    assert (await loose.call_tool(f"loose__{tool}")).value == value


async def test_the_key_is_in_no_progress_and_no_question(loose: ServerManager, host: Host) -> None:
    await loose.call_tool("loose__tell_progress")
    (told,) = [event for event in host.events if isinstance(event, CallProgressed)]
    assert told.message == "GET /?key=***"
    assert (await loose.call_tool("loose__ask")).value == "done with ***"
    (question,) = host.questions
    assert question.message == "Is *** right?"
    assert question.fields[0].title == "***"


async def test_last_words_are_a_plain_line(loose: ServerManager) -> None:
    with pytest.raises(BridgeError, match=r"exited with code 1: red \*\*\*;"):
        await loose.call_tool("loose__exit")
