"""`caal-node up` and `caal-node page`: from one command to a conversation in the browser."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr
from rich.console import Console

from caal_node.cli.checks import run_check
from caal_node.cli.checks.room_and_sound import livekit_away, require_livekit
from caal_node.cli.chosen_agent import agent_class
from caal_node.cli.doctor import STT, TTS
from caal_node.cli.model_server import ready_settings, sentence
from caal_node.cli.processes.doctor import doctor_findings
from caal_node.cli.processes.livekit_server import LiveKitServer, obtain_server
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.config.process_guard import guard_process
from caal_node.config.settings import Settings
from caal_node.control.app import make_app, make_server, require_port
from caal_node.control.room_agents import LiveKitRooms
from caal_node.core.addresses import is_loopback
from caal_node.core.errors import ConfigError
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.page.certificate import CERTFILE, KEYFILE, Certificate
from caal_node.page.findings import Findings
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


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where the page is served, and how: over https with a certificate."""

    host: str
    port: int
    certificate: Certificate | None = None

    @classmethod
    def of(cls, host: str, port: int, certfile: Path | None, keyfile: Path | None) -> PageAddress:
        """Return the address that the options of a command name.

        Raises:
            ConfigError: there is a key without a certificate.
        """
        if certfile is None and keyfile is not None:
            raise ConfigError(f"{KEYFILE} is given alone; give {CERTFILE} as well")
        return cls(host, port, None if certfile is None else Certificate(certfile, keyfile))

    @property
    def is_for_others(self) -> bool:
        """Whether other devices can reach it."""
        return not is_loopback(self.host)

    @property
    def name(self) -> str:
        """The host in the link; on other devices this machine is not `localhost`."""
        if self.host in ("0.0.0.0", "::"):  # noqa: S104 - compared alone
            return "localhost"
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def url(self) -> str:
        """The address in the link, without the key."""
        return f"{'http' if self.certificate is None else 'https'}://{self.name}:{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which the server may be called."""
        return ("*",) if self.is_for_others else (*LOCAL, self.name)

    def require(self) -> None:
        """Raises: ConfigError: the certificate cannot be used, or the port is taken."""
        if self.certificate is not None:
            self.certificate.require()
        require_port(self.host, self.port)

    def passes_on(self, livekit_url: str) -> bool:
        """Say whether a page reaches LiveKit's signalling through its own server alone.

        Browsers refuse an unencrypted connection to a page that came over https, and a server on
        loopback is out of reach of other devices.
        """
        parts = urlsplit(livekit_url)
        if parts.scheme not in ("ws", "http"):
            return False
        away = self.is_for_others and is_loopback(parts.hostname or "")
        return self.certificate is not None or away


def run_up(at: PageAddress, *, browser: bool) -> None:
    """Run a LiveKit server if none is set, a worker and the page, until Ctrl-C.

    Raises:
        ConfigError: something is missing; its text says what to do.
        CaalError: the worker ended by itself.
    """
    console = Console(stderr=True, highlight=False)
    settings = guard_process()
    require_page()
    agent_class(settings.agent)
    at.require()
    settings = ready_settings(settings)
    speech = _speech(settings, console)
    with suppress(KeyboardInterrupt):
        asyncio.run(_up(settings, speech, console, at, browser=browser))


def run_page(at: PageAddress, *, browser: bool) -> None:
    """Serve the page alone, for a LiveKit server and a worker that run already, until Ctrl-C.

    Raises:
        ConfigError: the LiveKit server is not set or refuses the keys, or the address is taken.
    """
    console = Console(stderr=True, highlight=False)
    settings = guard_process()
    require_page()
    require_livekit(settings)
    at.require()
    with suppress(KeyboardInterrupt):
        asyncio.run(_page_alone(settings, console, at, browser=browser))


async def _page_alone(
    settings: Settings, console: Console, at: PageAddress, *, browser: bool
) -> None:
    if (away := await livekit_away(settings)) is not None:
        raise ConfigError(away)
    await _serve(settings, console, at, browser=browser)


async def _up(
    settings: Settings,
    speech: Mapping[str, str],
    console: Console,
    at: PageAddress,
    *,
    browser: bool,
) -> None:
    async with AsyncExitStack() as open_:
        settings = await _with_livekit(settings, console, at, open_)
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
        serving = _serve(settings, console, at, browser=browser, env=env, with_api=True)
        await worker.wait_while_alive(serving)


async def _with_engine(settings: Settings, open_: AsyncExitStack) -> Settings:
    """Return settings with one embedded engine for all rooms in place of one in each."""
    if settings.api != "embedded":
        return settings
    path = await asyncio.to_thread(find_gguf, settings.model)
    engine = await open_.enter_async_context(EmbeddedEngine(path, ctx=settings.num_ctx))
    served = {"api": "openai", "model": engine.name, "base_url": engine.base_url}
    return settings.model_copy(update=served)


async def _with_livekit(
    settings: Settings, console: Console, at: PageAddress, open_: AsyncExitStack
) -> Settings:
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
    server = await open_.enter_async_context(LiveKitServer(program, media_on_lan=at.is_for_others))
    console.print(f"room   a livekit-server of its own at {server.url}", markup=False)
    own = {
        "livekit_url": server.url,
        "livekit_api_key": server.api_key,
        "livekit_api_secret": SecretStr(server.api_secret),
    }
    return settings.model_copy(update=own)


async def _serve(
    settings: Settings,
    console: Console,
    at: PageAddress,
    *,
    browser: bool,
    env: Mapping[str, str] | None = None,
    with_api: bool = False,
) -> None:
    """Serve the page until Ctrl-C. `env` is what a worker of this command has been given."""
    key, via_page = new_key(), at.passes_on(settings.livekit_url or "")
    control = None
    if with_api and settings.control_token is not None:
        control = make_app(settings, LiveKitRooms.of(settings))
        console.print(f"api    the control API at {at.url}", markup=False)
    app = make_page_app(
        settings,
        LiveKitRooms.of(settings),
        key=key,
        hosts=at.hosts,
        findings=Findings(lambda: doctor_findings(Path.cwd(), env or {})),
        control=control,
        via_page=via_page,
    )
    link = f"{at.url}/#key={key}"
    if at.is_for_others:
        console.print(*_for_other_devices(at), sep="\n", style="yellow", markup=False)
    console.print("\nTalk to it here (Ctrl-C ends everything):\n")
    console.print(f"  {link}\n", style="bold", markup=False, soft_wrap=True)
    if browser and _has_desktop():
        loop = asyncio.get_running_loop()
        # In a thread, as some browsers are waited for.
        loop.call_later(OPEN_S, loop.run_in_executor, None, webbrowser.open, link)
    files = at.certificate
    server = make_server(
        app,
        at.host,
        at.port,
        certfile=files and files.certfile,
        keyfile=files and files.keyfile,
        ws="auto" if via_page else "none",
    )
    await server.serve()


def _for_other_devices(at: PageAddress) -> Iterator[str]:
    """Yield what to know about a page that other devices can reach."""
    if at.certificate is None:
        yield (
            "Browsers give a page a microphone only at localhost or over https: for other devices, "
            f"add {CERTFILE} and {KEYFILE}."
        )
    if at.name == "localhost":
        name = "the name" if at.certificate is None else "a name of the certificate"
        yield f"On other devices, write {name} of this machine in place of localhost."


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
