"""`caal-node chat`: a person types to the agent instead of speaking."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from livekit.agents.voice.run_result import RunResult
from rich.console import Console

from caal_node.cli.chosen_agent import chosen_agent
from caal_node.cli.terminal_transcript import TerminalTranscript
from caal_node.cli.typed_lines import standard_input, typed_lines
from caal_node.config.settings import Settings
from caal_node.core.events import Event, to_json
from caal_node.factories import session_llm, text_session
from caal_node.models.llm import LLM
from caal_node.room.cue_player import SilentCueSink

MAX_LINE_CHARS = 4_000
"""A longer turn is cut, as it would fill a small model's window."""


async def run_chat(settings: Settings, agent_name: str | None, *, as_json: bool) -> None:
    """Run turns until the input ends.

    Raises:
        ConfigError: the settings or the agent are wrong.
    """
    console = Console(highlight=False)
    transcript = TerminalTranscript(console)

    def on_event(event: Event) -> None:
        if as_json:
            print(to_json(event), flush=True)
        else:
            transcript(event)

    agent = chosen_agent(settings, agent_name, on_event=on_event, cue_sink=SilentCueSink())
    session = text_session(settings, await session_llm(settings))
    await session.start(agent)
    if not as_json:
        transcript.print_ready(len(agent.table), agent.failed)
    try:
        async for line in _typed_turns(standard_input(), as_json=as_json):
            turn: RunResult[None] = session.run(user_input=line)
            await turn
    finally:
        await session.aclose()
        if isinstance(session.llm, LLM):
            await session.llm.aclose()


async def _typed_turns(descriptor: int | None, *, as_json: bool) -> AsyncIterator[str]:
    """Yield the typed lines that are not empty, with a prompt where a person types them."""
    prompt = not as_json and descriptor is not None and os.isatty(descriptor)
    lines = typed_lines(descriptor, max_chars=MAX_LINE_CHARS)
    while True:
        if prompt:
            print("> ", end="", flush=True)
        line = await anext(lines, None)
        if line is None:
            return
        if line := line.strip():
            yield line
