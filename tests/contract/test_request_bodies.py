"""A request's body is JSON that any server can read, whatever stands in the history."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.stand_ins.conversation import conversation
from tests.stand_ins.stand_in_model import Asked, Raw, StandInModel


def strictly(asked: Asked) -> Any:
    """The body, read as the standard has it: UTF-8, and no NaN or Infinity."""

    def refused(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(asked.body.decode("utf-8", errors="strict"), parse_constant=refused)


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_characters_arrive_as_they_were_said(api: str) -> None:
    words = 'é "quoted" \\ \n ☕ 𝄞 \x00 \u2028'
    async with StandInModel(["Fine."]) as server, conversation(server, api=api) as talk:
        assert await talk.ask(words) == "Fine."
        assert strictly(server.chats[0])["messages"][-1]["content"] == words


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_half_a_surrogate_pair_costs_no_turn(api: str) -> None:
    async with StandInModel(["Fine."]) as server, conversation(server, api=api) as talk:
        assert await talk.ask("half \ud83d of a pair") == "Fine."
        said = strictly(server.chats[0])["messages"][-1]["content"]
        assert (said[:5], said[-10:]) == ("half ", " of a pair")


async def test_a_number_that_json_does_not_have_costs_no_turn() -> None:
    function = '{"name": "get_weather", "arguments": {"city": "Paris", "days": 1e999}}'
    message = f'{{"role": "assistant", "content": "", "tool_calls": [{{"function": {function}}}]}}'
    call = Raw(f'{{"model": "stand-in", "message": {message}, "done": true}}\n'.encode())
    async with StandInModel([call], ["Sunny."]) as server, conversation(server) as talk:
        assert await talk.ask("weather?") == "Sunny."
        assert len([strictly(asked) for asked in server.chats]) == 2
