"""Outside parts that are taken away in mid-turn and given back.

Each is used in a first turn, taken away in the second, away in the third and back in the fourth. A
person hears a sentence and the error cue, the fourth turn works, the conversation has lost nothing,
and neither tasks nor descriptors are left over.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psutil
import time_machine

from caal_node.agent import CaalAgent
from caal_node.config.settings import Settings
from caal_node.core.events import ToolCallStarted, TurnEnded
from caal_node.core.paths import state_folder
from caal_node.core.prompt_files import sentence
from caal_node.factories import session_llm
from caal_node.models.backends import ollama
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation, plain_settings
from caal_node.tools.sources.n8n import N8nToolSource
from tests.attack.harness import Ending, Probe, attack
from tests.recorded_n8n import RecordedN8n
from tests.stand_ins.bridge_process import TOKEN, bridge_process
from tests.stand_ins.conversation import Conversation, conversation
from tests.stand_ins.mcp_conversation import WITH_CUES, CueAgent, cues, mcp_conversation, until
from tests.stand_ins.mcp_events import RAW, events, http_process
from tests.stand_ins.outage_gate import Gate
from tests.stand_ins.stand_in_model import Asked, Call, StandInModel, Step, Wait

HUMAN_S: Final = 2.0
"""Nobody asks again sooner: a sentence has to be heard first."""
CALL_S: Final = 2.0
DAY_S: Final = 86_400.0
SETTLE_S: Final = 15.0
"""For closed connections to be forgotten by both sides. Two requests of a new session may overlap
on a busy machine; the second connection is idle for 5 s until the next request closes it."""
DO, HOLD = "Please do it in Paris.", "Do it slowly in Paris."
GONE, BACK = "Please try Paris again.", "Once more in Paris, please."
DONE: Final = "Done."
HERE: Final = "Here I am."
WARM: Final = TransportDeadlines(first=1.5, between=1.5)
"""A cold model has two minutes for its first word, and half a minute for the next."""


def obedient(do: Call, hold: Call) -> Callable[[Asked], Sequence[Step]]:
    """A model that calls a tool for each request, and says what it is told to say of the result."""

    def answer(asked: Asked) -> Sequence[Step]:
        last = asked.json["messages"][-1]
        if last["role"] != "tool":
            return [hold if last["content"] == HOLD else do]
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            return [json.loads(last["content"]).get("say", DONE)]
        return [DONE]

    return answer


@dataclass
class Part:
    """An outside part that a conversation uses."""

    model: StandInModel
    talk: Conversation
    take: Callable[[], Awaitable[None]]
    give_back: Callable[[], Awaitable[None]]
    hold: Callable[[], Awaitable[None]] | None = None
    """Has the part answer nothing from now on, where its tool does not do so by itself."""
    reached: Callable[[], Awaitable[None]] | None = None
    """Returns once the turn waits for the part; where it is None that is when its call starts."""

    async def outage(self, probe: Probe, said: str, away: str = "Sorry") -> Ending:
        """Play the four turns. `said` is heard in the second one, `away` begins the third."""
        talk = self.talk
        first = await talk.ask(DO)
        before = await self._in_use()
        if self.hold is not None:
            await self.hold()

        async def taken_in_mid_turn() -> str:
            calls = len(talk.events_of(ToolCallStarted))
            asked = asyncio.create_task(talk.ask(HOLD))
            await (self.reached() if self.reached else until(talk, ToolCallStarted, calls + 1))
            await self.take()
            return await asked

        heard = await probe.watch(taken_in_mid_turn)
        third = await talk.ask(GONE)
        rung = cues(talk).count("error")
        await self.give_back()
        back = await talk.ask(BACK)
        asked = self.model.chats[-1].json["messages"]
        told = [m["content"] for m in asked if m["role"] == "user"]
        left = await self._left_over(before)
        faults = {
            f"first {first!r}": first != DONE,
            f"heard {heard!r}": heard != said,
            f"third {third!r}": not third.startswith(away),
            f"{rung} error cues": rung != 1 + third.startswith("Sorry"),
            f"back {back!r}": back != DONE,
            f"history {told}": told != [DO, HOLD, GONE, BACK] or asked[-1]["role"] == "assistant",
            f"left over {left}": bool(left),
        }
        wrong = ", ".join(fault for fault, true in faults.items() if true)
        return Ending(kept=not wrong, heard=wrong or heard)

    async def _in_use(self) -> tuple[Counter[str], Counter[str]]:
        """The tasks and descriptors of this process, once the last turn is over."""
        await asyncio.sleep(0.2)
        tasks = (getattr(each.get_coro(), "__qualname__", "") for each in asyncio.all_tasks())
        return Counter(tasks), await asyncio.to_thread(_descriptors)

    async def _left_over(self, before: tuple[Counter[str], Counter[str]]) -> str:
        until = time.monotonic() + SETTLE_S
        while True:
            pairs = list(zip(before, await self._in_use(), strict=True))
            if all(now.total() <= then.total() for then, now in pairs):
                return ""
            if time.monotonic() > until:
                return str([dict(now - then) for then, now in pairs])
            await self.talk.ask(BACK)


def _descriptors() -> Counter[str]:
    """What the descriptors of this process are open to."""
    sockets = {
        each.fd: f"{each.status} {each.laddr} -> {each.raddr}"
        for each in psutil.Process().net_connections("all")
    }
    found: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            found[sockets.get(int(entry.name)) or str(entry.readlink())] += 1
    return found


async def nothing() -> None:
    """For a part that does by itself what is asked of it."""


@attack("outages", "the model's server is killed before its answer", deadline_s=5)
async def model_killed(probe: Probe) -> Ending:
    return await _model_away(probe, [], Gate.cut, sentence("model_unreachable"))


@attack("outages", "the model's server is killed in the middle of its answer", deadline_s=5)
async def model_killed_in_mid_answer(probe: Probe) -> Ending:
    said = "I think. " + sentence("model_failed")
    return await _model_away(probe, ["I think. "], Gate.cut, said)


@attack("outages", "the model's server falls silent", deadline_s=5)
async def model_silent(probe: Probe) -> Ending:
    async def silence(gate: Gate) -> None:
        gate.silence()

    return await _model_away(probe, [], silence, sentence("model_slow"))


async def _model_away(
    probe: Probe, begins: list[Step], take: Callable[[Gate], Awaitable[None]], said: str
) -> Ending:
    """The model is taken away when it has called a tool and begun to speak of the result."""
    held = asyncio.Event()

    def answer(asked: Asked) -> Sequence[Step]:
        messages = asked.json["messages"]
        if messages[-1]["role"] != "tool":
            return [Call("get_weather", {"city": "Paris"})]
        users = [m["content"] for m in messages if m["role"] == "user"]
        if users[-1] != HOLD:
            return [DONE]
        held.set()
        return [*begins, Wait(asyncio.Event())]

    async def begun() -> None:
        await held.wait()
        await asyncio.sleep(0.2)  # for the words on their way

    async with StandInModel(answer=answer) as model, Gate(model.url) as gate:
        model.url = gate.url
        with patch.object(ollama, "TransportDeadlines", lambda: WARM):
            talk_of = conversation(model, agent=CueAgent, env=WITH_CUES)
            async with talk_of as talk:
                part = Part(model, talk, lambda: take(gate), gate.restore, reached=begun)
                return await part.outage(probe, said)


@attack("outages", "the model's server stays away for seven turns", deadline_s=10)
async def model_away_for_long(probe: Probe) -> Ending:
    async with StandInModel(answer=lambda _: [HERE]) as model, Gate(model.url) as gate:
        model.url = gate.url
        async with conversation(model, agent=CueAgent, env=WITH_CUES) as talk:

            async def seven_turns() -> list[str]:
                await gate.cut()
                return [await talk.ask(GONE) for _ in range(7)]

            heard = await probe.watch(seven_turns)
            await gate.restore()
            back = await talk.ask(BACK)
    kept = set(heard) == {sentence("model_unreachable")} and back == HERE
    return Ending(kept, f"{heard[-1]} and then: {back}")


@attack("outages", "n8n is killed in mid-call", deadline_s=5)
async def n8n_killed(probe: Probe) -> Ending:
    return await _n8n_away(probe, Gate.cut, sentence("workflow_unreachable"))


@attack("outages", "n8n falls silent in mid-call", deadline_s=5)
async def n8n_silent(probe: Probe) -> Ending:
    async def already_silent(_: Gate) -> None:
        pass

    return await _n8n_away(probe, already_silent, sentence("workflow_slow"))


async def _n8n_away(probe: Probe, take: Callable[[Gate], Awaitable[None]], said: str) -> Ending:
    call = Call("get_weather", {"city": "Paris"})
    async with (
        RecordedN8n(active=["get_weather"]) as recorded,
        Gate(recorded.base_url) as gate,
        StandInModel(answer=obedient(call, call)) as model,
    ):

        async def hold() -> None:
            gate.silence()

        tier: Any = N8nToolSource(
            gate.url, mcp_token=None, api_key=recorded.api_key, call_timeout_s=CALL_S
        )
        async with conversation(model, agent=CueAgent, tier=tier, env=WITH_CUES) as talk:
            part = Part(model, talk, lambda: take(gate), gate.restore, hold)
            return await part.outage(probe, said)


@attack("outages", "an MCP server over stdio is killed in mid-call", deadline_s=5)
async def stdio_killed(probe: Probe) -> Ending:
    with tempfile.TemporaryDirectory() as folder:
        there = f"{folder}/there"
        os.close(os.open(there, os.O_CREAT))
        args = ["-S", "-E", str(RAW), f"needs={there}"]
        async with events() as seen:
            env = {"EVENTS_PORT": str(seen.port)}
            entry = {"command": sys.executable, "args": args, "env": env}

            async def take() -> None:
                os.unlink(there)  # noqa: PTH108 - a file in memory
                os.kill(await seen.pid(), signal.SIGKILL)

            async def give_back() -> None:
                os.close(os.open(there, os.O_CREAT))

            tools = obedient(Call("raw__echo"), Call("raw__wait"))
            async with (
                StandInModel(answer=tools) as model,
                mcp_conversation(model, {"raw": entry}) as talk,
            ):
                part = Part(model, talk, take, give_back)
                return await part.outage(probe, sentence("tool_unavailable"))


@attack("outages", "an MCP server over HTTP is killed in mid-call", deadline_s=5)
async def http_killed(probe: Probe) -> Ending:
    tools = obedient(Call("far__echo"), Call("far__wait"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with events() as seen, AsyncExitStack() as running:

        async def start() -> None:
            await running.enter_async_context(http_process(seen, port))
            await seen.wait_for("serving")

        async def kill() -> None:
            await running.aclose()

        await start()
        entry = {"url": f"http://127.0.0.1:{port}/mcp"}
        async with (
            StandInModel(answer=tools) as model,
            mcp_conversation(model, {"far": entry}) as talk,
        ):
            part = Part(model, talk, kill, start)
            return await part.outage(probe, sentence("tool_unavailable"))


@attack("outages", "an MCP bridge over WebSocket is killed in mid-call", deadline_s=5)
async def websocket_killed(probe: Probe) -> Ending:
    return await _websocket_away(probe, Gate.cut, sentence("tool_unavailable"))


@attack("outages", "an MCP bridge over WebSocket falls silent in mid-call", deadline_s=5)
async def websocket_silent(probe: Probe) -> Ending:
    async def silence(gate: Gate) -> None:
        gate.silence()

    return await _websocket_away(probe, silence, sentence("write_timeout"))


async def _websocket_away(
    probe: Probe, take: Callable[[Gate], Awaitable[None]], said: str
) -> Ending:
    tools = obedient(Call("far__echo"), Call("far__wait"))
    async with (
        bridge_process(environ={"MCP_BRIDGE_TOKEN": TOKEN}) as bridge,
        Gate(bridge.url) as gate,
        StandInModel(answer=tools) as model,
        mcp_conversation(
            model, {"far": {"url": gate.url, "token": TOKEN}}, call_timeout_s=CALL_S
        ) as talk,
    ):
        part = Part(model, talk, lambda: take(gate), gate.restore)
        return await part.outage(probe, said)


@attack("outages", "an MCP bridge stays away for seven turns", deadline_s=10)
async def websocket_away_for_long(probe: Probe) -> Ending:
    tools = obedient(Call("far__echo"), Call("far__wait"))
    async with (
        bridge_process(environ={"MCP_BRIDGE_TOKEN": TOKEN}) as bridge,
        Gate(bridge.url) as gate,
        StandInModel(answer=tools) as model,
        mcp_conversation(model, {"far": {"url": gate.url, "token": TOKEN}}) as talk,
    ):

        async def seven_turns() -> list[str]:
            await gate.cut()
            return [await talk.ask(GONE) for _ in range(7)]

        heard = await probe.watch(seven_turns)
        await gate.restore()
        await asyncio.sleep(HUMAN_S)
        back = await talk.ask(BACK)
        kept = set(heard) == {sentence("tool_unavailable")} and back == DONE
        return Ending(kept, f"{heard[-1]} and then: {back}")


@attack("outages", "the clock is set a day ahead in mid-call", deadline_s=5)
async def clock_ahead(probe: Probe) -> Ending:
    return await _clock_set(probe, DAY_S)


@attack("outages", "the clock is set a day back in mid-call", deadline_s=5)
async def clock_back(probe: Probe) -> Ending:
    return await _clock_set(probe, -DAY_S)


async def _clock_set(probe: Probe, by_s: float) -> Ending:
    """The call is never answered, so its deadline is what a clock could move."""
    entry = {"command": sys.executable, "args": ["-S", "-E", str(RAW)]}
    tools = obedient(Call("raw__echo"), Call("raw__wait"))
    with contextlib.ExitStack() as clock:

        async def set_clock() -> None:
            clock.enter_context(time_machine.travel(time.time() + by_s))

        async def go_on() -> None:
            pass

        async with (
            StandInModel(answer=tools) as model,
            mcp_conversation(model, {"raw": entry}, call_timeout_s=CALL_S) as talk,
        ):
            part = Part(model, talk, set_clock, go_on)
            ending = await part.outage(probe, sentence("write_timeout"), away=DONE)
            lengths = [turn.duration_ms for turn in talk.events_of(TurnEnded)]
            measured = len(lengths) == 4 and all(0 <= length < 60_000 for length in lengths)
    return Ending(ending.kept and measured and probe.took_s >= CALL_S, ending.heard)


@attack("outages", "the disk with the state is full", deadline_s=5)
async def disk_full(probe: Probe) -> Ending:
    """No file can grow meanwhile (RLIMIT_FSIZE). What could not be kept is kept afterwards."""
    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    tools = obedient(Call("raw__echo"), Call("raw__echo"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CAAL_CACHE"] = folder
        config = Path(folder, "mcp_servers.json")
        entry = {"command": sys.executable, "args": ["-S", "-E", str(RAW)]}
        await asyncio.to_thread(config.write_text, json.dumps({"raw": entry}))
        async with StandInModel(answer=tools) as model:
            settings = plain_settings(
                CAAL_MCP_SERVERS=str(config), CAAL_MODEL=model.model, OLLAMA_HOST=model.url
            )

            async def three_turns() -> list[str]:
                async with _session(settings) as talk:
                    heard = [(await talk.say(words)).spoken for words in (DO, HOLD)]
                    await talk.agent.reload_tools()
                    return [*heard, (await talk.say(GONE)).spoken]

            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
            try:
                await three_turns()  # the first session of a process imports what it needs
                heard = await probe.watch(three_turns)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            kept_then = _kept_files()
            async with _session(settings) as talk:
                heard.append((await talk.say(BACK)).spoken)
    told = {line for line in logged if " cannot be " in line or "disk is full" in line}
    misled = any("move it away" in line for line in told)
    kept = heard == [DONE] * 4 and not kept_then and bool(_kept_files()) and len(told) == 3
    return Ending(kept and not misled, heard[-1] if kept and not misled else f"{heard} {told}")


@asynccontextmanager
async def _session(settings: Settings) -> AsyncIterator[AgentConversation]:
    """A session as the worker makes it, with all that it keeps between two of them."""
    model = await session_llm(settings)
    assert isinstance(model, LLM)
    try:
        async with AgentConversation(CaalAgent(settings=settings), model) as talk:
            yield talk
    finally:
        await model.aclose()


def _kept_files() -> list[str]:
    return [str(path) for path in state_folder().rglob("*.json") if path.stat().st_size]
