"""Pages and other bodies in place of answers: of a workflow's, and of a model's reply."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation
from caal_node.tools.sources.n8n import N8nToolSource
from n8n.core.json_values import mapping
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.conversation import NOWHERE, FakeTier, conversation
from tests.stand_ins.hostile_http_server import API_KEY, ATTACK, GOOD_REPLY, hostile_server
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

PAGE: Final = "<a " * 10_000
CALL_S: Final = 2.0
"""How long a workflow may take in these attacks."""
DEADLINES: Final = TransportDeadlines(first=2.0, between=2.0)
"""Of one request. A reply that is broken, and not late, is asked for again up to three times."""
STREAMED: Final = "streamed"
SLOW: Final = "Sorry, that is taking too long, so I stopped waiting. It may still be running."
NOT_REACHED: Final = "Sorry, I can't reach your workflows right now."
NO_DATA: Final = "The workflow answered without data."
LOST: Final = "Sorry, I lost my train of thought. Please ask me again."
TOO_SLOW: Final = "Sorry, that is taking me too long. Please try again."
MODEL_NOT_REACHED: Final = (
    "Sorry, I can't reach my language model right now. Please try again in a moment."
)


@attack("pages", "a tool answers 30 kB of <a", deadline_s=4)
async def open_tags(probe: Probe) -> Ending:
    """Through a scripted tier; the attacks on n8n's own reader stand below."""

    async def page(*_: object) -> str:
        return PAGE

    script = [Call("get_weather", {"city": "Paris"})], ["That page says nothing."]
    async with (
        StandInModel(*script) as server,
        conversation(server, tier=FakeTier(answer=page)) as talk,
    ):
        heard = await probe.watch(lambda: talk.ask("How is the weather in Paris?"))
    return Ending(kept=heard == "That page says nothing.", heard=heard)


def _looks_it_up(asked: Asked) -> Reply:
    """A model that looks up what it is asked for, and says what came of it."""
    last = asked.json["messages"][-1]
    if last["role"] == "user":
        return [Call("lookup", {"what": last["content"]})]
    try:
        told: Any = json.loads(last["content"])
    except (ValueError, RecursionError):
        told = last["content"]
    spoken = str(mapping(told).get("say") or f"It says {told}.")
    return [spoken[:200]]


@asynccontextmanager
async def workflow_talk(name: str, streams: str = "lastNode") -> AsyncGenerator[AgentConversation]:
    """A conversation with an agent whose only tool is a workflow of the hostile server."""
    async with (
        hostile_server(name, streams) as url,
        StandInModel(answer=_looks_it_up) as server,
    ):
        source = N8nToolSource(url, mcp_token=None, api_key=API_KEY, call_timeout_s=CALL_S)
        model = LLM(server.model, "ollama", server.url, native_tools=True)
        settings = load_settings({"CAAL_CUES": "off"}, NOWHERE)
        agent = CaalAgent(settings=settings, tiers={"n8n": source}, warm=False)
        try:
            async with AgentConversation(agent, model) as talk:
                # The first turn waits for the tools, and warms what is imported late.
                assert "bread" in (await talk.say("bread")).spoken
                yield talk
        finally:
            await model.aclose()


async def workflow_turn(
    probe: Probe, name: str, expected: str, streams: str = "lastNode"
) -> Ending:
    """Ask for the attack, then for something else: both turns have to end in words."""
    async with workflow_talk(name, streams) as talk:
        turn = await probe.watch(lambda: talk.say(ATTACK))
        after = await talk.say("bread")
    kept = expected in turn.spoken and "bread" in after.spoken
    return Ending(kept, turn.spoken if kept else f"{turn.spoken} / {after.spoken}")


@asynccontextmanager
async def model_talk(name: str, api: Any, **env: str) -> AsyncGenerator[AgentConversation]:
    """A conversation with an agent whose model's server is the hostile one."""
    async with hostile_server(name) as url:
        base = url if api == "ollama" else f"{url}/v1"
        model = LLM("stand-in", api, base, native_tools=True, deadlines=DEADLINES)
        settings = load_settings({"CAAL_CUES": "off", **env}, NOWHERE)
        agent = CaalAgent(settings=settings, tiers={"n8n": FakeTier()}, warm=False)
        try:
            async with AgentConversation(agent, model, turn_s=60) as talk:
                assert (await talk.say("Hello")).spoken == GOOD_REPLY
                yield talk
        finally:
            await model.aclose()


async def model_turn(probe: Probe, name: str, api: str, *expected: str, **env: str) -> Ending:
    """Ask for the attack, then for something else: both turns have to end in words."""
    async with model_talk(name, api, **env) as talk:
        turn = await probe.watch(lambda: talk.say(ATTACK))
        after = await talk.say("Hello again")
    kept = turn.spoken in expected and after.spoken == GOOD_REPLY
    return Ending(kept, turn.spoken if kept else f"{turn.spoken} / {after.spoken}")


@attack("pages", "a workflow answers 30 kB of <a", deadline_s=CALL_S)
async def workflow_tags(probe: Probe) -> Ending:
    return await workflow_turn(probe, "open tags", NO_DATA)


@attack("pages", "a workflow answers 900 kB of <![CDATA[", deadline_s=CALL_S)
async def workflow_cdata(probe: Probe) -> Ending:
    return await workflow_turn(probe, "cdata", NO_DATA)


@attack("pages", "a workflow answers one tag of 120,000 attributes", deadline_s=CALL_S)
async def workflow_attributes(probe: Probe) -> Ending:
    return await workflow_turn(probe, "attributes", NO_DATA)


@attack("pages", "a workflow answers JSON that is 500,000 levels deep", deadline_s=CALL_S)
async def workflow_deep(probe: Probe) -> Ending:
    return await workflow_turn(probe, "deep JSON", "It says")


@attack("pages", "a workflow's answer drips for ever", deadline_s=CALL_S)
async def workflow_drip(probe: Probe) -> Ending:
    return await workflow_turn(probe, "drip", SLOW)


@attack("pages", "a workflow's answer has 18,000 headers", deadline_s=CALL_S)
async def workflow_headers(probe: Probe) -> Ending:
    return await workflow_turn(probe, "giant headers", NOT_REACHED)


@attack("pages", "in place of an answer `100 Continue` comes for ever", deadline_s=CALL_S)
async def workflow_continues(probe: Probe) -> Ending:
    return await workflow_turn(probe, "hundreds", SLOW)


@attack("pages", "a workflow streams 20,000 empty steps at once", deadline_s=CALL_S)
async def workflow_steps(probe: Probe) -> Ending:
    return await workflow_turn(probe, "steps", "It says {}", streams="streaming")


@attack("pages", "a workflow streams its answer byte by byte", deadline_s=CALL_S)
async def workflow_bytes(probe: Probe) -> Ending:
    return await workflow_turn(probe, "chunked steps", SLOW, streams="streaming")


@attack("noise", "a model's reply is line ends for ever", deadline_s=4 * DEADLINES.first)
async def model_newlines(probe: Probe) -> Ending:
    return await model_turn(probe, "newlines", "ollama", LOST, TOO_SLOW)


@attack("noise", "a model streams 20,000 empty objects at once", deadline_s=4 * DEADLINES.first)
async def model_objects(probe: Probe) -> Ending:
    return await model_turn(probe, "empty lines", "ollama", LOST, TOO_SLOW, CAAL_DETECTION=STREAMED)


@attack("noise", "a model streams 10,000 HTTP chunks in a packet", deadline_s=4 * DEADLINES.first)
async def model_chunks(probe: Probe) -> Ending:
    return await model_turn(probe, "tiny chunks", "openai", LOST, TOO_SLOW, CAAL_DETECTION=STREAMED)


@attack("noise", "a model says nothing, ten times a second", deadline_s=DEADLINES.first)
async def model_says_nothing(probe: Probe) -> Ending:
    return await model_turn(probe, "slow events", "openai", TOO_SLOW, CAAL_DETECTION=STREAMED)


@attack("noise", "a model's reply is 350,000 empty calls", deadline_s=DEADLINES.first)
async def model_calls(probe: Probe) -> Ending:
    return await model_turn(probe, "calls in a line", "ollama", LOST)


@attack("noise", "a model's reply is 350,000 empty choices", deadline_s=DEADLINES.first)
async def model_choices(probe: Probe) -> Ending:
    return await model_turn(probe, "choices", "openai", LOST)


@attack("noise", "a model's server sets 4,500 cookies", deadline_s=DEADLINES.first)
async def model_cookies(probe: Probe) -> Ending:
    return await model_turn(probe, "cookies", "openai", MODEL_NOT_REACHED, CAAL_DETECTION=STREAMED)


@attack("pages", "a model's server is a proxy with a page of 2 MB", deadline_s=DEADLINES.first)
async def model_page(probe: Probe) -> Ending:
    return await model_turn(probe, "wrong page", "openai", MODEL_NOT_REACHED)
