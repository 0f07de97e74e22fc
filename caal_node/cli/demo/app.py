"""`caal-node demo` sets up a spoken conversation, from microphone to loudspeaker, and holds it."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from rich.console import Console

from caal_node.cli.demo.audio import load_requests
from caal_node.cli.demo.conversation import DemoConversation, DemoScene, DemoTotals
from caal_node.cli.demo.livekit_server import LiveKitServer, obtain_server
from caal_node.cli.demo.local_scene import LocalScene
from caal_node.cli.demo.model_choice import choose_model
from caal_node.cli.demo.room_scene import RoomScene, WorkerProcess
from caal_node.cli.demo.tools import open_n8n, write_settings
from caal_node.config.settings import load_settings
from caal_node.speech import fetch_local

AGENT: Final = "caal_node.cli.demo.agent:DemoAgent"
_NEXT: Final = """\
Three things to try next
  1. type to it             caal-node chat --agent caal_node.cli.demo.agent:DemoAgent
  2. give it your own tools copy mcp_servers.json.example to mcp_servers.json, or set N8N_URL
  3. see what is missing    caal-node doctor"""


async def run_demo(out: Path, *, use_room: bool) -> None:
    """Speak the recorded requests to an agent; write demo.wav and demo.jsonl into `out`.

    Raises:
        CaalError: something cannot be had, or a turn did not end.
    """
    console, began = Console(highlight=False), time.monotonic()
    if not console.is_terminal:
        console.width = 120  # a log is read in windows of any width
    settings = load_settings()
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
            "CAAL_AGENT": AGENT,
            "CAAL_SHOW_ARGUMENTS": "on",
            "CAAL_STT": "local",
            "CAAL_TTS": "local",
            "CAAL_VAD": "local",
        }
        console.print(f"[dim]model  {model_title}[/]")
        console.print(f"[dim]tools  set_timer (agent), {n8n_title}, MCP server time (stdio)[/]")
        if server is None:
            why = "no livekit-server here, no Go" if use_room else "as asked"
            console.print(f"[yellow]room   none: a local audio loop ({why})[/]")
        scene = await _make_scene(console, server, folder, env, open_)
        console.print("[dim]starting the agent and warming its model up …[/]")
        await open_.enter_async_context(scene)
        console.print(f"[dim]ready after {time.monotonic() - began:.0f} s[/]")
        conversation = DemoConversation(scene, console, out / "demo.jsonl")
        await conversation.hold(load_requests())
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
