"""A day with an agent: turns, reloads, servers that come and go, barge-ins. What does it leave?

Run: `python -m tests.bench.soak --hours 24 --virtual` or `--hours 1 [--room]`, `--plot FILE.svg`.
The model's server, n8n and an MCP server are processes that are killed and come back; another MCP
server crashes in the middle of calls. `--virtual` lets the clock run on between two turns, so that
a day takes minutes: what waits for half an hour waits for it. `--room` holds the sessions in a
real LiveKit room, with a listener. It ends with 1 where a turn ended in silence, or where tasks,
descriptors, processes, memory or the log grow with the hours.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import random
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.bench.soak_clock import pass_time  # first: what is imported later keeps its clocks

# isort: split
import psutil
from livekit import rtc
from livekit.agents import AgentSession, TurnHandlingOptions, function_tool, room_io

from caal_node import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.events import Event, Spoken, ToolCallEnded
from caal_node.models.llm import LLM
from caal_node.room.cue_player import TRACK_NAME
from tests.bench.far_ear import FarEar
from tests.bench.obedient_model import told
from tests.bench.soak_peers import FAULTS, Peers, started_peers
from tests.bench.soak_plot import draw
from tests.bench.table import print_table
from tests.stand_ins.livekit_server import LiveKit, find_server, running

SESSION_S: Final = 3600.0
"""A person stays for an hour; then the next one comes into a room of their own."""
BETWEEN_S: Final = {True: 60.0, False: 5.0}
"""Seconds between two things that happen, by a virtual clock and by a real one."""
TURN_S: Final = 60.0
"""A turn that takes longer, by the real clock, has failed."""
SETTLED: Final = 0.2
"""The share of a soak after which nothing may grow any more: caches are full, imports made."""
GROWTH_MB: Final = 24.0
LOG_RECORDS_AN_EVENT: Final = 8.0
"""What went wrong is logged, once each: LiveKit and this project together."""

_random: Final = random.Random(13)
_begun: Final = time.monotonic()


class Household(CaalAgent):
    @function_tool
    async def lamp(self, on: bool) -> str:
        """Switch the lamp."""
        return "on" if on else "off"


class LogVolume(logging.Handler):
    """Counts what is logged, and keeps nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.records = 0
        self.bytes = 0
        self.loudest: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        self.records += 1
        self.bytes += len(record.getMessage())
        self.loudest[f"{record.levelname} {record.name}: {record.msg}"[:90]] += 1


@dataclass(slots=True)
class Sample:
    hour: float
    memory_mb: float
    tasks: int
    descriptors: int
    processes: int
    log_kb: float


@dataclass(slots=True)
class Soak:
    peers: Peers
    log: LogVolume
    virtual: bool
    settings: Any
    happened: Counter[str] = field(default_factory=Counter[str])
    calls: Counter[str] = field(default_factory=Counter[str])
    silent: list[str] = field(default_factory=list[str])
    samples: list[Sample] = field(default_factory=list[Sample])
    """One at the end of each session, when nothing goes on, and in the middle of some."""
    between: list[Sample] = field(default_factory=list[Sample])
    """Those between two sessions."""
    spoken: int = 0

    def note(self, event: Event) -> None:
        self.spoken += isinstance(event, Spoken)
        if isinstance(event, ToolCallEnded):
            self.calls[f"{event.tool} {event.outcome}"] += 1

    def sample(self) -> Sample:
        process = psutil.Process()
        return Sample(
            (time.monotonic() - _begun) / 3600,
            process.memory_info().rss / 2**20,
            len(asyncio.all_tasks()),
            process.num_fds(),
            len(process.children(recursive=True)),
            self.log.bytes / 1024,
        )

    async def session(self, stack: Callable[[], Any], length_s: float) -> None:
        """One person's visit."""
        until = time.monotonic() + length_s
        async with stack() as (session, agent):
            await agent.warmed()
            while time.monotonic() < until:
                await self.event(session, agent)
                if self.virtual:
                    await pass_time(BETWEEN_S[True])
                else:
                    await asyncio.sleep(BETWEEN_S[False])
                if sum(self.happened.values()) % 20 == 0:
                    self.samples.append(self.sample())
        await asyncio.sleep(1)  # what a session leaves for the loop to end
        gc.collect()
        self.between.append(self.sample())
        self.samples.append(self.between[-1])

    async def event(self, session: AgentSession[Any], agent: CaalAgent) -> None:
        """One thing that happens, chosen by chance."""
        kind = _random.choices(
            ("turn", "talk", "barge-in", "reload", "outage", "model"), (50, 12, 16, 8, 9, 5)
        )[0]
        self.happened[kind] += 1
        match kind:
            case "turn":
                await self.turn(session, self.words())
            case "talk":
                await self.turn(session, "Good evening.")
            case "barge-in":
                await self.turn(session, self.words(), after_s=_random.uniform(0, 0.08))
            case "reload":
                async with asyncio.timeout(TURN_S):
                    await agent.reload_tools()
            case "outage":
                await self.outage(session)
            case _:
                words = _random.choice([*sorted(FAULTS), told("no_such_tool")])
                hangs = words == "model hang"
                await self.turn(session, words, after_s=0.2 if hangs else None)

    def words(self) -> str:
        return _random.choice(
            (
                told("lamp", on=True),
                told("get_weather", city="Paris"),
                told("sdk__echo", say="hello"),
                told("web__echo", say="hello"),
                told("sdk__dense", rows=200),
                told("sdk__fails"),
            )
        )

    async def outage(self, session: AgentSession[Any]) -> None:
        """A part goes, in the middle of a turn or before it, and comes back."""
        part = _random.choice(("sdk", "web", "n8n", "model"))
        self.happened[f"outage of {part}"] += 1
        if part == "sdk":
            await self.turn(session, told("sdk__crash"))
            return
        peer = {"web": self.peers.web, "n8n": self.peers.n8n, "model": self.peers.model}[part]
        words = told("get_weather", city="Paris") if part == "n8n" else told("web__echo", say="x")
        going = asyncio.create_task(self.turn(session, words))
        await asyncio.sleep(_random.uniform(0, 0.03))
        await peer.kill()
        await going
        await self.turn(session, words)
        await peer.start()

    async def turn(
        self, session: AgentSession[Any], words: str, after_s: float | None = None
    ) -> None:
        """A turn; with `after_s` the person speaks again after so long."""
        before = self.spoken
        async with asyncio.timeout(TURN_S):
            result = session.run(user_input=words)
            if after_s is not None:
                await asyncio.sleep(after_s)
                await session.interrupt(force=True)
            await result
        if after_s is None and self.spoken == before:
            self.silent.append(words)

    def faults(self) -> list[str]:
        """What grew or was silent, in words."""
        found = [f"silent: {words}" for words in self.silent[:5]]
        early = self.between[min(int(len(self.between) * SETTLED), len(self.between) - 1)]
        late = self.between[-1]
        for name in ("tasks", "descriptors", "processes"):
            first, last = getattr(early, name), getattr(late, name)
            if last > first:
                found.append(f"{name} grew from {first} to {last}")
        if late.memory_mb - early.memory_mb > GROWTH_MB:
            found.append(f"memory grew from {early.memory_mb:.0f} to {late.memory_mb:.0f} MB")
        if self.log.records > LOG_RECORDS_AN_EVENT * sum(self.happened.values()):
            found.append(f"{self.log.records:,} log records")
        return found


@asynccontextmanager
async def visit(soak: Soak, server: LiveKit | None) -> AsyncGenerator[tuple[Any, CaalAgent]]:
    """A session of an agent of its own; with a `server`, in a room with somebody who listens."""
    async with AsyncExitStack() as stack:
        # As in a worker: what one visit learns about a model is not the next one's.
        model = LLM("stand-in", "openai", soak.peers.model_url, native_tools=True)
        stack.push_async_callback(model.aclose)
        session: AgentSession[Any] = AgentSession(
            llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
        )
        agent = Household(settings=soak.settings, on_event=soak.note)
        options: dict[str, Any] = {}
        if server is not None:
            name = f"soak-{uuid.uuid4().hex[:8]}"
            ear = await stack.enter_async_context(FarEar(server, name, TRACK_NAME))
            room = rtc.Room()
            await room.connect(server.url, server.token(name, "agent", agent=True))
            stack.push_async_callback(room.disconnect)
            options["room"] = room
            options["room_options"] = room_io.RoomOptions(audio_input=False, audio_output=False)
        await session.start(agent, **options)
        stack.push_async_callback(session.aclose)
        if server is not None:
            await ear.hears()
        yield session, agent


@asynccontextmanager
async def set_up(virtual: bool, server: LiveKit | None) -> AsyncIterator[Soak]:
    log = LogVolume()
    logging.getLogger().addHandler(log)
    logging.getLogger().setLevel(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CAAL_STATE"] = str(Path(folder) / "state")
        async with started_peers() as peers:
            servers = Path(folder) / "mcp_servers.json"
            peers.write_servers(servers)
            settings = load_settings(
                {
                    "CAAL_CUES": "off" if server is None else "on",
                    "CAAL_MCP_SERVERS": str(servers),
                    "N8N_URL": f"http://127.0.0.1:{peers.n8n.port}",
                    "N8N_API_KEY": "recorded-api-key",
                },
                Path(folder) / "no-such-caal.toml",
            )
            yield Soak(peers, log, virtual, settings)


async def run(
    hours: float, sessions: int, virtual: bool, server: LiveKit | None, plot: Path | None
) -> bool:
    until = _begun + hours * 3600
    session_s = min(SESSION_S, hours * 3600 / sessions)
    async with set_up(virtual, server) as soak:
        while time.monotonic() < until:
            await soak.session(lambda: visit(soak, server), session_s)
            now = soak.between[-1]
            print(
                f"{now.hour:6.2f} h  {now.memory_mb:6.1f} MB  {now.tasks} tasks"
                f"  {now.descriptors} descriptors  {now.processes} processes"
                f"  {soak.log.records:,} log records  {len(soak.silent)} silent",
                flush=True,
            )
        faults = soak.faults()
        print_table("what happened", ("what", "times"), sorted(soak.happened.items()))
        print_table("how calls ended", ("tool", "times"), sorted(soak.calls.items()))
        print_table("what was logged most", ("record", "times"), soak.log.loudest.most_common(12))
        if plot is not None:
            clock = (
                "a virtual clock" if virtual else "real time, in a room" if server else "real time"
            )
            samples = soak.samples
            draw(
                plot,
                f"{sum(soak.happened.values()):,} events in {samples[-1].hour:.1f} h of {clock}",
                [each.hour for each in samples],
                {
                    "memory, MB": [each.memory_mb for each in samples],
                    "tasks": [each.tasks for each in samples],
                    "descriptors": [each.descriptors for each in samples],
                    "log, kB": [each.log_kb for each in samples],
                },
            )
    for fault in faults:
        print(f"FAILED: {fault}")
    return not faults


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--hours", type=float, default=1.0)
    options.add_argument("--virtual", action="store_true")
    options.add_argument("--room", action="store_true")
    options.add_argument("--plot", type=Path)
    options.add_argument("--sessions", type=int, default=10, help="at least so many")
    given = options.parse_args()
    if not given.room:
        return _ran(given, None)
    if (binary := find_server()) is None:
        print("no livekit-server found: nothing was measured", file=sys.stderr)
        return 1
    with running(binary) as server:
        return _ran(given, server)


def _ran(given: argparse.Namespace, server: LiveKit | None) -> int:
    well = asyncio.run(run(given.hours, given.sessions, given.virtual, server, given.plot))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
