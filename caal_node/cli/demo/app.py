"""`caal-node demo` sets up a spoken conversation, from microphone to loudspeaker, and holds it.

It is held in a scene: a real room, or a loop inside this process (`scenes.py`).
Each request is spoken there, and what comes of it is counted.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol, Self

import httpx2
import psutil
from rich.console import Console

from caal_node import weights
from caal_node.cli.checks import Finding, fail, in_thread, ok, warn
from caal_node.cli.demo.scenes import (
    AudioTimeline,
    LocalScene,
    RoomScene,
    SpokenRequest,
    load_requests,
)
from caal_node.cli.demo.servers import (
    WEIGHT,
    choose_model,
    find_ollama_model,
    open_n8n,
    write_settings,
)
from caal_node.cli.model_server import sentence
from caal_node.cli.output import TerminalTranscript
from caal_node.cli.processes.livekit_server import LiveKitServer, find_server, obtain_server
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.config.process_guard import guard_process
from caal_node.config.settings import Settings
from caal_node.core.errors import CaalError, ConfigError
from caal_node.core.events import CuePlayed, Event, Spoken, ToolCallEnded, TurnEnded, to_json
from caal_node.http_client import open_client
from caal_node.speech import fetch_local
from caal_node.weights import Weight, cache

# What the demo needs, looked at before it builds, fetches or starts anything.

SPEECH: Final = (weights.WHISPER_TINY_EN, weights.PIPER_JOE)
MODULES: Final = ("faster_whisper", "piper", "mcp_server_time")
ENGINE: Final = "xllamacpp"
BUILD_BYTES: Final = 2 << 30
"""Go's modules and its build cache for livekit-server."""
RECORDING_BYTES: Final = 32 << 20
"""demo.wav is 6 MB a minute."""
MEMORY_BYTES: Final = 1_200_000_000
"""What speech, the worker and livekit-server take."""
HUB_S: Final = 5.0


async def require_all(settings: Settings, out: Path, *, use_room: bool) -> Sequence[Finding]:
    """Return remarks on what the demo can do without.

    Raises:
        ConfigError: something is missing; its text has a line, with the fix, for each.
    """
    found = await check_all(settings, out, use_room=use_room)
    if failed := [sentence(each) for each in found if each.status == "fail"]:
        raise ConfigError("\n".join(failed))
    return [each for each in found if each.status == "warn"]


async def check_all(settings: Settings, out: Path, *, use_room: bool) -> list[Finding]:
    """Look at everything, nothing built, fetched or started yet."""
    engine = await find_ollama_model(settings) is None
    needed = (*SPEECH, WEIGHT) if engine else SPEECH
    lacking = [weight for weight in needed if await in_thread(lambda w=weight: _absent(w))]
    build = use_room and find_server() is None and shutil.which("go") is not None
    memory = MEMORY_BYTES + (WEIGHT.size * 2 if engine else 0)
    found = [
        _extras((*MODULES, ENGINE) if engine else MODULES),
        _disk(cache.root(), _size(lacking) + (BUILD_BYTES if build else 0)),
        _writable(out),
        _memory(memory),
    ]
    if use_room:
        found.append(_ports())
    if lacking:
        found.append(await _network(lacking))
    return found


def _absent(weight: Weight) -> bool:
    return weights.present(weight) is None


def _extras(modules: Iterable[str]) -> Finding:
    if missing := [name for name in modules if find_spec(name) is None]:
        found = f"not installed: {', '.join(missing)}"
        return fail("extras", found, 'Run: pip install "caal-node[demo]".')
    return ok("extras", "installed")


def _disk(folder: Path, needed: int) -> Finding:
    there = _nearest(folder)
    free = shutil.disk_usage(there).free
    if needed and not os.access(there, os.W_OK | os.X_OK):
        return fail("disk", f"{there} cannot be written", "Set CAAL_CACHE to a folder that can.")
    if free < needed:
        found = f"{free / 1e6:,.0f} MB free at {there}, and {needed / 1e6:,.0f} MB are needed"
        return fail("disk", found, "Make room, or set CAAL_CACHE to a folder on another disk.")
    return ok("disk", f"{free / 1e6:,.0f} MB free")


def _writable(out: Path) -> Finding:
    if not out.is_dir():
        return fail("out", f"{out} is not a folder", f"Run: mkdir -p {out}.")
    if not os.access(out, os.W_OK | os.X_OK):
        return fail("out", f"{out} cannot be written", "Name another folder with --out.")
    if shutil.disk_usage(out).free < RECORDING_BYTES:
        return fail("out", f"the disk of {out} is full", "Name another folder with --out.")
    return ok("out", str(out))


def _memory(needed: int) -> Finding:
    available = psutil.virtual_memory().available
    found = f"{available / 1e9:.1f} GB of memory are free, and about {needed / 1e9:.1f} GB are used"
    if available < needed // 2:
        return fail("memory", found, "Close other programs.")
    if available < needed:
        return warn("memory", found, "It may be slow; close other programs.")
    return ok("memory", found)


def _ports() -> Finding:
    """Try what livekit-server will do: a TCP and a UDP port of the loopback, and a datagram."""
    try:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            tcp.listen()
            udp.bind(("127.0.0.1", 0))
            udp.settimeout(1)
            udp.sendto(b"?", udp.getsockname())
            udp.recv(1)
    except OSError as error:
        found = f"no port of the loopback can be used ({error.strerror or error})"
        return fail("ports", found, "Allow it, or run: caal-node demo --no-room.")
    return ok("ports", "free")


def _size(lacking: Sequence[Weight]) -> int:
    return sum(weight.size for weight in lacking)


async def _network(lacking: Sequence[Weight]) -> Finding:
    what = (
        f"{_size(lacking) / 1e6:,.0f} MB to fetch ({', '.join(weight.title for weight in lacking)})"
    )
    if await _hub_answers():
        return ok("network", what)
    fix = "Connect it, or set HF_ENDPOINT to a mirror of the hub."
    return fail("network", f"{what}, and the model hub does not answer", fix)


async def _hub_answers() -> bool:
    if find_spec("huggingface_hub") is None:
        return False
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    client = await asyncio.to_thread(open_client, timeout=HUB_S)  # it reads certificates
    async with client:
        try:
            await client.head(endpoint)
        except httpx2.HTTPError:
            return False
    return True


def _nearest(folder: Path) -> Path:
    """Return the folder itself, or the one that exists in which it would be made."""
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())


TURN_S: Final = 180.0
"""Seconds a turn may take on two busy cores, where 36 and over 90 were seen; a usual one takes 8 to
15, most of them speech."""
SPEAK_S: Final = 30.0
"""Seconds for one request, in real time; the longest is a tenth of it."""
RING_S: Final = 60.0
"""Seconds until the timer of the first request must have rung; it is one of thirty."""
WORDS_S: Final = 2.5
"""Seconds that "Your 30 second timer is done." takes."""
PAUSE_S: Final = 0.6
"""People leave this many seconds between the agent's last word and the next request."""

_NEXT: Final = """\
Three things to try next
  1. type to it             caal-node tools add timers, then caal-node chat
  2. give it your own tools copy mcp_servers.json.example to mcp_servers.json, or set N8N_URL
  3. see what is missing    caal-node doctor"""


class DemoScene(Protocol):
    """A place where an agent hears a participant. It ends all that it has started."""

    timeline: AudioTimeline
    """What the participant hears, and says."""
    events: asyncio.Queue[Event]
    """The events of the conversation, in their order."""

    async def __aenter__(self) -> Self:
        """Start everything, and wait until the agent listens and its model is warm.

        Raises:
            CaalError: it did not come up; the message says why.
        """
        ...

    async def __aexit__(self, *_: object) -> None: ...

    async def speak(self, request: SpokenRequest) -> None:
        """Let the participant say it, in real time; return when the last sample is out."""
        ...


@dataclass(slots=True)
class DemoTotals:
    """Counts of what happened in the conversation."""

    turns: int = 0
    tiers: Counter[str] = field(default_factory=Counter[str])
    cues: int = 0
    rang: bool = False
    told: bool = False
    """Whether something was said once it had rung."""
    failed: int = 0
    turn_ms: list[int] = field(default_factory=list[int])

    def count(self, event: Event) -> None:
        match event:
            case ToolCallEnded(tier=tier, outcome=outcome):
                self.tiers[tier] += 1
                self.failed += outcome != "ok"
            case TurnEnded(duration_ms=took):
                self.turns += 1
                self.turn_ms.append(took)
            case CuePlayed(kind=kind):
                self.cues += 1
                self.rang = self.rang or kind == "ring"
            case Spoken():
                self.told = self.rang
            case _:
                pass


class DemoConversation:
    """Has the requests spoken in `scene`, prints each event, and writes it to `log` as a line."""

    def __init__(self, scene: DemoScene, console: Console, log: Path) -> None:
        self.totals = DemoTotals()
        self._scene = scene
        self._console = console
        self._transcript = TerminalTranscript(console, echo_user=True)
        self._log = log

    async def hold(self, requests: list[SpokenRequest], after_ring: list[SpokenRequest]) -> None:
        """Speak each request, wait until its turn has ended, and then for the timer to ring.

        Args:
            after_ring: What is said to the timer when it rings.

        Raises:
            CaalError: a request could not be spoken, or a turn did not end.
        """
        began = time.monotonic()
        with self._log.open("w", encoding="utf-8") as log:

            def note(event: Event) -> None:
                log.write(f'{{"at":{time.monotonic() - began:.3f},{to_json(event)[1:]}\n')
                self.totals.count(event)
                self._transcript(event)

            for request in requests:
                await self._take_turn(request, note)
            if await self._ring_heard(note):
                for request in after_ring:
                    await self._take_turn(request, note)
            else:
                self._console.print("[yellow]no timer has rung[/]")

    async def _take_turn(self, request: SpokenRequest, note: Callable[[Event], None]) -> None:
        self._console.print(f"\n[bold]person[/]   “{request.words}”")
        await self._speak(request)
        async for event in self._turn_events():
            note(event)
        await asyncio.sleep(PAUSE_S)

    async def _ring_heard(self, note: Callable[[Event], None]) -> bool:
        """Wait until a timer has rung and its words are over; return whether one did."""
        try:
            async with asyncio.timeout(RING_S):
                while not self.totals.told:
                    note(await self._scene.events.get())
        except TimeoutError:
            return False
        await asyncio.sleep(WORDS_S)
        return True

    async def _speak(self, request: SpokenRequest) -> None:
        try:
            async with asyncio.timeout(SPEAK_S):
                await self._scene.speak(request)
        except TimeoutError:
            raise CaalError(f"a request was not spoken in {SPEAK_S:g} seconds") from None

    async def _turn_events(self) -> AsyncGenerator[Event]:
        try:
            async with asyncio.timeout(TURN_S):
                while True:
                    event = await self._scene.events.get()
                    yield event
                    if isinstance(event, TurnEnded):
                        return
        except TimeoutError:
            raise CaalError(f"a turn did not end in {TURN_S:g} seconds") from None


async def run_demo(out: Path, *, use_room: bool) -> None:
    """Speak the recorded requests to an agent; write demo.wav and demo.jsonl into `out`.

    Raises:
        CaalError: something cannot be had, or a turn did not end.
    """
    console, began = Console(highlight=False), time.monotonic()
    if not console.is_terminal:
        console.width = 120  # a log is read in windows of any width
    settings = guard_process()
    for remark in await require_all(settings, out, use_room=use_room):
        console.print(f"{sentence(remark)}", style="yellow", markup=False)
    async with AsyncExitStack() as open_:
        folder = Path(tempfile.mkdtemp(prefix="caal-demo-"))
        open_.callback(shutil.rmtree, folder, ignore_errors=True)
        server = await asyncio.to_thread(obtain_server, console) if use_room else None
        await asyncio.to_thread(fetch_local, stt="local", tts="local", console=console)
        model_title, model_env = await choose_model(settings, console, open_)
        n8n_title, n8n_env = await open_n8n(settings, open_)
        env = {
            **model_env,
            **n8n_env,
            **write_settings(folder),
            "CAAL_STATE": str(folder / "state"),  # nobody's own timers ring in it
            "CAAL_ROOM_SEES": "arguments",
            "CAAL_STT": "local",
            "CAAL_TTS": "local",
            "CAAL_VAD": "local",
        }
        console.print(f"[dim]model  {model_title}[/]")
        console.print(f"[dim]tools  timers (agent), {n8n_title}, MCP server time (stdio)[/]")
        if server is None:
            why = "no livekit-server here, no Go" if use_room else "as asked"
            console.print(f"[yellow]room   none: a local audio loop ({why})[/]")
        scene = await _make_scene(console, server, folder, env, open_)
        console.print("[dim]starting the agent and warming its model up …[/]")
        await open_.enter_async_context(scene)
        console.print(f"[dim]ready after {time.monotonic() - began:.0f} s[/]")
        conversation = DemoConversation(scene, console, out / "demo.jsonl")
        await conversation.hold(load_requests(), load_requests("after_ring"))
        seconds = await asyncio.to_thread(scene.timeline.write, out / "demo.wav")
    _print_totals(console, conversation.totals, time.monotonic() - began)
    console.print(f"{out / 'demo.wav'}    {seconds:.0f} s: what the participant heard, and said")
    console.print(f"{out / 'demo.jsonl'}  every event, with its time\n")
    console.print(_NEXT)


async def _make_scene(
    console: Console,
    server: Path | None,
    folder: Path,
    env: Mapping[str, str],
    open_: AsyncExitStack,
) -> DemoScene:
    if server is None:
        return LocalScene(folder, {**os.environ, **env})
    livekit = await open_.enter_async_context(LiveKitServer(server))
    console.print(f"[dim]room   a real livekit-server at {livekit.url}[/]")
    keys = {
        "LIVEKIT_URL": livekit.url,
        "LIVEKIT_API_KEY": livekit.api_key,
        "LIVEKIT_API_SECRET": livekit.api_secret,
    }
    worker = WorkerProcess(folder, {**env, **keys})
    return RoomScene(livekit.url, livekit.api_key, livekit.api_secret, worker)


def _print_totals(console: Console, totals: DemoTotals, took_s: float) -> None:
    calls = ", ".join(f"{tier} {count}" for tier, count in sorted(totals.tiers.items()))
    console.print(
        f"\n[bold]{totals.turns} spoken turns[/] in {took_s:.0f} s: "
        f"tool calls by tier {calls or 'none'} ({totals.failed} failed), {totals.cues} cues, "
        f"median turn {statistics.median(totals.turn_ms) / 1000:.1f} s"
    )
