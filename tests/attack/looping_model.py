"""A model that goes round in circles, or a server that plays one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from livekit.agents import llm

from caal_node.agent import CaalAgent
from caal_node.core.events import ToolCallStarted
from caal_node.testing import plain_settings
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.conversation import Conversation, FakeTier, conversation, weather_spec
from tests.stand_ins.stand_in_model import Call, Hang, Raw, Reply, StandInModel

MANY: Final = 2_000
CALLS_HEARD_MAX: Final = 64
"""Calls that anybody would call a loop: a reply has a tenth of them."""
DONE: Final = "That is all there is."
STREAMED: Final = {"CAAL_DETECTION": "streamed"}
MIB: Final = 2**20
HEARD_MAX: Final = 40_000
"""Characters that are heard of one reply: more than half an hour of them."""


@asynccontextmanager
async def talking(
    *script: Reply, **given: Any
) -> AsyncGenerator[tuple[Conversation, StandInModel]]:
    """A conversation that is warm: a first turn has loaded what a turn needs."""
    tier = given.pop("tier", None) or FakeTier(weather_spec(), weather_spec(name="get_time"))
    async with (
        StandInModel(["Hello there."], *script) as server,
        conversation(server, tier=tier, **given) as talk,
    ):
        await talk.ask("Hello.")
        yield talk, server


async def _calls_in_vain(probe: Probe, reply: Reply, *, told: bool = True, **given: Any) -> Ending:
    """One reply with far too many calls, and an answer behind it."""
    async with talking(reply, [DONE], **given) as (talk, server):
        heard = await probe.watch(lambda: talk.ask("How is the weather in Paris?"))
        made = len(talk.tier.calls)
        limit = "calls of a reply are made" in server.chats[-1].body.decode()
        kept = 0 < made <= CALLS_HEARD_MAX and heard == DONE and limit is told
        return Ending(kept, f"{heard} ({made} calls, the model was {'' if limit else 'not '}told)")


def _ollama_call(number: int) -> dict[str, Any]:
    arguments = {"city": f"City {number}"}
    return {"id": f"c{number}", "function": {"name": "get_weather", "arguments": arguments}}


@attack("a model that loops", f"{MANY} calls in one whole Ollama reply", deadline_s=4)
async def whole_calls(probe: Probe) -> Ending:
    calls = [_ollama_call(number) for number in range(MANY)]
    return await _calls_in_vain(probe, [Raw(_ollama("", tool_calls=calls))])


@attack("a model that loops", f"{MANY} calls in one streamed Ollama reply", deadline_s=4)
async def streamed_calls(probe: Probe) -> Ending:
    lines = [_line("", tool_calls=[_ollama_call(number)]) for number in range(MANY)]
    return await _calls_in_vain(probe, _packets(lines), env=STREAMED)


@attack("a model that loops", f"{MANY} calls in one OpenAI reply", deadline_s=4)
async def openai_calls(probe: Probe) -> Ending:
    lines: list[bytes] = []
    for number in range(MANY):
        function = {"name": "get_weather", "arguments": f'{{"city":"City {number}"}}'}
        call = {"index": number, "id": f"c{number}", "type": "function", "function": function}
        choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
        lines.append(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
    return await _calls_in_vain(probe, _packets(lines), env=STREAMED, api="openai")


def _call(number: int) -> str:
    return json.dumps({"name": "get_weather", "arguments": {"city": f"City {number}"}})


DIALECTS: Final[Mapping[str, Callable[[int], str]]] = {
    "JSON lines": lambda n: f"{_call(n)}\n",
    "Hermes' tags": lambda n: f"<tool_call>\n{_call(n)}\n</tool_call>\n",
    "code fences": lambda n: f"```json\n{_call(n)}\n```\n",
    "brackets": lambda n: f'[get_weather(city="City {n}")]\n',
    "elements": lambda n: (
        f"<function=get_weather><parameter=city>City {n}</parameter></function>\n"
    ),
}


@attack("a model that loops", f"{MANY} calls in prose, in five dialects", deadline_s=6)
async def calls_in_prose(probe: Probe) -> Ending:
    heard = ""
    for name, written in DIALECTS.items():
        text = "".join(map(written, range(MANY)))
        ending = await _calls_in_vain(probe, [Raw(_ollama(text))])
        heard = f"{name}: {ending.heard}"
        if not ending.kept:
            return Ending(False, heard)
    return Ending(True, heard)


@attack("a model that loops", "16 calls in every round of a turn", deadline_s=8)
async def calls_in_every_round(probe: Probe) -> Ending:
    rounds = [
        [Call("get_weather", {"city": f"City {n} {m}"}) for m in range(16)] for n in range(20)
    ]
    env = {"CAAL_MAX_TOOL_ROUNDS": "20"}
    async with talking(*rounds, env=env) as (talk, server):
        heard = await probe.watch(lambda: talk.ask("How is the weather?"))
        made = len(talk.tier.calls)
        said = bool(heard.strip()) and len(server.chats) < 8
        return Ending(said and 16 <= made <= CALLS_HEARD_MAX, f"{heard} ({made} calls)")


@attack("a model that loops", f"its server runs {MANY} tools by itself", deadline_s=4)
async def server_runs(probe: Probe) -> Ending:
    lines: list[bytes] = []
    for number in range(MANY):
        call = {"id": f"r{number}", "function": {"name": "x" * 2_000, "arguments": "{}"}}
        body = {"message": {"tool_calls": [call]}, "task_status": "working", "done": False}
        lines.append(json.dumps(body).encode() + b"\n")
    async with talking([*_packets(lines), DONE], env=STREAMED) as (talk, _):
        heard = await probe.watch(lambda: talk.ask("How is the weather in Paris?"))
        told = talk.events_of(ToolCallStarted)
        short = all(len(event.tool) <= 128 for event in told)
        kept = heard == DONE and 0 < len(told) <= CALLS_HEARD_MAX and short
        return Ending(kept, f"{heard} ({len(told)} calls were shown)")


@attack("a model that loops", "a call with 900 kB of arguments", deadline_s=4)
async def giant_arguments(probe: Probe) -> Ending:
    giant = [Call("get_weather", {"city": "x" * 900_000})]
    async with talking(giant, [DONE], [DONE]) as (talk, server):
        heard = await probe.watch(lambda: talk.ask("How is the weather in Paris?"))
        small = max(len(asked.body) for asked in server.chats) < 100_000
        return Ending(heard == DONE and not talk.tier.calls and small, heard)


@attack("a model that loops", "a call with a name of 900 kB", deadline_s=4)
async def giant_name(probe: Probe) -> Ending:
    giant = [Call("get_weather" * 80_000, {"city": "Paris"})]
    async with talking(giant, [DONE], [DONE]) as (talk, server):
        heard = await probe.watch(lambda: talk.ask("How is the weather in Paris?"))
        small = max(len(asked.body) for asked in server.chats) < 100_000
        return Ending(heard == DONE and not talk.tier.calls and small, heard)


# -- text without an end -------------------------------------------------------------------------


def _ollama(text: str, **more: Any) -> bytes:
    """A whole reply of Ollama's."""
    message = {"role": "assistant", "content": text, **more}
    return json.dumps({"model": "m", "message": message, "done": True}).encode()


def _line(text: str, **more: Any) -> bytes:
    """One line of a stream of Ollama's."""
    message = {"role": "assistant", "content": text, **more}
    return json.dumps({"model": "m", "message": message, "done": False}).encode() + b"\n"


def _packets(lines: Sequence[bytes]) -> Reply:
    """`lines` as a network has them, several at once."""
    return [Raw(b"".join(lines[at : at + 64])) for at in range(0, len(lines), 64)]


def _endless_stream(text: str, size: int = 512) -> Reply:
    """Ollama's stream of `text`, which has no end: the server waits for its client to go away."""
    return [*_packets([_line(text[at : at + size]) for at in range(0, len(text), size)]), Hang()]


async def _endless(probe: Probe, reply: Reply, least: int) -> Ending:
    async with talking(reply, ["And so on."], env=STREAMED) as (talk, server):
        heard = await probe.watch(lambda: talk.ask("Tell me everything."))
        async with asyncio.timeout(5):
            await server.client_gone()
        said = [item.text_content or "" for item in talk.history if item.type == "message"][-1]
        kept = least <= len(heard) <= HEARD_MAX and len(said) >= len(heard) // 2
        return Ending(kept, f"{heard[:40]}… ({len(heard):,} characters, {len(said):,} in history)")


@attack("a model that loops", "8 MiB of endless prose, streamed", deadline_s=5)
async def endless_prose(probe: Probe) -> Ending:
    text = "".join(f"Number {n} comes next, and then another one. " for n in range(190_000))
    return await _endless(probe, _endless_stream(text), 10_000)


@attack("a model that loops", "one sentence for ever", deadline_s=5)
async def endless_sentence(probe: Probe) -> Ending:
    return await _endless(probe, _endless_stream("And so on and so forth. " * 30_000, 24), 100)


@attack("a model that loops", "one word for ever, without a full stop", deadline_s=5)
async def endless_word(probe: Probe) -> Ending:
    return await _endless(probe, _endless_stream("very " * 200_000, 5), 100)


@attack("a model that loops", "endless thinking in text, then nothing", deadline_s=6)
async def endless_thought(probe: Probe) -> Ending:
    text = "<think>" + "".join(f"Or is it {n}? Perhaps. " for n in range(60_000))
    return await _thought_in_vain(probe, _endless_stream(text))


@attack("a model that loops", "endless thinking that the server keeps apart", deadline_s=6)
async def endless_kept_thought(probe: Probe) -> Ending:
    return await _thought_in_vain(
        probe, _packets([_line("", thinking=f"Or {n}? ") for n in range(40_000)])
    )


async def _thought_in_vain(probe: Probe, reply: Reply) -> Ending:
    async with talking(reply, reply, reply, [DONE], env=STREAMED) as (talk, server):
        heard = await probe.watch(lambda: talk.ask("What is the answer?"))
        sorry = "train of thought" in heard or "could not think" in heard
        return Ending(sorry and len(server.chats) == 2, heard)


SHAPES: Final = {
    "curly brackets": "{",
    "square brackets": "[",
    "objects that begin": '[{"',
    "names that begin": '{"name":"',
    "angle brackets": "<",
    "backticks": "`",
    "fences": "```\n",
    "<tool_call>": "<tool_call>",
    "<think>": "<think>",
    "links that begin": "[a](",
    "images that begin": "![",
    "stars": "*",
    "stars before words": "*a ",
    "underscores": "_",
    "words in underscores": "_a ",
    "tildes": "~~a ",
    "digits": "7",
    "an address": "https://a.b/",
    "dollars": "$a ",
    "rows of a table": "|a|b|\n",
    "Chinese": "中",
    "dashes": "-",
}


@attack("a model that loops", "900 kB of brackets, stars, fences …, streamed", deadline_s=5)
async def streamed_shapes(probe: Probe) -> Ending:
    return await _shapes(probe, lambda text: _endless_stream(text, 4_096), STREAMED)


@attack("a model that loops", "900 kB of brackets, stars, fences …, whole", deadline_s=5)
async def whole_shapes(probe: Probe) -> Ending:
    return await _shapes(probe, lambda text: [Raw(_ollama(text))], {})


async def _shapes(probe: Probe, reply: Callable[[str], Reply], env: Mapping[str, str]) -> Ending:
    """Each shape in a turn of its own, in one conversation."""
    heard = ""
    async with talking(env=env) as (talk, server):
        for name, piece in SHAPES.items():
            text = f"Well. {piece * (900_000 // len(piece))}"
            server.replace(reply(text), [DONE], [DONE], [DONE])
            heard = await probe.watch(partial(talk.ask, "Tell me something."))
            if not heard.strip() or len(heard) > HEARD_MAX:
                return Ending(False, f"{name}: {heard[:60]}")
    return Ending(True, f"{len(SHAPES)} shapes, the last heard as {heard[:20]}")


# -- a model of another plugin --------------------------------------------------------------------


class _OtherModel(llm.LLM[Any]):
    """Stands for any LiveKit plugin: its replies reach the agent as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def chat(self, *, chat_ctx: Any, tools: Any = None, conn_options: Any = None, **_: Any) -> Any:
        self.asked += 1
        return _OtherStream(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class _OtherStream(llm.LLMStream):
    async def _run(self) -> None:
        answered = any(item.type == "function_call_output" for item in self._chat_ctx.items)
        for number in range(1 if answered else MANY):
            call = llm.FunctionToolCall(
                name="get_weather", arguments=f'{{"city":"City {number}"}}', call_id=f"c{number}"
            )
            delta = llm.ChoiceDelta(
                role="assistant",
                content=DONE if answered else None,
                tool_calls=[] if answered else [call],
            )
            self._event_ch.send_nowait(llm.ChatChunk(id="other", delta=delta))
            await asyncio.sleep(0)


@attack("a model that loops", f"{MANY} calls by a model of another plugin", deadline_s=4)
async def other_model(probe: Probe) -> Ending:
    tier = FakeTier()
    agent = CaalAgent(settings=plain_settings(), tiers={"n8n": tier}, warm=False)
    async with Conversation(agent, _OtherModel(), tier) as talk:  # pyright: ignore[reportArgumentType]  # any llm.LLM will do
        heard = await probe.watch(lambda: talk.ask("How is the weather in Paris?"))
        made = len(tier.calls)
        return Ending(0 < made <= CALLS_HEARD_MAX and heard == DONE, f"{heard} ({made} calls)")
