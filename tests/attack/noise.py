"""Servers that send what nobody asked for: junk, floods, giants, endless lists and bodies."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from caal_node import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.models.child_process import end
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation
from mcp_bridge import BridgeError, ServerConfig, ServerManager
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.conversation import NOWHERE
from tests.stand_ins.stand_in_model import Call, StandInModel

PEER: Final = Path(__file__).parents[1] / "stand_ins" / "noisy_mcp_peer.py"
CALL_S: Final = 4.0
START_S: Final = 30.0
"""For what is no part of an attack, on a machine that also runs others."""
LOG_LINES: Final = 10
"""So many lines may be logged of one server that writes for ever."""


class LogVolume(logging.Handler):
    """Counts what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def command(*words: str) -> list[str]:
    return ["-S", "-E", str(PEER), *words]


@asynccontextmanager
async def listening(kind: str, *words: str) -> AsyncGenerator[str]:
    """The port of a peer in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, *command(kind, *words), stdin=PIPE, stdout=PIPE
    )
    try:
        assert child.stdout is not None
        yield (await child.stdout.readline()).decode().strip()
    finally:
        await end(child)


@asynccontextmanager
async def server(kind: str, *words: str) -> AsyncGenerator[ServerConfig]:
    if kind == "stdio":
        yield ServerConfig("noisy", command=sys.executable, args=tuple(command(kind, *words)))
        return
    async with listening(kind, *words) as port:
        scheme, transport = ("ws", "websocket") if kind == "ws" else ("http", "http")
        yield ServerConfig("noisy", url=f"{scheme}://127.0.0.1:{port}/mcp", transport=transport)


async def called(
    probe: Probe, kind: str, deed: str, said: str = "does not stop sending", *, well: bool = False
) -> Ending:
    """One call of `deed`, and then an ordinary one.

    Args:
        said: What the error has to say.
        well: Whether the call has to succeed all the same.
    """
    log = LogVolume()
    logging.getLogger().addHandler(log)
    async with (
        server(kind) as config,
        ServerManager([config], connect_timeout_s=START_S, call_timeout_s=START_S) as manager,
    ):
        await manager.list_tools()

        async def call() -> tuple[bool, str]:
            try:
                result = await manager.call_tool("noisy__go", {"deed": deed}, timeout_s=CALL_S)
            except BridgeError as error:
                return False, str(error)
            return not result.is_error, str(result.value)

        succeeded, heard = await probe.watch(call)
        logging.getLogger().removeHandler(log)
        if len(log.lines) > LOG_LINES:
            return Ending(kept=False, heard=f"{len(log.lines)} lines of log: {log.lines[-1]}")
        again = await manager.call_tool("noisy__go", {"deed": "well again"})
        kept = again.value == "well again" and (succeeded if well else said in heard)
        return Ending(kept=kept, heard=heard)


@attack("noise", "a server writes junk lines to stdout for ever", deadline_s=CALL_S)
async def junk(probe: Probe) -> Ending:
    return await called(probe, "stdio", "junk")


@attack("noise", "junk in the middle of a spoken turn", deadline_s=CALL_S)
async def spoken(probe: Probe) -> Ending:
    """The person hears a sentence, and the next turn works."""
    entry = {"command": sys.executable, "args": command("stdio"), "allow": ["eval"]}
    script = (
        [Call("noisy__go", {"deed": "junk"})],
        ["That did not work."],
        [Call("noisy__go", {"deed": "well again"})],
        ["It works again."],
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mcp_servers.json"
        file.write_text(json.dumps({"noisy": entry}))
        settings = load_settings({"CAAL_CUES": "off", "CAAL_MCP_SERVERS": str(file)}, NOWHERE)
        async with (
            StandInModel(*script) as model,
            AgentConversation(
                CaalAgent(settings=settings, warm=False),
                LLM(model.model, "ollama", model.url, native_tools=True),
            ) as talk,
        ):
            await talk.agent.reload_tools()
            first = await probe.watch(lambda: talk.say("Go on, junk."))
            told = json.dumps(model.chats[-1].json["messages"][-1])
            second = await talk.say("And again?")
            again = json.dumps(model.chats[-1].json["messages"][-1])
    kept = "does not stop sending" in told and "well again" in again
    return Ending(
        kept and second.spoken == "It works again.", f"{first.spoken} (the model was told: {told})"
    )


@attack("noise", "20 MB on stderr, then the answer", deadline_s=CALL_S)
async def stderr(probe: Probe) -> Ending:
    return await called(probe, "stdio", "stderr", well=True)


@attack("noise", "blank lines for ever", deadline_s=CALL_S)
async def blank(probe: Probe) -> Ending:
    return await called(probe, "stdio", "blank")


@attack("noise", "junk over WebSocket for ever", deadline_s=CALL_S)
async def junk_frames(probe: Probe) -> Ending:
    return await called(probe, "ws", "junk")


@attack("noise", "empty frames over WebSocket for ever", deadline_s=CALL_S)
async def blank_frames(probe: Probe) -> Ending:
    return await called(probe, "ws", "blank")


@attack("noise", "three notifications of 12 MB, then the answer", deadline_s=CALL_S)
async def giants(probe: Probe) -> Ending:
    return await called(probe, "stdio", "giants", well=True)


@attack("noise", "three notifications of 12 MB over WebSocket", deadline_s=CALL_S)
async def giant_frames(probe: Probe) -> Ending:
    return await called(probe, "ws", "giants", well=True)


@attack("noise", "giants of small objects that say at their end what they are", deadline_s=CALL_S)
async def late_giants(probe: Probe) -> Ending:
    return await called(probe, "stdio", "late giants", well=True)


@attack("noise", "sampling requests for ever, and no answer is read", deadline_s=CALL_S)
async def sampling(probe: Probe) -> Ending:
    return await called(probe, "stdio", "sampling")


@attack("noise", "list_changed and progress for ever", deadline_s=CALL_S)
async def changes(probe: Probe) -> Ending:
    first = await called(probe, "stdio", "changed")
    return await called(probe, "stdio", "progress") if first.kept else first


@attack("noise", "100,000 answers that nobody asked for", deadline_s=CALL_S)
async def strangers(probe: Probe) -> Ending:
    return await called(probe, "stdio", "strangers")


@attack("noise", "a banner, a progress bar and log messages, as honest servers", deadline_s=CALL_S)
async def banner(probe: Probe) -> Ending:
    return await called(probe, "stdio", "banner", well=True)


@attack("noise", "JSON that is deep, broken, or no text at all", deadline_s=CALL_S)
async def broken(probe: Probe) -> Ending:
    for kind in ("stdio", "ws"):
        ending = await called(probe, kind, "broken", well=True)
        if not ending.kept:
            return Ending(False, f"{kind}: {ending.heard}")
    # There the first answer of a stream is the call's.
    return await called(probe, "http", "broken", "not JSON that can be read")


async def listed(probe: Probe, kind: str, what: str, noted: str) -> Ending:
    """A list of tools that is `what`; its first tool can be called all the same."""
    async with (
        server("stdio") as warm,
        ServerManager([warm], connect_timeout_s=START_S) as manager,
    ):
        await manager.list_tools()
    async with server(kind, what) as config:
        manager = await probe.watch(ServerManager([config], connect_timeout_s=START_S).__aenter__)
        try:
            await probe.watch(manager.list_tools)
            notes = " ".join(manager.servers[0].notes)
            answer = await manager.call_tool("noisy__go", {"deed": "well again"})
        finally:
            await manager.__aexit__(None, None, None)
    return Ending(kept=answer.value == "well again" and noted in notes, heard=notes)


@attack("noise", "a page of 10,000 tools", deadline_s=CALL_S)
async def many_tools(probe: Probe) -> Ending:
    return await listed(probe, "stdio", "many", "more than 2000 tools")


@attack("noise", "a page of 10,000 tools over HTTP", deadline_s=CALL_S)
async def many_tools_far(probe: Probe) -> Ending:
    return await listed(probe, "http", "many", "more than 2000 tools")


@attack("noise", "a list of tools without a last page", deadline_s=CALL_S)
async def endless_list(probe: Probe) -> Ending:
    return await listed(probe, "stdio", "endless", "more than 100 pages")


@attack("noise", "a tool whose schema has 150,000 parameters", deadline_s=CALL_S)
async def giant_schema(probe: Probe) -> Ending:
    return await listed(probe, "stdio", "giant", "wide is described at too great length")


@attack("noise", "comments of an event stream for ever", deadline_s=CALL_S)
async def comments(probe: Probe) -> Ending:
    return await called(probe, "http", "comments")


@attack(
    "noise",
    "events that end their lines with CR, and events of no known kind",
    deadline_s=2 * CALL_S,
)
async def other_events(probe: Probe) -> Ending:
    first = await called(probe, "http", "returns")
    return await called(probe, "http", "other events") if first.kept else first


@attack("noise", "an event without an end", deadline_s=CALL_S)
async def endless_event(probe: Probe) -> Ending:
    return await called(probe, "http", "endless event", "")


@attack("noise", "a stream that ends at once and is to be opened again at once", deadline_s=CALL_S)
async def again(probe: Probe) -> Ending:
    return await called(probe, "http", "again", "gave no answer within 4 s")


@attack("noise", "a JSON body in chunks of one byte", deadline_s=CALL_S)
async def small_chunks(probe: Probe) -> Ending:
    return await called(probe, "http", "small chunks", "")


@attack("noise", "a page of HTML and a header, each without an end", deadline_s=CALL_S)
async def endless_head(probe: Probe) -> Ending:
    first = await called(probe, "http", "page", "HTTP 500")
    return await called(probe, "http", "header", "") if first.kept else first


@attack("noise", "interim responses for ever", deadline_s=CALL_S)
async def interim(probe: Probe) -> Ending:
    return await called(probe, "http", "informational", "")


@attack("compression", "an MCP server's answer of 200 MB in 200 kB", deadline_s=CALL_S)
async def bomb(probe: Probe) -> Ending:
    first = await called(probe, "http", "bomb", "packs its answers")
    return (
        await called(probe, "http", "redirected bomb", "packs its answers") if first.kept else first
    )
