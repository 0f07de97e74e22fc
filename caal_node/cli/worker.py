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
import os
import sys
import warnings
from typing import Final

import typer
from livekit.agents import AgentServer, JobContext, JobProcess, cli
from livekit.agents.cli.log import ColoredFormatter
from pydantic import SecretStr

from caal_node.cli.checks.check import run_check
from caal_node.cli.checks.room import livekit_away, require_livekit
from caal_node.cli.chosen_agent import agent_class, chosen_agent
from caal_node.cli.console import run_console
from caal_node.cli.doctor import STT, TTS
from caal_node.cli.model_server import ready_settings, sentence
from caal_node.cli.output import console, on_terminal
from caal_node.config.process_guard import guard_process
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.factories import SpeechModels, make_voice, session_llm, voice_session
from caal_node.models.llm import LLM
from caal_node.network.rooms import enforce_with_rooms
from caal_node.room.relink_participant import start_and_stay

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


def make_server(settings: Settings, *, always_free: bool) -> AgentServer:
    """Return the worker's server. With `always_free` it takes a room however busy the machine is.

    livekit-server gives no room to a worker at full load, and a developer's own model fills every
    core just when the room opens.
    """
    secret = settings.livekit_api_secret
    server = AgentServer(
        ws_url=settings.livekit_url,
        api_key=settings.livekit_api_key,
        api_secret=secret.get_secret_value() if secret else None,
        setup_fnc=load_models,
        load_fnc=(lambda: 0.0) if always_free else None,
        max_retry=TRIES,
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
    opened = settings.open_session_host
    await start_and_stay(session, agent, context.room, open_session_host=opened)
