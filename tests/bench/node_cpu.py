"""What the node itself costs: CPU time of this process per turn, with fifty tools.

Run: `python -m tests.bench.node_cpu [--turns 12] [--rounds 3]`; with `--turns 500 --rounds 1` the
first and last tenth show how it grows with the conversation. Every turn calls an instant tool,
so it is two requests to the model, which is a process of its own. No room, no speech. Four agents
hold the same conversation:

- CaalAgent on our LLM;
- LiveKit's plain Agent on our LLM, which takes away the node: context, table, pipeline, presence;
- a plain Agent on LiveKit's openai plugin, which is what one would have without us;
- a plain Agent whose `llm_node` gives the reply without asking, which leaves LiveKit alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from livekit.agents import Agent, AgentSession, ModelSettings, TurnHandlingOptions, llm
from livekit.agents import function_tool as livekit_tool
from livekit.plugins import openai

from caal_node import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.llm import LLM
from tests.bench import obedient_model
from tests.bench.obedient_model import WORDS, told
from tests.bench.table import print_table
from tests.stand_ins import fifty_tools
from tests.stand_ins.conversation import NOWHERE, FakeTier

TURN_S: Final = 60.0
UNCOUNTED: Final = 2
"""First turns import, connect and fill caches."""
RESULT: Final[dict[str, Any]] = json.loads(fifty_tools.result("list_events"))
CALL: Final = ("list_events", {"day": "2026-03-02"})


def specs() -> list[ToolSpec]:
    return [
        ToolSpec("mcp", "fifty", t.name, t.name, t.description or "", t.input_schema)
        for t in fifty_tools.tools()
    ]


def plain_tools() -> list[llm.Tool | llm.Toolset]:
    """The same fifty as LiveKit's own function tools."""

    async def run(raw_arguments: dict[str, object]) -> str:
        return json.dumps(RESULT)

    schemas = [
        {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
        for spec in specs()
    ]
    return [livekit_tool(run, raw_schema=schema) for schema in schemas]


class WithoutAModel(Agent):
    """Decides by itself what the obedient model would have said."""

    async def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
    ) -> AsyncGenerator[llm.ChatChunk | str]:
        if isinstance(chat_ctx.items[-1], llm.FunctionCallOutput):
            yield WORDS
            return
        name, arguments = CALL
        call = llm.FunctionToolCall(
            name=name, arguments=json.dumps(arguments), call_id=f"call_{len(chat_ctx.items)}"
        )
        yield llm.ChatChunk(id="chunk", delta=llm.ChoiceDelta(role="assistant", tool_calls=[call]))


async def _answer(spec: ToolSpec, arguments: Any) -> Any:
    return RESULT


def caal() -> Agent:
    settings = load_settings({"CAAL_CUES": "off", "CAAL_NUM_CTX": "32768"}, NOWHERE)
    return CaalAgent(settings=settings, tiers={"mcp": FakeTier(*specs(), answer=_answer)})


def plain() -> Agent:
    return Agent(instructions=read("system.md"), tools=plain_tools())


def without_a_model() -> Agent:
    return WithoutAModel(instructions=read("system.md"), tools=plain_tools())


def our_llm(url: str) -> llm.LLM[Any]:
    return LLM("stand-in", "ollama", url, native_tools=True)


def livekits_llm(url: str) -> llm.LLM[Any]:
    return openai.LLM(model="stand-in", base_url=f"{url}/v1", api_key="none")


AGENTS: Final[dict[str, tuple[Callable[[], Agent], Callable[[str], llm.LLM[Any]]]]] = {
    "CaalAgent, our LLM": (caal, our_llm),
    "plain Agent, our LLM": (plain, our_llm),
    "plain Agent, LiveKit's openai plugin": (plain, livekits_llm),
    "plain Agent, no model": (without_a_model, our_llm),
}


async def measured(agent: Agent, model: llm.LLM[Any], turns: int) -> list[float]:
    """CPU milliseconds of each turn; all threads of this process."""
    session: AgentSession[Any] = AgentSession(
        llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
    )
    await session.start(agent)
    if isinstance(agent, CaalAgent):
        await agent.warmed()
    name, arguments = CALL
    spent: list[float] = []
    try:
        for _ in range(UNCOUNTED + turns):
            gc.collect()  # not in the middle of somebody's turn
            began = time.process_time()
            async with asyncio.timeout(TURN_S):
                await session.run(user_input=told(name, **arguments))
            spent.append((time.process_time() - began) * 1000)
    finally:
        await session.aclose()
        await model.aclose()
    return spent[UNCOUNTED:]


async def bench(turns: int, rounds: int) -> None:
    spent: dict[str, list[float]] = {name: [] for name in AGENTS}
    early: dict[str, list[float]] = {name: [] for name in AGENTS}
    late: dict[str, list[float]] = {name: [] for name in AGENTS}
    tenth = max(1, turns // 10)
    async with obedient_model.served() as url:
        for _ in range(rounds):  # in turn, so that a busy moment of the machine meets all
            for name, (make, make_model) in AGENTS.items():
                each = await measured(make(), make_model(url), turns)
                spent[name] += each
                early[name] += each[:tenth]
                late[name] += each[-tenth:]
    rows: list[tuple[object, ...]] = [
        (
            *(name, statistics.median(each), statistics.fmean(each), max(each)),
            *(statistics.median(early[name]), statistics.median(late[name])),
        )
        for name, each in spent.items()
    ]
    whole, our_model, plugin, livekit = (statistics.median(each) for each in spent.values())
    rows.append(("the node alone (first less second)", whole - our_model, *[""] * 4))
    rows.append(("all that is ours (first less fourth)", whole - livekit, *[""] * 4))
    rows.append(("LiveKit's openai plugin (third less fourth)", plugin - livekit, *[""] * 4))
    title = f"CPU ms a turn (two requests, one tool call), 50 tools, {rounds} x {turns} turns"
    print_table(title, ("agent", "median", "mean", "worst", "first tenth", "last tenth"), rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=12)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    asyncio.run(bench(given.turns, given.rounds))


if __name__ == "__main__":
    main()
