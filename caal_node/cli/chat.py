"""`caal-node chat`: the whole node, typed to instead of spoken to."""

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
from caal_node.room.cue_sink import SilentCueSink

LINE_CHARS = 4_000
"""Characters of one typed turn; what is longer is cut, as a model's window would be full of it."""


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
        transcript.ready(len(agent.table), agent.failed)
    try:
        async for line in _lines(standard_input(), as_json=as_json):
            turn: RunResult[None] = session.run(user_input=line)
            await turn
    finally:
        await session.aclose()
        await _close_model(session.llm)


async def _close_model(model: object) -> None:
    from caal_node.models.llm import LLM

    if isinstance(model, LLM):
        await model.aclose()


async def _lines(descriptor: int | None, *, as_json: bool) -> AsyncIterator[str]:
    """Typed lines, behind a prompt where a person types them; empty ones are passed over."""
    prompt = not as_json and descriptor is not None and os.isatty(descriptor)
    lines = typed_lines(descriptor, max_chars=LINE_CHARS)
    while True:
        if prompt:
            print("> ", end="", flush=True)
        line = await anext(lines, None)
        if line is None:
            return
        if line := line.strip():
            yield line
