"""The tools of a household: what they read, and who writes it meanwhile."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from caal_node.agent import CaalAgent
from caal_node.core.errors import ToolFailure
from caal_node.models.child_process import end
from caal_node.reply_parser import parse_reply
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.calculator import Calculator
from caal_node.toolsets.calculator.arithmetic import CannotReckon, reckon
from caal_node.toolsets.edited_file import change_text
from caal_node.toolsets.home_assistant.devices import Order, too_talkative
from caal_node.toolsets.home_assistant.links import WebsocketServer
from caal_node.toolsets.lists.markdown_list import items_of
from caal_node.toolsets.memory import Memory
from tests.attack.harness import Ending, Probe, attack

TOOLSETS: Final = "toolsets"
FACTS: Final = 20
EDITS: Final = 20
_HOME: Final = r"""
import asyncio, json, sys
from websockets.asyncio.server import serve

KIND = sys.argv[1]
IDS = [f"light.l{number}" for number in range(2_000)]
FLOOD = 2_000
CONFIG = {"location_name": "Home", "unit_system": {"temperature": "C"}}


async def speak(socket):
    async def say(number, kind, **more):
        await socket.send(json.dumps({"id": number, "type": kind, **more}))

    async def answer(number, result):
        await say(number, "result", success=True, result=result)

    await say(0, "auth_required")
    await socket.recv()
    await say(0, "auth_ok")
    watching = 0
    async for text in socket:
        asked = json.loads(text)
        kind, number = asked["type"], asked["id"]
        if kind == "homeassistant/expose_entity/list":
            while KIND == "endless":
                watching += 200
                keys = (f"sensor.x{watching + each}" for each in range(200))
                more = {key: {"s": "1", "a": {"b": "y" * 200}} for key in keys}
                await say(0, "event", event={"a": more})
            if KIND == "giant":
                await answer(number, "x" * (9 << 20))
                continue
            many = {"many": 100_000, "many that fit": 99_000}.get(KIND, 0)
            ids = [f"light.l{each}" for each in range(many)] or IDS
            exposed = {key: {"conversation": True} for key in ids}
            await answer(number, {"exposed_entities": exposed})
        elif kind == "subscribe_entities":
            watching = number
            await answer(number, None)
            told = {key: {"s": "off", "a": {"friendly_name": key}} for key in IDS}
            await say(number, "event", event={"a": told})
        elif kind == "call_service":
            await answer(number, None)
            for count in range(FLOOD):
                change = {IDS[1 + count % 1_999]: {"+": {"s": str(count)}}}
                await say(watching, "event", event={"c": change})
            await say(watching, "event", event={"c": {IDS[0]: {"+": {"s": "on"}}}})
        else:
            await answer(number, CONFIG if kind == "get_config" else [])


async def main():
    async with serve(speak, "127.0.0.1", 0, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
"""


@asynccontextmanager
async def home(kind: str) -> AsyncGenerator[WebsocketServer]:
    """A Home Assistant in a process of its own, which does one thing too much."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _HOME, kind),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield WebsocketServer(f"http://127.0.0.1:{port}", "token")
    finally:
        await end(process, deadline_s=1.0)


async def _read(server: WebsocketServer) -> str:
    try:
        async with server.open() as link:
            return f"{len((await link.read_home()).devices)} devices"
    except ToolFailure as failure:
        return failure.words or str(failure)


@attack(TOOLSETS, "Home Assistant tells of states without end", deadline_s=13)
async def endless_states(probe: Probe) -> Ending:
    async with home("endless") as server:
        heard = await probe.watch(lambda: _read(server))
    return Ending(heard == too_talkative().words, heard)


@attack(TOOLSETS, "Home Assistant exposes 100,000 entities", deadline_s=13)
async def many_entities(probe: Probe) -> Ending:
    async with home("many") as server:
        heard = await probe.watch(lambda: _read(server))
    return Ending(heard == too_talkative().words, heard)


@attack(TOOLSETS, "Home Assistant exposes 99,000 entities, as many as are read", deadline_s=13)
async def entities_that_fit(probe: Probe) -> Ending:
    # Of the first 2,000 by name, as many have a state.
    async with home("many that fit") as server:
        heard = await probe.watch(lambda: _read(server))
    return Ending(heard == "202 devices", heard)


@attack(TOOLSETS, "2,000 devices change all the time behind an order for one", deadline_s=13)
async def flood_behind_an_order(probe: Probe) -> Ending:
    async def turn_on(server: WebsocketServer) -> str:
        async with server.open() as link:
            found = next(each for each in (await link.read_home()).devices if each.id == "light.l0")
            order = Order("light", "turn_on", (found,), states=frozenset({"on"}))
            return (await link.carry_out([order])).now([found])[0].state

    async with home("flood") as server:
        heard = await probe.watch(lambda: turn_on(server))
    return Ending(heard == "on", heard)


@attack(TOOLSETS, "a list with a line of 200,000 blanks", deadline_s=2)
async def blanks_in_a_list(probe: Probe) -> Ending:
    text = "- [ ] milk" + " " * 200_000 + "x\n- [ ] tea\n"
    found = await probe.watch(lambda: asyncio.to_thread(items_of, text))
    return Ending(any(each.name == "tea" for each in found), f"{len(found)} things")


@attack(TOOLSETS, "a calculation of a megabyte", deadline_s=2)
async def giant_sum(probe: Probe) -> Ending:
    text = "5 as a percent of " * 60_000 + "5"

    async def asked(expression: str) -> str:
        try:
            return str(await Calculator().calculate(expression))
        except ToolFailure as failure:
            return str(failure)

    def alone() -> str:
        try:
            return str(reckon(text))
        except CannotReckon as error:
            return str(error)

    async def work() -> list[str]:
        return [await asked(text), await asked(text[:3_000]), await asyncio.to_thread(alone)]

    heard = await probe.watch(work)
    wanted = [
        "expression: at most 4000 characters; shorten it.",
        "That cannot be calculated: that is longer than 300 characters.",
        "that is longer than 300 characters",
    ]
    return Ending(heard == wanted, " | ".join(heard))


@attack(TOOLSETS, "a reply that ends its thinking 10,000 times", deadline_s=2)
async def ends_of_thinking(probe: Probe) -> Ending:
    reply = await probe.watch(lambda: asyncio.to_thread(parse_reply, "</think>{" * 13_000, []))
    return Ending(not reply.calls, f"{len(reply.text)} characters")


_EDITOR: Final = r"""
import sys, threading
path, pause = sys.argv[1], threading.Event()
for number in range(int(sys.argv[2])):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        pause.wait(0.03)
        file.write(text + f"edit {number}\n")
    pause.wait(0.01)
"""


@attack(TOOLSETS, "an editor empties a page and writes it while facts are stored", deadline_s=20)
async def editor_beside_facts(probe: Probe) -> Ending:
    today = datetime(2026, 11, 24, tzinfo=UTC)
    facts = [f"I have read book {number}" for number in range(FACTS)]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "terminal.md"
        page.write_text("kept\n", encoding="utf-8")
        services = ToolsetServices(state=Path(folder), timezone=UTC, now=lambda: today)
        agent = CaalAgent(
            settings=plain_settings(), tiers={}, warm=False, tools=[Memory(services=services)]
        )
        model = ScriptedModel(*([ScriptedCall("remember_fact", {"fact": fact})] for fact in facts))
        async with AgentConversation(agent, model) as talk:

            async def work() -> list[str]:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", _EDITOR, page, str(EDITS)
                )
                heard = [(await talk.say(f"Remember that {fact}.")).text for fact in facts]
                await process.wait()
                return heard

            heard = await probe.watch(work)
        lines = page.read_text("utf-8").splitlines()
    wanted = [f"- {fact} (2026-11-24)" for fact in facts]
    wanted = ["kept", *wanted, *(f"edit {number}" for number in range(EDITS))]
    lost, more = Counter(wanted) - Counter(lines), Counter(lines) - Counter(wanted)
    told = all(words.startswith("I'll remember that you have read book") for words in heard)
    kept = told and not lost and not more
    return Ending(kept, heard[0] if kept else f"{told=} lost {list(lost)}, more {list(more)}")


@attack(TOOLSETS, "a page that is no UTF-8", deadline_s=2)
async def foreign_page(probe: Probe) -> Ending:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.md"
        page.write_bytes("Käse\n".encode("latin-1"))

        def work() -> str:
            try:
                change_text(page, lambda text: (f"{text}more\n", None), 100_000)
            except ValueError as error:
                return str(error)
            return "changed"

        heard = await probe.watch(lambda: asyncio.to_thread(work))
        kept = page.read_bytes() == "Käse\n".encode("latin-1")
    return Ending(kept and heard != "changed", heard)
