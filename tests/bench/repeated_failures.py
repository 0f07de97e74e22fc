"""How often a real small model repeats a call that fails, with the built-in limit and without.

Run: `python -m tests.bench.repeated_failures [--limit N] [--model WEIGHTS] [--rounds N] [--own]`.
Every tool fails with the same error each time: as an MCP tool's error, with a sentence to say, or
with `--own` as a `ToolError` of the agent's own tool, which LiveKit gives to the model as it is.
A turn each: the first N of the measured requests that want one call, with the tools of these alone.
`same` counts calls that repeat, tool and arguments, one that has failed twice in the turn already;
`ran` those of them that reached the tool. `told` counts turns in which the person heard that it did
not work.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from typing import Any

from livekit.agents import ToolError, function_tool
from livekit.agents.llm import RawFunctionTool

from caal_node.agent import CaalAgent
from caal_node.core.errors import ToolBroke
from caal_node.core.events import TurnEnded
from caal_node.core.tool_spec import ToolSpec
from caal_node.factories import session_llm
from caal_node.testing import AgentConversation, ScriptedToolSource, plain_settings
from caal_node.tools.middleware.limits import FAILURES_MAX, CallLimits
from caal_node.tools.pipeline import Gates
from caal_node.tools.source import Arguments
from tests.bench.spoken_requests import Requests, load
from tests.bench.table import print_table

ERROR = "The device did not answer (code 503). Try again."
COLUMNS = ("limits", "turns", "calls", "same", "ran", "requests", "told", "seconds")


def specs_of(requests: Requests) -> list[ToolSpec]:
    functions = [tool["function"] for tool in requests.tools]
    return [
        ToolSpec(
            "mcp",
            "house",
            each["name"],
            each["name"],
            each["description"],
            each["parameters"],
            requests.examples[each["name"]],
        )
        for each in functions
    ]


async def fail(spec: ToolSpec, arguments: Arguments) -> Any:
    raise ToolBroke(ERROR)


def own_tools(requests: Requests) -> list[RawFunctionTool[..., Any]]:
    async def broken(raw_arguments: dict[str, object]) -> str:
        raise ToolError(ERROR)

    return [function_tool(broken, raw_schema=dict(tool["function"])) for tool in requests.tools]


async def measure(requests: Requests, limits: list[CallLimits], given: Any) -> tuple[object, ...]:
    settings = plain_settings(
        CAAL_API="embedded", CAAL_MODEL=given.model, CAAL_MAX_TOOL_ROUNDS=str(given.rounds)
    )
    model = await session_llm(settings)
    calls = same = ran = asked = told = 0
    seconds = 0.0
    for request in requests.requests:
        source = ScriptedToolSource(*specs_of(requests), answer=fail)
        agent = CaalAgent(
            settings=settings,
            tools=own_tools(requests) if given.own else [],
            tiers={} if given.own else {"mcp": source},
            gates=Gates(middleware=limits),
        )
        async with AgentConversation(agent, model, turn_s=600) as talk:
            await agent.warmed()
            began = time.perf_counter()
            turn = await talk.say(request.say)
            seconds += time.perf_counter() - began
        seen: Counter[str] = Counter()
        for call in turn.calls:
            key = f"{call.tool} {json.dumps(call.arguments, sort_keys=True)}"
            if seen[key] >= FAILURES_MAX:
                same += 1
                ran += call.outcome == "error"
            seen[key] += 1
        calls += len(turn.calls)
        asked += sum(each.requests for each in turn.events if isinstance(each, TurnEnded))
        told += any(word in turn.text.lower() for word in ("sorry", "not work", "fail", "error"))
        print(f"  {request.say!r}: {len(turn.calls)} calls; {turn.text!r}", flush=True)
    await model.aclose()
    name = "on" if limits else "off"
    return name, len(requests.requests), calls, same, ran, asked, told, seconds


async def run(given: argparse.Namespace) -> None:
    measured = load("measured")
    one = tuple(each for each in measured.requests if len(each.calls) == 1)
    chosen = Requests(measured.tools, measured.examples, one).first(given.limit)
    wanted = {name for each in chosen.requests for name, _ in each.calls}
    tools = tuple(tool for tool in measured.tools if tool["function"]["name"] in wanted)
    requests = Requests(tools, measured.examples, chosen.requests)
    rows = [await measure(requests, limits, given) for limits in ([], [CallLimits()])]
    print_table(f"tools that always fail, {given.model}", COLUMNS, rows)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b-instruct-q4_k_m")
    parser.add_argument("--limit", type=int, default=10, help="requests, spread over all kinds")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of tools in a turn at most")
    parser.add_argument("--own", action="store_true", help="the agent's own tools fail")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(run(options()))
