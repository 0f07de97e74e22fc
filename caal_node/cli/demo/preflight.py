"""What the demo needs, looked at before it builds, fetches or starts anything."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import httpx2
import psutil

from caal_node import weights
from caal_node.cli.checks.check import Finding, fail, in_thread, ok, warn
from caal_node.cli.demo.livekit_server import find_server
from caal_node.cli.demo.servers import WEIGHT, find_ollama_model
from caal_node.cli.model_server import sentence
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.http_client import open_client
from caal_node.weights import Weight, cache

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
        ConfigError: something is missing; its text has a line, with the mend, for each.
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
        return fail("out", f"{out} is no folder", f"Run: mkdir -p {out}.")
    if not os.access(out, os.W_OK | os.X_OK):
        return fail("out", f"{out} cannot be written", "Name another folder with --out.")
    if shutil.disk_usage(out).free < RECORDING_BYTES:
        return fail("out", f"the disk of {out} is full", "Name another folder with --out.")
    return ok("out", str(out))


def _memory(needed: int) -> Finding:
    available = psutil.virtual_memory().available
    found = f"{available / 1e9:.1f} GB of memory are free, and some {needed / 1e9:.1f} GB are used"
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
    mend = "Connect it, or set HF_ENDPOINT to a mirror of the hub."
    return fail("network", f"{what}, and the model hub does not answer", mend)


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
