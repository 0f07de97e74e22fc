"""Through how many hands one turn goes: the product's files, and the moves between them.

Run: `python -m tests.bench.turn_trace [--json] [--files] [--livekit]`.

The turn is typed, to a `CaalAgent` in an `AgentSession` without a room: a request to the model that
answers with a call, the call to an MCP server over stdio (the published time server, a process of
its own), and a second request whose reply of nine words is streamed. The model is the stand-in of
the tests, in this process. The agent's warm-up and one turn of the same words come first and are
not counted, so that nothing is imported, connected or compiled for the first time in what is. That
turn stands in the history.

What counts, from the call of `session.run` to its end, on every thread of this process:

- A **file** counts when a function of it runs: a .py file of caal_node, mcp_bridge or n8n. The
  bodies of modules are left out, and so is generated code without a file (a dataclass's methods).
- A **move** is a call or a resumption whose nearest product frame below it on the stack belongs to
  another file, or a return, a yield, an await that waits, or an exception that goes back to one.
  Frames of libraries between the two are ignored. What a library or the event loop begins with no
  product frame below is not a move, and neither is its end. So one plain call into another file
  and back is two moves.
- **Before the first byte** are those moves that happen, on whatever thread, before a socket that is
  connected to the model's server sends.

Beside them stand the lines and the modules of the product's code.

`--livekit` counts the same turn of LiveKit's own `Agent`, with its OpenAI plugin and its MCP
toolset, in LiveKit's files alone: what its client libraries (openai, mcp, httpx) do is left out,
while what caal-node does in their place counts as its own.

The figures are the same on every machine but for what depends on how bytes arrive: a reply that the
kernel hands over in other pieces is resumed a few times more or less.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final
from urllib.parse import urlsplit

import livekit.agents
from livekit.agents import Agent, AgentSession, TurnHandlingOptions, llm, mcp
from livekit.plugins import openai

from caal_node import LLM, CaalAgent
from tests.bench.table import print_table
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("caal_node", "mcp_bridge", "n8n")
LIVEKIT: Final = Path(livekit.agents.__file__).parents[2]
TURN_S: Final = 60.0
WORDS: Final = "What time is it in Paris?"
SERVER: Final = "time"
TIME_SERVER: Final = ["-m", "mcp_server_time"]
TOOL: Final = "get_current_time"
ARGUMENTS: Final = {"timezone": "Europe/Paris"}
REPLY: Final = "It is noon in Paris, and the sun shines."
SENDS: Final = ("send", "sendall", "sendmsg", "sendto")


@dataclass
class TurnTrace:
    """What ran in one turn. Files are named as they lie under the project's root."""

    calls: Counter[str] = field(default_factory=Counter[str])
    """How often a function of the file was called or resumed."""
    moves: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """How often it went from the first file to the second."""
    before_first_byte: int | None = None
    """None: no byte went to the model's server."""

    def moves_of(self, file: str) -> int:
        """Moves that arrive in the file."""
        return sum(count for (_, target), count in self.moves.items() if target == file)


class TurnTracer:
    """Counts what runs of `packages` under `root` while `tracing` is entered.

    `install` comes before the threads that are to be seen: Python 3.11 can set a profile function
    for the threads to come, and for none that is there.
    """

    def __init__(self, root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> None:
        self._root, self._packages = root, packages
        self._files: dict[str, str | None] = {}
        self._tracing = False
        self._port = 0
        self.trace = TurnTrace()

    def install(self) -> None:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def uninstall(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    @contextlib.contextmanager
    def tracing(self, port: int) -> Generator[TurnTrace]:
        """`port` is that of the model's server."""
        self.trace, self._port, self._tracing = TurnTrace(), port, True
        try:
            yield self.trace
        finally:
            self._tracing = False

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self._tracing:
            return
        if event == "c_call":
            self._note_send(argument)
        elif event in ("call", "return") and (file := self._file(frame)) is not None:
            if event == "call":
                self.trace.calls[file] += 1
            below = self._below(frame)
            if below is not None and below != file:
                self.trace.moves[(below, file) if event == "call" else (file, below)] += 1

    def _note_send(self, function: Any) -> None:
        if self.trace.before_first_byte is not None or function.__name__ not in SENDS:
            return
        sender = getattr(function, "__self__", None)
        if isinstance(sender, socket.socket) and sender.family == socket.AF_INET:
            with contextlib.suppress(OSError):  # not connected to anybody
                if sender.getpeername()[1] == self._port:
                    self.trace.before_first_byte = self.trace.moves.total()

    def _below(self, frame: FrameType) -> str | None:
        """The file of the nearest product frame under `frame`."""
        below = frame.f_back
        while below is not None:
            if (file := self._file(below)) is not None:
                return file
            below = below.f_back
        return None

    def _file(self, frame: FrameType) -> str | None:
        """The product's file that a frame runs code of; None for all other code."""
        name = frame.f_code.co_filename
        if name not in self._files:
            path = Path(name)
            inside = path.relative_to(self._root) if path.is_relative_to(self._root) else None
            ours = inside is not None and inside.parts[0] in self._packages
            self._files[name] = str(inside) if ours else None
        return None if frame.f_code.co_name == "<module>" else self._files[name]


def say(asked: Asked) -> Reply:
    """Calls the tool where it is asked in `WORDS`, and then speaks."""
    last = asked.json["messages"][-1]
    if last["role"] == "user" and last["content"].endswith(WORDS):
        names = [tool["function"]["name"] for tool in asked.json["tools"]]
        return [Call(next(name for name in names if name.endswith(TOOL)), ARGUMENTS)]
    return [REPLY]


@contextlib.contextmanager
def only_these_settings(folder: Path) -> Generator[None]:
    """The time server alone, in a folder without a caal.toml, and nothing kept from before."""
    folder.chmod(0o700)
    servers = folder / "mcp_servers.json"
    server = {"command": sys.executable, "args": TIME_SERVER, "connect_timeout": 60}
    servers.write_text(json.dumps({SERVER: server}), encoding="utf-8")
    servers.chmod(0o600)
    kept = dict(os.environ)
    prefixes = ("CAAL_", "OLLAMA_", "N8N_", "LIVEKIT_")
    for name in [name for name in os.environ if name.startswith(prefixes)]:
        del os.environ[name]
    os.environ["CAAL_MCP_SERVERS"] = str(servers)
    os.environ["CAAL_STATE"] = str(folder / "state")
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


async def trace_one_turn() -> TurnTrace:
    """The trace of the second of two turns of a `CaalAgent`.

    Raises:
        RuntimeError: the turn went otherwise than it should; its trace would mean nothing.
    """
    async with StandInModel(answer=say) as server:
        model = LLM(server.model, api="ollama", base_url=server.url, native_tools=True)
        try:
            return await _traced(TurnTracer(), server, model, CaalAgent)
        finally:
            await model.aclose()


async def trace_livekit() -> TurnTrace:
    """The same of LiveKit's own agent and plugin."""

    def agent() -> Agent:
        time_server = mcp.MCPServerStdio(command=sys.executable, args=TIME_SERVER)
        tools = [mcp.MCPToolset(id=SERVER, mcp_server=time_server)]
        return Agent(instructions="You are helpful.", tools=tools)

    async with StandInModel(answer=say) as server:
        model = openai.LLM(model=server.model, base_url=f"{server.url}/v1", api_key="none")
        return await _traced(TurnTracer(LIVEKIT, ("livekit",)), server, model, agent)


async def _traced(
    tracer: TurnTracer, server: StandInModel, model: llm.LLM, make_agent: Callable[[], Agent]
) -> TurnTrace:
    tracer.install()
    try:
        session: AgentSession[Any] = AgentSession(
            llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
        )
        await session.start(make_agent())  # pyright: ignore[reportUnknownMemberType] - LiveKit's
        try:
            await _turn(session)
            asked = len(server.chats)
            with tracer.tracing(urlsplit(server.url).port or 0) as trace:
                await _turn(session)
            said = [
                (item.type, getattr(item, "text_content", None))
                for item in session.history.items[-4:]
            ]
            kinds = ["message", "function_call", "function_call_output", "message"]
            if [kind for kind, _ in said] != kinds or said[-1][1] != REPLY:
                raise RuntimeError(f"not a turn with one call: {said}")
            if len(server.chats) - asked != 2:
                raise RuntimeError(f"{len(server.chats) - asked} requests in place of two")
            return trace
        finally:
            await session.aclose()
    finally:
        tracer.uninstall()


async def _turn(session: AgentSession[Any]) -> None:
    async with asyncio.timeout(TURN_S):
        await session.run(user_input=WORDS)


def size_of_product() -> tuple[int, int]:
    """Lines and modules of the product's code."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths), len(paths)


def figures(trace: TurnTrace) -> dict[str, int | None]:
    lines, modules = size_of_product()
    return {
        "files": len(trace.calls),
        "moves": trace.moves.total(),
        "moves_before_first_byte": trace.before_first_byte,
        "product_lines": lines,
        "product_modules": modules,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--json", action="store_true", help="the figures as one JSON object")
    options.add_argument("--files", action="store_true", help="list the files, busiest first")
    options.add_argument("--livekit", action="store_true", help="LiveKit's own agent and plugin")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, only_these_settings(Path(folder)):
        trace = asyncio.run(trace_livekit() if given.livekit else trace_one_turn())
    found: dict[str, Any] = dict(figures(trace))
    files = [(file, count, trace.moves_of(file)) for file, count in trace.calls.most_common()]
    if given.json:
        if given.files:
            found["by_file"] = {file: {"calls": c, "moves_in": m} for file, c, m in files}
        print(json.dumps(found))
        return
    print_table("one typed turn with one MCP call", ("figure", "count"), list(found.items()))
    if given.files:
        print_table("its files", ("file", "calls and resumptions", "moves into it"), files)


if __name__ == "__main__":
    main()
