"""What the owner's rules cost a call, with every one of them on.

Run: `python -m tests.bench.call_rules`. A call of an MCP tool that writes goes through all of the
standard list behind a conversation of thirty items: a policy of 100 rules, ten limits, a dry run
that is off, and the question of who has asked for it. The tool itself does nothing. Beside it, the
same call with no rule.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any, Final

from livekit.agents import RunContext, llm
from livekit.agents.voice import SpeechHandle

from caal_node.agent import CaalAgent
from caal_node.core.tool_spec import ToolSpec
from caal_node.policy.places import Places
from caal_node.policy.reader import read_policy
from caal_node.testing import AgentConversation, ScriptedModel, ScriptedToolSource, plain_settings
from caal_node.tools.call_middleware import CallMiddleware, ToolCallRequest, run_through
from caal_node.tools.caller_of_call import caller_of

CALLS: Final = 900
"""Fewer than the limits allow in an hour."""
SAID: Final = "set the light in the kitchen to forty percent"
RESULT: Final = '{"room":"kitchen","lights":["ceiling","table"],"state":"on","note":"all is well"}'
SPEC: Final = ToolSpec(
    *("mcp", "home", "set_light", "home__set_light", "Set a light."),
    {
        "type": "object",
        "properties": {"room": {"type": "string"}, "percent": {"type": "integer"}},
    },
)


def rules() -> dict[str, Any]:
    """The table `[tools]`: none of its rules fits the call, so each is looked at."""
    return {
        "rules": [
            {"tools": [f"tool_{n}_*"], "participants": [f"guest-{n}"], "then": "deny"}
            for n in range(100)
        ],
        "limits": [
            {"tools": [f"home__*{'?' * n}*"], "per_hour": 1_000, "each": "tool"} for n in range(10)
        ],
    }


async def measured(talk: AgentConversation, agent: CaalAgent, rules: list[CallMiddleware]) -> float:
    """The median milliseconds of a call through `rules`."""
    (entry,) = [entry for entry in agent.table if entry.spec.name == "set_light"]
    arguments = {"room": "kitchen", "percent": 40}

    async def tool() -> Any:
        return {"ok": True}

    took: list[float] = []
    for n in range(CALLS):
        call = llm.FunctionCall(call_id=f"c{n}", name=entry.exposed, arguments="{}")
        context: RunContext[Any] = RunContext(
            session=talk.session, speech_handle=SpeechHandle.create(), function_call=call
        )
        began = time.perf_counter()
        request = ToolCallRequest(entry, f"c{n}", arguments, caller_of(context), context)
        await run_through(rules, request, tool)
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    print(f"  99 of 100 calls at most {took[int(CALLS * 0.99)]:.3f} ms")
    return statistics.median(took)


async def main() -> None:
    policy = read_policy(rules(), Places("caal.toml", ""))
    assert not policy.faults, policy.faults
    settings = plain_settings().model_copy(update={"tools": policy})

    async def answer(*_: object) -> Any:
        return {"ok": True}

    source = ScriptedToolSource(SPEC, answer=answer)
    agent = CaalAgent(settings=settings, tiers={"mcp": source})
    async with AgentConversation(agent, ScriptedModel("It is on.")) as talk:
        await talk.say(SAID)
        history = talk.session.history
        for n in range(9):
            history.add_message(role="user", content=SAID)
            name = {"name": "home__set_light", "call_id": f"old-{n}"}
            history.items.append(llm.FunctionCall(**name, arguments='{"room":"kitchen"}'))
            history.items.append(llm.FunctionCallOutput(**name, output=RESULT, is_error=False))
        history.add_message(role="user", content=SAID)
        for what, each in (("no rule", []), ("every rule", agent.middleware)):
            print(f"{what}:")
            print(f"  median {await measured(talk, agent, each):.3f} ms")


if __name__ == "__main__":
    asyncio.run(main())
