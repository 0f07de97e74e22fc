"""What the `ollama` package loses of a chat: the reason why the backend posts for itself.

Should one of these fail after an update, the package has learned it, and the backend could use it.
"""

from __future__ import annotations

from typing import Any

import ollama
import pytest

from tests.stand_ins.stand_in_model import Call, StandInModel

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "add_event",
        "description": "Add",
        "parameters": {
            "type": "object",
            "required": ["when"],
            "properties": {
                "when": {
                    "type": "object",
                    "description": "Day and hour",
                    "properties": {"day": {"type": "string"}},
                    "required": ["day"],
                },
                "room": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "big"},
            },
        },
    },
}


@pytest.fixture
async def sent_and_read() -> tuple[dict[str, Any], Any]:
    """The request as the package sent it, and the reply as it was read."""
    async with StandInModel([Call("add_event", {"when": {"day": "x"}}, id="call_7")]) as server:
        client: Any = ollama.AsyncClient(host=server.url)
        call: dict[str, Any] = {"id": "call_1", "function": {"name": "add_event", "arguments": {}}}
        reply = await client.chat(
            model=server.model,
            messages=[
                {"role": "user", "content": "Add it."},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "content": "ok", "tool_name": "add_event", "tool_call_id": "1"},
            ],
            tools=[TOOL],
        )
        await client._client.aclose()  # the package has no way to close it
    return server.chats[0].json, reply


async def test_the_ids_of_calls_are_lost_both_ways(
    sent_and_read: tuple[dict[str, Any], Any],
) -> None:
    body, reply = sent_and_read
    call = body["messages"][1]["tool_calls"][0]
    assert "id" not in call
    assert "tool_call_id" not in body["messages"][2]
    assert body["messages"][2]["tool_name"] == "add_event"
    assert reply.message.tool_calls[0].function.name == "add_event"
    assert "call_7" not in repr(reply)


async def test_nested_schemas_are_flattened(sent_and_read: tuple[dict[str, Any], Any]) -> None:
    body, _ = sent_and_read
    properties = body["tools"][0]["function"]["parameters"]["properties"]
    assert properties["when"] == {"type": "object", "description": "Day and hour"}
    assert "anyOf" not in properties["room"]
    assert "default" not in properties["room"]
