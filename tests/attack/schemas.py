"""Schemas and patterns by a server: in what it lists, at each call, and for what it answers."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.context.tool_data import ToolDataCache
from caal_node.context.window import FRONT_TOKENS_MAX
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.sources.mcp import McpToolSource
from caal_node.tools.table import ToolTable
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.conversation import NOWHERE
from tests.stand_ins.stand_in_model import Call, StandInModel

HOSTILE: Final = Path(__file__).parents[1] / "stand_ins" / "hostile_mcp_server.py"
Tool = Mapping[str, Any]
EVIL: Final = "^(a+)+$"
LONG: Final = "a" * 5_000 + "!"
GOOD: Final[Tool] = {"name": "good", "description": "Is well.", "inputSchema": {"type": "object"}}


def laughs(depth: int = 60) -> dict[str, Any]:
    """Each definition names the next one twice."""
    twice = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2, "type": "object"}
        for n in range(depth)
    }
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": {**twice, f"d{depth}": {}}}


def nested(levels: int, keyword: str = "not") -> Any:
    value: Any = {"type": "object"}
    for _ in range(levels):
        value = {keyword: value}
    return value


def about(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"q": schema}}


CASES: Final[Mapping[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "evil pattern": (about(pattern=EVIL), {"q": LONG}),
    "doubling": (laughs(), {}),
    "circle": ({"type": "object", "allOf": [{"$ref": "#"}, {"$ref": "#"}]}, {}),
    "5 kB pattern": (about(pattern="(a?)" * 1_250), {"q": "a" * 1_250}),
    "30 kB pattern": (about(pattern="(a|b)*a" + "(a|b)" * 5_990), {"q": "ab" * 3_000}),
    "4,000 types": (about(type=[f"type{n}" for n in range(4_000)]), {"q": 1}),
    "unique items": (about(uniqueItems=True), {"q": [{"n": n} for n in range(3_000)]}),
    "patterns of names": (
        {"type": "object", "patternProperties": {f"^x{n}(a|b)*$": {} for n in range(1_500)}},
        {f"y{n}": n for n in range(100)},
    ),
    "repeated too often": (about(pattern="a{4294967295}"), {"q": "a"}),
    "multiples": (about(multipleOf=1e-308), {"q": 1e308}),
    "giant multiples": (about(multipleOf=0.7), {"q": 10**400}),
    "20,000 choices": (about(enum=[*range(10_000)]), {"q": -1}),
    "deep constant": (about(const=nested(25, "a")), {"q": nested(25, "a")}),
    "required": ({"type": "object", "required": [f"p{n}" for n in range(6_000)]}, {"q": 1}),
    "many faults": (
        {"type": "object", "additionalProperties": {"type": "string"}},
        {f"p{n}": n for n in range(5_000)},
    ),
    "long names": ({"type": "object", "properties": {"p" * 60_000: {"pattern": EVIL}}}, {"q": 1}),
}
"""Schemas within all caps, each with a value for it."""


@asynccontextmanager
async def server(*tools: Tool, tool_tokens: int = 10**9) -> AsyncGenerator[McpToolSource]:
    """The tier of a room with a real server that lists these tools."""
    with tempfile.TemporaryDirectory() as name:
        listed, config = Path(name) / "tools.json", Path(name) / "mcp_servers.json"
        listed.write_text(json.dumps(tools), encoding="utf-8")
        entry = {"command": sys.executable, "args": ["-I", "-S", str(HOSTILE), str(listed)]}
        config.write_text(json.dumps({"bad": entry}), encoding="utf-8")
        config.chmod(0o600)
        source = McpToolSource(config, call_timeout_s=4.0, tool_tokens=tool_tokens)
        try:
            yield source
        finally:
            await source.aclose()


async def listed(source: McpToolSource) -> Sequence[ToolSpec]:
    """The server's tools, however slow it is to start: a session goes on without after 3 s."""
    await source.discover()
    while source.servers[0].state == "starting":  # noqa: ASYNC110 - a server that fails tells nobody
        await asyncio.sleep(0.1)
    return (await source.discover()).specs


@asynccontextmanager
async def conversation(
    source: McpToolSource, model: StandInModel, *, native: bool = True
) -> AsyncGenerator[AgentConversation]:
    settings = load_settings({"CAAL_CUES": "off"}, NOWHERE)
    llm = LLM(model.model, "ollama", model.url, native_tools=native)
    agent = CaalAgent(settings=settings, tiers={"mcp": source}, warm=False)
    try:
        async with AgentConversation(agent, llm) as talk:
            yield talk
    finally:
        await llm.aclose()


def answering(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "text"}], "structuredContent": value}


async def _turn(probe: Probe, tool: Tool, arguments: dict[str, Any], said: str) -> str:
    script = [Call("bad__ask", arguments)], [said]
    async with (
        server(GOOD, tool) as source,
        StandInModel(*script) as model,
        conversation(source, model) as talk,
    ):
        return (await probe.watch(lambda: talk.say("What is new?"))).spoken


@attack("schemas", "a pattern without an end for its own answer", deadline_s=4)
async def pattern_of_an_answer(probe: Probe) -> Ending:
    tool = {
        **GOOD,
        "name": "ask",
        "outputSchema": {"type": "object", "properties": {"said": {"pattern": EVIL}}},
        "answer": answering({"said": LONG}),
    }
    heard = await _turn(probe, tool, {}, "It did not answer as it should.")
    return Ending(kept=heard == "It did not answer as it should.", heard=heard)


@attack("schemas", "definitions that double at each level, both ways", deadline_s=4)
async def doubling(probe: Probe) -> Ending:
    tool = {**GOOD, "name": "ask", "inputSchema": laughs(24), "outputSchema": laughs(24)}
    heard = await _turn(probe, {**tool, "answer": answering({"n": 5})}, {}, "Nothing is new.")
    return Ending(kept=heard == "Nothing is new.", heard=heard)


@attack("schemas", "keywords that ask for endless work at each call", deadline_s=4, limit_s=120)
async def arguments(probe: Probe) -> Ending:
    """Each is called with arguments; what cannot be judged reaches the tool's own server."""
    tools = [
        {**GOOD, "name": f"t{n}", "inputSchema": case[0]} for n, case in enumerate(CASES.values())
    ]
    ended: dict[str, str] = {}
    async with server(*tools, GOOD) as source:
        specs = await listed(source)
        table = ToolTable(specs)
        pipeline = Pipeline(ToolDataCache())

        async def call_all() -> None:
            for number, (name, (_, given)) in enumerate(CASES.items()):
                entry = table.resolve(f"bad__t{number}")
                try:
                    await pipeline.run(
                        entry, name, given, lambda e=entry, g=given: source.call(e.spec, g)
                    )
                    ended[name] = "was called"
                except Exception as error:
                    ended[name] = type(error).__name__

        await probe.watch(call_all)
    other = {
        name: end for name, end in ended.items() if end not in ("was called", "InvalidArguments")
    }
    refused = [name for name, end in ended.items() if end == "InvalidArguments"]
    return Ending(
        kept=len(ended) == len(CASES) and not other and refused == ["evil pattern"],
        heard=f"{len(refused)} of {len(ended)} were refused before the call: {refused} {other}",
    )


@attack("schemas", "the same keywords for its own answers", deadline_s=4, limit_s=120)
async def answers(probe: Probe) -> Ending:
    tools = [
        {**GOOD, "name": f"t{n}", "outputSchema": schema, "answer": answering(value)}
        for n, (schema, value) in enumerate(CASES.values())
    ]
    ended: dict[str, str] = {}
    async with server(*tools, GOOD) as source:
        specs = {spec.name: spec for spec in await listed(source)}

        async def call_all() -> None:
            for number, name in enumerate(CASES):
                try:
                    await source.call(specs[f"bad__t{number}"], {})
                    ended[name] = "answered"
                except Exception as error:
                    ended[name] = str(error)

        await probe.watch(call_all)
    wrong = [name for name, end in ended.items() if "does not fit its own output schema" in end]
    other = {n: end for n, end in ended.items() if end != "answered" and n not in wrong}
    return Ending(
        kept=len(ended) == len(CASES) and not other and "evil pattern" in wrong,
        heard=f"{len(wrong)} of {len(ended)} answers did not fit: {wrong} {other}",
    )


@attack("schemas", "one tool is unfit and takes no other away", deadline_s=6)
async def unfit(probe: Probe) -> Ending:
    tools: list[Tool] = [
        {**GOOD, "name": "deep", "inputSchema": nested(200)},
        {**GOOD, "name": "deeper", "outputSchema": nested(900), "inputSchema": nested(900)},
        {**GOOD, "name": "deep_answer", "outputSchema": nested(200)},
        {**GOOD, "name": "n" * 100_000},
        {**GOOD, "name": "words", "description": "w " * 500_000},
        {**GOOD, "name": "names", "inputSchema": about(properties={"p" * 100_000: {}})},
        {**GOOD, "name": "required", "inputSchema": {"required": [f"p{n}" for n in range(50_000)]}},
        {**GOOD, "name": "choices", "inputSchema": about(enum=[f"c{n}" for n in range(20_000)])},
        {**GOOD, "name": "odd", "inputSchema": {"properties": [], "required": True, "enum": 5}},
        {"name": ["none"], "inputSchema": 7},
    ]
    async with server(*tools, GOOD) as source:
        specs = await probe.watch(lambda: listed(source))
        names = [spec.name for spec in specs]
        (status,) = source.servers
    told = " ".join(status.notes)
    missing = [name for name in ("deep", "words", "required", "choices") if name not in told]
    return Ending(
        kept="bad__good" in names and status.state == "ready" and not missing,
        heard=f"{len(names)} offered; {status.error or status.notes}",
    )


@attack("schemas", "6 MB of tools in one page", deadline_s=12, limit_s=120)
async def whole_page(probe: Probe) -> Ending:
    dense = {"type": "object", "properties": {f"p{n}": {"enum": [[], {}]} for n in range(1_500)}}
    tools = [{**GOOD, "name": f"t{n}", "inputSchema": dense} for n in range(140)]
    async with server(GOOD, *tools, tool_tokens=FRONT_TOKENS_MAX) as source:
        specs = await probe.watch(lambda: listed(source))
        names = [spec.name for spec in specs]
        (status,) = source.servers
    return Ending(
        kept="bad__good" in names and status.state == "ready" and len(status.notes) > 0,
        heard=f"{len(names)} found; {status.error or status.notes[-1:]}",
    )


@attack("schemas", "what a model's server would make a grammar of", deadline_s=4)
async def grammar(probe: Probe) -> Ending:
    """A model that is asked with a schema: its server turns that into a grammar."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": "a{4294967295}", "maxLength": 10**9},
            "b": {"type": "array", "maxItems": 10**9, "minItems": 10**9, "items": laughs()},
            "c": {"enum": [f"choice {n}" for n in range(1_200)]},
            "d": {"const": nested(25, "a")},
            "e": {"anyOf": [{"type": "string", "pattern": EVIL}] * 500},
            "f": {"type": ["string"] * 900},
            "p" * 9_000: {"type": "string"},
        },
        "required": ["a", 5, {}],
    }
    tool = {**GOOD, "name": "ask", "description": "Tells what is new.", "inputSchema": schema}
    model = StandInModel(['{"say": "Nothing is new."}'], context_tokens=200_000)
    async with server(GOOD, tool) as source, model:
        async with conversation(source, model, native=False) as talk:
            heard = await probe.watch(lambda: talk.say("Ask: tell me what is new."))
        sent = [asked.json["format"] for asked in model.chats if asked.json.get("format")]
    written = json.dumps(sent)
    bad = [word for word in ('"pattern"', "10000000", "4294967295") if word in written]
    return Ending(
        kept="bad__ask" in written and not bad and len(written) < 20_000 and "new" in heard.spoken,
        heard=f"{heard.spoken} The schema has {len(written)} characters {bad}",
    )
