"""`caal-node start | dev | console`: the LiveKit worker.

LiveKit runs one process a room, so what a session needs is made in `entrypoint`, in that process.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import typer
from livekit.agents import AgentServer, JobContext, JobProcess, Plugin, cli
from livekit.agents.cli import AgentsConsole
from livekit.agents.cli.log import ColoredFormatter
from pydantic import SecretStr

from caal_node.cli.checks import run_check
from caal_node.cli.checks.room_and_sound import find_devices, livekit_away, require_livekit
from caal_node.cli.chosen_agent import agent_class, chosen_agent
from caal_node.cli.doctor import STT, TTS
from caal_node.cli.model_server import ready_settings, sentence
from caal_node.cli.output import TerminalTranscript, console, on_terminal
from caal_node.config.process_guard import guard_process
from caal_node.config.settings import Settings
from caal_node.control.app import require_port
from caal_node.core.errors import CaalError, ConfigError
from caal_node.core.paths import worker_metrics
from caal_node.factories import SpeechModels, make_voice, session_llm, voice_session
from caal_node.models.llm import LLM
from caal_node.network.rooms import enforce_with_rooms
from caal_node.room.other_participants import start_and_stay
from mcp_bridge.core.files import make_private_folder

# `caal-node console`: LiveKit's console, with this machine's microphone and loudspeaker.
#
# LiveKit runs the console's one job in a thread beside its screen, and waits for the job's session
# however long. So what people's code imports and makes is made here, in the main thread, and what
# still goes wrong in the job ends the console.

TEXT: Final = "--text"
DEVICES: Final = ("--input-device", "--output-device")
LOG_LEVEL: Final = "WARN"
"""LiveKit's own, DEBUG, buries a conversation; --log-level and LIVEKIT_LOG_LEVEL go before it."""
_BEGIN_S: Final = 120.0
"""Seconds for which keys wait for the session: a model that is not in memory yet takes a minute."""


def run_console(
    settings: Settings, arguments: Sequence[str], hand_over: Callable[[AgentServer], None]
) -> None:
    """Make all that the session needs, and hand LiveKit's console over to `hand_over`.

    Raises:
        ConfigError: no model answers, a part of speech is missing, or there is no microphone.
        CaalError: the session ended by an error.
    """
    if not sys.stdin.isatty():
        raise ConfigError("console needs a terminal; in a pipe, run: caal-node chat")
    agent_class(settings.agent)  # one's own mistake is told before a missing server
    settings = ready_settings(settings)
    voice = _voice(settings, arguments)
    ended_by: list[Exception] = []
    begun = threading.Event()

    def end(error: Exception) -> None:
        ended_by.append(error)
        # LiveKit's handler ends the console; the main thread may be waiting where only a signal
        # to the process reaches it.
        os.kill(os.getpid(), signal.SIGTERM)

    async def entrypoint(context: JobContext) -> None:
        try:
            await _converse(context, settings, voice, end, typed=TEXT in arguments)
        except Exception as error:
            end(error)
        finally:
            begun.set()

    server = AgentServer(log_level=LOG_LEVEL)
    server.rtc_session(entrypoint)
    with _plugins_of_the_job(), _every_key_read(begun):
        try:
            hand_over(server)
        finally:
            if ended_by:
                raise ended_by[0]


async def _converse(
    context: JobContext,
    settings: Settings,
    voice: SpeechModels,
    end: Callable[[Exception], None],
    *,
    typed: bool,
) -> None:
    model = await session_llm(settings)
    # In LiveKit's development mode every session makes a detector of turns that it does not use,
    # and that warns of missing keys for LiveKit's cloud.
    os.environ.pop("LIVEKIT_DEV_MODE", None)
    # LiveKit shows a typed conversation itself, and of a spoken one no word.
    screen: Any = AgentsConsole.get_instance()
    told = {} if typed else {"on_event": TerminalTranscript(screen.console, echo_user=True)}
    agent = chosen_agent(settings, None, **told)
    session = voice_session(settings, voice, model, userdata=agent.make_userdata())
    if isinstance(session.llm, LLM):
        context.add_shutdown_callback(session.llm.aclose)

    def closed(event: Any) -> None:
        if event.error is not None:  # of speech; the model's are spoken, and the session goes on
            end(CaalError(f"the conversation ended: {getattr(event.error, 'error', event.error)}"))

    session.on("close", closed)

    async def close_devices() -> None:
        # They would go on to call a loop that is closed.
        await asyncio.to_thread(screen.set_microphone_enabled, False)
        await asyncio.to_thread(screen.set_speaker_enabled, False)

    context.add_shutdown_callback(close_devices)
    await start_and_stay(session, agent, context.room)


def _voice(settings: Settings, arguments: Sequence[str]) -> SpeechModels:
    """Return the parts of speech. Typing needs none, and goes without those that are missing."""
    if TEXT not in arguments:
        named = any(each.partition("=")[0] in DEVICES for each in arguments)
        _require_sound(default_devices=not named)
        return make_voice(settings)
    _do_without_sound()
    try:
        return make_voice(settings)
    except ConfigError as error:
        typer.echo(f"Without speech, as {error}", err=True)
        return SpeechModels(None, None, None)


def _do_without_sound() -> None:
    """Give LiveKit's console a `sounddevice` without devices where PortAudio is not installed.

    It imports the package before it looks whether anybody wants to speak. Who then switches from
    typing to speaking reads LiveKit's own words about a missing microphone.
    """
    try:
        importlib.import_module("sounddevice")
    except (ImportError, OSError) as error:
        absent: Any = ModuleType("sounddevice", str(error))
        absent.default = SimpleNamespace(device=(None, None))
        absent.query_devices = _no_devices
        sys.modules["sounddevice"] = absent


def _no_devices(*_: object, **__: object) -> None:
    raise OSError("PortAudio is not installed")


def _require_sound(*, default_devices: bool) -> None:
    found = asyncio.run(find_devices())
    if found.status != "ok" and (default_devices or "PortAudio" in found.found):
        raise ConfigError(sentence(found))


@contextmanager
def _plugins_of_the_job() -> Generator[None]:
    """Let the console's job register LiveKit plugins that its code imports only when it runs.

    LiveKit wants that in the main thread, where a room's own process has its job; the console's
    has a thread. The list and the listeners (they set up loggers) have no other user meanwhile.
    """
    checked = Plugin.__dict__["register_plugin"]

    def register(cls: type[Plugin], plugin: Plugin) -> None:
        cls.registered_plugins.append(plugin)
        cls.emitter.emit("plugin_registered", plugin)

    Plugin.register_plugin = classmethod(register)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        Plugin.register_plugin = checked


@contextmanager
def _every_key_read(begun: threading.Event) -> Generator[None]:
    """Let the console keep what is typed or pasted before its session has begun, or while it draws.

    LiveKit shows its prompt before the session runs, and a line that is entered then ends the
    console. It also empties the terminal's queue (`TCSAFLUSH`) before each key that it reads.
    """
    keys: Any = importlib.import_module("livekit.agents.cli.readchar")
    flushing = keys._posix_readchar

    def read_key() -> str:
        if not begun.wait(_BEGIN_S):
            begun.set()  # What hinders the session is shown; keys are read all the same.
        return _read_key()

    keys._posix_readchar = read_key
    try:
        yield
    finally:
        keys._posix_readchar = flushing


def _read_key() -> str:
    import termios  # Windows has none, and LiveKit reads its keys in another way

    kept = termios.tcgetattr(sys.stdin)
    by_key = termios.tcgetattr(sys.stdin)
    by_key[3] = by_key[3] & ~(termios.ICANON | termios.ECHO) | termios.ISIG
    try:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, by_key)
        return sys.stdin.read(1)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, kept)


TRIES: Final = 8_640
"""Attempts to reach the LiveKit server, ten seconds apart: a day. After LiveKit's own 16, two
minutes, the worker would end, and somebody had to start it again once the server is back."""
TRIED_ON: Final = "The worker tries on until it answers."
ONLY_ASKING: Final = frozenset({"--help", "--list-devices"})
"""Options with which nothing is run, so nothing has to be there."""
HELP_COLUMNS: Final = 240
"""The longest line of LiveKit's help, with room to spare: in a pipe it is not broken."""


def run_worker(command: str, arguments: list[str]) -> None:
    """Hand over to LiveKit's own command line, with the settings' address and keys.

    Raises:
        ConfigError: a setting is wrong, or something that the command needs is missing.
    """
    settings = guard_process()

    def hand_over(server: AgentServer) -> None:
        sys.argv = ["caal-node", command, *arguments]
        with warnings.catch_warnings():
            # Its successor is a separate Go program; this one is there wherever livekit-agents is.
            warnings.simplefilter("ignore", DeprecationWarning)
            cli.run_app(server)

    if ONLY_ASKING.intersection(arguments):
        if not on_terminal():
            # LiveKit's help is always in a box, which takes its width from here.
            os.environ["COLUMNS"] = str(HELP_COLUMNS)
        hand_over(AgentServer())
    elif command == "console":
        run_console(settings, arguments, hand_over)
    else:
        settings = with_options(settings, arguments)
        require_livekit(settings)
        agent_class(settings.agent)
        _require_speech(settings)
        ready_settings(settings)
        if (away := asyncio.run(livekit_away(settings))) is not None:
            typer.echo(f"caal-node: {away} {TRIED_ON}", err=True)
        take_colours_from_logs()
        hand_over(make_server(settings, always_free=command != "start"))


def take_colours_from_logs() -> None:
    """Have LiveKit's logs in plain text where NO_COLOR or a pipe wants that: it has no option."""
    out = console()
    if out.no_color or not out.is_terminal:
        no_code = classmethod(lambda _, *codes: "")  # pyright: ignore[reportUnknownLambdaType]
        ColoredFormatter._esc = no_code  # pyright: ignore


def with_options(settings: Settings, arguments: list[str]) -> Settings:
    """Return the settings with the address and the keys of LiveKit's own options, if any."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--url", dest="livekit_url")
    options.add_argument("--api-key", dest="livekit_api_key")
    options.add_argument("--api-secret", dest="livekit_api_secret", type=SecretStr)
    given = vars(options.parse_known_args(arguments)[0])
    return settings.model_copy(update={k: v for k, v in given.items() if v is not None})


def _require_speech(settings: Settings) -> None:
    """Say here what is missing, once: each room's process would say it again, and end."""
    for spec, check in ((settings.stt, STT), (settings.tts, TTS)):
        for finding in asyncio.run(run_check(check, settings)) if spec == "local" else ():
            if finding.status == "fail":
                raise ConfigError(sentence(finding))


METRICS_PORT: Final = "OTEL_EXPORTER_PROMETHEUS_PORT"
"""OpenTelemetry's name for the port at which Prometheus fetches metrics."""
PORT_MAX: Final = 65_535


def metrics_port(env: Mapping[str, str]) -> int | None:
    """Return the port of 127.0.0.1 at which metrics are served; None for no metrics.

    Raises:
        ConfigError: the variable is no port.
    """
    if not (given := env.get(METRICS_PORT, "").strip()):
        return None
    if len(given) <= len(str(PORT_MAX)) and given.isdecimal() and 1 <= int(given) <= PORT_MAX:
        return int(given)
    raise ConfigError(f"{METRICS_PORT}: {given[:20]} is no port; write a number such as 9464")


def make_server(settings: Settings, *, always_free: bool) -> AgentServer:
    """Return the worker's server. With `always_free` it takes a room however busy the machine is.

    livekit-server gives no room to a worker at full load, and a developer's own model fills every
    core just when the room opens.
    """
    secret = settings.livekit_api_secret
    counts: Path | None = None
    if (port := metrics_port(os.environ)) is not None:
        require_port("127.0.0.1", port, f"choose another in {METRICS_PORT}")
        make_private_folder(counts := worker_metrics(port))
    server = AgentServer(
        ws_url=settings.livekit_url,
        host="127.0.0.1",  # of its health and metrics; LiveKit's own is every network
        api_key=settings.livekit_api_key,
        api_secret=secret.get_secret_value() if secret else None,
        setup_fnc=load_models,
        load_fnc=(lambda: 0.0) if always_free else None,
        max_retry=TRIES,
        prometheus_port=port,
        prometheus_multiproc_dir=None if counts is None else str(counts),
    )
    server.rtc_session(entrypoint)
    return server


def load_models(process: JobProcess) -> None:
    """Read settings and speech models in a room's own process, before the room needs them."""
    process.userdata["settings"] = settings = guard_process()
    enforce_with_rooms(settings.network)
    process.userdata["voice"] = make_voice(settings)
    # A full collection over everything that was imported stalls the loop for 180 ms, in the middle
    # of a turn; what is loaded now stays for the room's life anyway.
    gc.collect()
    gc.freeze()


async def entrypoint(context: JobContext) -> None:
    """Run the configured agent in one room, in a session of its own."""
    settings: Settings = context.proc.userdata["settings"]
    model = await session_llm(settings)
    agent = chosen_agent(settings, None)
    voice: SpeechModels = context.proc.userdata["voice"]
    session = voice_session(settings, voice, model, userdata=agent.make_userdata())
    if isinstance(session.llm, LLM):
        context.add_shutdown_callback(session.llm.aclose)
    opened = settings.room_sees == "everything"
    await start_and_stay(session, agent, context.room, open_session_host=opened)
