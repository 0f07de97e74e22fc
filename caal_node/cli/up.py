"""`caal-node up` and `caal-node page`: from one command to a conversation in the browser."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import webbrowser
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from rich.console import Console

from caal_node.cli.checks import run_check
from caal_node.cli.checks.room_and_sound import livekit_away, require_livekit
from caal_node.cli.chosen_agent import agent_class
from caal_node.cli.doctor import STT, TTS
from caal_node.cli.model_server import ready_settings, sentence
from caal_node.cli.processes.livekit_server import LiveKitServer, obtain_server
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.config.process_guard import guard_process
from caal_node.config.settings import Settings
from caal_node.control.app import make_server, require_port
from caal_node.control.room_agents import LiveKitRooms
from caal_node.core.addresses import is_loopback
from caal_node.core.errors import ConfigError
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.page.server import make_page_app, new_key, require_page
from caal_node.weights.gguf import find_gguf

OPEN_S: Final = 0.5
"""Seconds until the browser is opened: the server answers by then."""
LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
_NO_SERVER: Final = (
    "there is no LiveKit server: install livekit-server (it is then found on PATH), or Go (it is "
    "then built once), or set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET"
)
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")


def run_up(host: str, port: int, *, browser: bool) -> None:
    """Run a LiveKit server if none is set, a worker and the page, until Ctrl-C.

    Raises:
        ConfigError: something is missing; its text says what to do.
        CaalError: the worker ended by itself.
    """
    console = Console(stderr=True, highlight=False)
    settings = guard_process()
    require_page()
    agent_class(settings.agent)
    require_port(host, port)
    settings = ready_settings(settings)
    speech = _speech(settings, console)
    with suppress(KeyboardInterrupt):
        asyncio.run(_up(settings, speech, console, host, port, browser=browser))


def run_page(host: str, port: int, *, browser: bool) -> None:
    """Serve the page alone, for a LiveKit server and a worker that run already, until Ctrl-C.

    Raises:
        ConfigError: the LiveKit server is not set or refuses the keys, or the address is taken.
    """
    console = Console(stderr=True, highlight=False)
    settings = guard_process()
    require_page()
    require_livekit(settings)
    require_port(host, port)
    with suppress(KeyboardInterrupt):
        asyncio.run(_page_alone(settings, console, host, port, browser=browser))


async def _page_alone(
    settings: Settings, console: Console, host: str, port: int, *, browser: bool
) -> None:
    if (away := await livekit_away(settings)) is not None:
        raise ConfigError(away)
    await _serve(settings, console, host, port, browser=browser)


async def _up(
    settings: Settings,
    speech: Mapping[str, str],
    console: Console,
    host: str,
    port: int,
    *,
    browser: bool,
) -> None:
    async with AsyncExitStack() as open_:
        settings = await _with_livekit(settings, console, open_)
        console.print(f"model  {settings.model} ({settings.api})", markup=False)
        settings = await _with_engine(settings, open_)
        secret = settings.livekit_api_secret
        env = {
            **speech,
            "LIVEKIT_URL": settings.livekit_url or "",
            "LIVEKIT_API_KEY": settings.livekit_api_key or "",
            "LIVEKIT_API_SECRET": secret.get_secret_value() if secret else "",
            "CAAL_API": settings.api,
            "CAAL_MODEL": settings.model,
            "CAAL_BASE_URL": settings.base_url or "",
        }
        logs = Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="caal-up-")))
        worker = WorkerProcess(Path.cwd(), env, log=logs / "worker.log")
        with console.status("starting the agent"):
            await open_.enter_async_context(worker)
        await worker.wait_while_alive(_serve(settings, console, host, port, browser=browser))


async def _with_engine(settings: Settings, open_: AsyncExitStack) -> Settings:
    """Return settings with one embedded engine for all rooms in place of one in each."""
    if settings.api != "embedded":
        return settings
    path = await asyncio.to_thread(find_gguf, settings.model)
    engine = await open_.enter_async_context(EmbeddedEngine(path, ctx=settings.num_ctx))
    served = {"api": "openai", "model": engine.name, "base_url": engine.base_url}
    return settings.model_copy(update=served)


async def _with_livekit(settings: Settings, console: Console, open_: AsyncExitStack) -> Settings:
    """Return settings with a LiveKit server that answers: the set one, or one that is started."""
    if settings.livekit_url:
        require_livekit(settings)
        if (away := await livekit_away(settings)) is not None:
            raise ConfigError(away)
        console.print(f"room   the LiveKit server at {settings.livekit_url}", markup=False)
        return settings
    program = await asyncio.to_thread(obtain_server, console)
    if program is None:
        raise ConfigError(_NO_SERVER)
    server = await open_.enter_async_context(LiveKitServer(program))
    console.print(f"room   a livekit-server of its own at {server.url}", markup=False)
    own = {
        "livekit_url": server.url,
        "livekit_api_key": server.api_key,
        "livekit_api_secret": SecretStr(server.api_secret),
    }
    return settings.model_copy(update=own)


async def _serve(
    settings: Settings, console: Console, host: str, port: int, *, browser: bool
) -> None:
    key, named = new_key(), _name_of(host)
    hosts = (*LOCAL, named) if is_loopback(host) else ("*",)
    app = make_page_app(settings, LiveKitRooms.of(settings), key=key, hosts=hosts)
    link = f"http://{named}:{port}/#key={key}"
    if not is_loopback(host):
        console.print(
            "Browsers give a page a microphone only at localhost or over https: put a proxy with "
            "a certificate in front for other machines.",
            style="yellow",
        )
    console.print("\nTalk to it here (Ctrl-C ends everything):\n")
    console.print(f"  {link}\n", style="bold", markup=False, soft_wrap=True)
    if browser and _has_desktop():
        loop = asyncio.get_running_loop()
        # In a thread, as some browsers are waited for.
        loop.call_later(OPEN_S, loop.run_in_executor, None, webbrowser.open, link)
    await make_server(app, host, port).serve()


def _name_of(host: str) -> str:
    """Return the name of an address in a link."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared alone
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _has_desktop() -> bool:
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, _DISPLAYS))


def _speech(settings: Settings, console: Console) -> dict[str, str]:
    """Return the settings for a worker without the local speech that is not installed: typed words
    work without any."""
    env = dict[str, str]()
    for name, spec, check in (("CAAL_STT", settings.stt, STT), ("CAAL_TTS", settings.tts, TTS)):
        for finding in asyncio.run(run_check(check, settings)) if spec == "local" else ():
            if finding.status == "fail":
                console.print(
                    f"{sentence(finding)} Until then, type.", style="yellow", markup=False
                )
                env[name] = "none"
    return env
