"""Plays one agent, with the same replies of the model, on LiveKit's own Agent and on CaalAgent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from livekit.agents import Agent, AgentSession, TurnHandlingOptions, llm

from caal_node.agent import CaalAgent
from caal_node.testing import ScriptedCall, ScriptedModel, ScriptedReply, plain_settings

Make = Callable[..., Agent]
"""It makes the agent on the base class and with the options that it is given."""
OURS: dict[str, Any] = {
    "settings": plain_settings(CAAL_CHECKS="facts,hedges,needless_calls,references"),
    "tiers": {},
    "warm": False,
}
CALL = [ScriptedCall("act")]


@dataclass(frozen=True)
class Played:
    """What came of a conversation."""

    history: list[tuple[Any, ...]]
    model: ScriptedModel

    @property
    def results(self) -> list[tuple[str, bool]]:
        """Each call's result as the model reads it, and whether it is an error."""
        return [(item[2], item[3]) for item in self.history if item[0] == "result"]


def shown(item: llm.ChatItem) -> tuple[Any, ...] | None:
    match item:
        case llm.ChatMessage() if item.role in ("user", "assistant"):
            return item.role, item.text_content
        case llm.FunctionCall():
            return "call", item.name, item.arguments
        case llm.FunctionCallOutput():
            # What LiveKit quotes of a running call has its ids and times.
            output = re.sub(r'"(id|call_id|created_at)":("[^"]*"|[\d.]+)', "", item.output)
            return "result", item.name, output, item.is_error, item.reply_required
        case llm.AgentHandoff() if item.new_agent_id not in ("default_agent", "caal_agent"):
            return "handoff", item.new_agent_id
        case _:
            return None


async def play(
    base: type[Agent],
    make: Make,
    replies: Sequence[ScriptedReply],
    words: Sequence[str] = ("go",),
    **options: Any,
) -> Played:
    model = ScriptedModel(*replies)
    session: AgentSession[Any] = AgentSession(
        llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None), **options
    )
    agent = make(base, **(OURS if base is CaalAgent else {}))
    async with asyncio.timeout(20), session:
        await session.start(agent)
        for said in words:
            await session.run(user_input=said)
        await session.wait_for_idle()
        items = [item for each in session.history.items if (item := shown(each))]
    return Played(items, model)


async def same(
    make: Make, *replies: ScriptedReply, words: Sequence[str] = ("go",), **options: Any
) -> Played:
    """Play the conversation on both bases, and hold the two histories to each other.

    `options` are those of the session.
    """
    plain = await play(Agent, make, replies, words, **options)
    ours = await play(CaalAgent, make, replies, words, **options)
    assert ours.history == plain.history
    names = [[tool["function"]["name"] for tool in r.tools] for r in ours.model.requests]
    assert names == [[t["function"]["name"] for t in r.tools] for r in plain.model.requests]
    return ours


def having(*tools: Any) -> Make:
    return lambda base, **options: base(instructions="Help.", tools=[*tools], **options)
