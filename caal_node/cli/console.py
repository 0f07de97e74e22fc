"""`caal-node console`: LiveKit's console, with this machine's microphone and loudspeaker.

LiveKit runs the console's one job in a thread beside its screen, and waits for the job's session
however long. So what people's code imports and makes is made here, in the main thread, and what
still goes wrong in the job ends the console.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import typer
from livekit.agents import AgentServer, JobContext, Plugin
from livekit.agents.cli import AgentsConsole

from caal_node.cli.checks.sound import find_devices
from caal_node.cli.chosen_agent import agent_class, chosen_agent
from caal_node.cli.model_server import ready_settings, sentence
from caal_node.cli.terminal_transcript import TerminalTranscript
from caal_node.config.settings import Settings
from caal_node.core.errors import CaalError, ConfigError
from caal_node.factories import SpeechModels, make_voice, session_llm, voice_session
from caal_node.models.llm import LLM
from caal_node.room.relink_participant import start_and_stay

TEXT: Final = "--text"
DEVICES: Final = ("--input-device", "--output-device")
LOG_LEVEL: Final = "WARN"
"""LiveKit's own, DEBUG, buries a conversation; --log-level and LIVEKIT_LOG_LEVEL go before it."""


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

    server = AgentServer(log_level=LOG_LEVEL)
    server.rtc_session(entrypoint)
    with _plugins_of_the_job():
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
    session = voice_session(settings, voice, model)
    if isinstance(session.llm, LLM):
        context.add_shutdown_callback(session.llm.aclose)

    def closed(event: Any) -> None:
        if event.error is not None:  # of speech; the model's are spoken, and the session goes on
            end(CaalError(f"the conversation ended: {getattr(event.error, 'error', event.error)}"))

    session.on("close", closed)
    screen: Any = AgentsConsole.get_instance()

    async def close_devices() -> None:
        # They would go on to call a loop that is closed.
        await asyncio.to_thread(screen.set_microphone_enabled, False)
        await asyncio.to_thread(screen.set_speaker_enabled, False)

    context.add_shutdown_callback(close_devices)
    # LiveKit shows a typed conversation itself, and of a spoken one no word.
    told = {} if typed else {"on_event": TerminalTranscript(screen.console, echo_user=True)}
    await start_and_stay(session, chosen_agent(settings, None, **told), context.room)


def _voice(settings: Settings, arguments: Sequence[str]) -> SpeechModels:
    """Return the parts of speech. Typing needs none, and goes without those that are missing."""
    if TEXT not in arguments:
        named = any(each.partition("=")[0] in DEVICES for each in arguments)
        _require_sound(default_devices=not named)
        return make_voice(settings)
    try:
        return make_voice(settings)
    except ConfigError as error:
        typer.echo(f"Without speech, as {error}", err=True)
        return SpeechModels(None, None, None)


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
