"""`caal-node chat`: a person types to the agent instead of speaking."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, nullcontext
from typing import Final

from livekit.agents import APIConnectionError

from caal_node.cli.chat_commands import ChatCommands
from caal_node.cli.chat_history import FILE_NAME, open_history
from caal_node.cli.checks.local import unknown_settings
from caal_node.cli.chosen_agent import chosen_agent, has_own_model
from caal_node.cli.ctrl_c import CtrlC
from caal_node.cli.model_server import model_problem, sentence
from caal_node.cli.output import console
from caal_node.cli.terminal_transcript import TerminalTranscript
from caal_node.cli.tools import servers_started
from caal_node.cli.typed_lines import standard_input, typed_lines
from caal_node.cli.typed_prompt import TypedPrompt
from caal_node.config.settings import Settings
from caal_node.conversation import TURN_S, Conversation
from caal_node.core import paths
from caal_node.core.errors import ModelError, ModelUnreachable
from caal_node.core.events import Event, to_json
from caal_node.models.chat_context import known_failure
from caal_node.room.cue_player import SilentCueSink
from caal_node.tools.middleware.dry_run import DRY_RUN
from caal_node.tools.middleware.standard import dry_run_line

MAX_LINE_CHARS: Final = 4_000
"""A longer turn is cut, as it would fill a small model's window."""
ONCE_MORE: Final = "Ctrl-C once more ends the chat."
_TOLD: Final = ("the model's reply failed", "all LLMs are unavailable")
"""These log messages begin so; the second one is LiveKit's, of a chain of models."""
LAST_PRESS: Final = 2
"""So many presses of Ctrl-C, with no line in between, end the chat."""
STARTING_S: Final = 10.0
"""Seconds that lines from a pipe wait for slow MCP servers, which a person need not. It is what a
server has to start in by default."""
INTERRUPTED: Final = 130
"""The exit code of a program that Ctrl-C has ended."""


async def run_chat(
    settings: Settings, agent_name: str | None, *, as_json: bool, question: str | None = None
) -> int:
    """Run turns until the input ends, or `question` is answered, and return the exit code.

    Raises:
        ConfigError: the settings or the agent are wrong.
        ModelError: there is no model any more that can be asked, and nobody who waits for it.
    """
    out = console()
    transcript = TerminalTranscript(out)

    def on_event(event: Event) -> None:
        if as_json:
            print(to_json(event), flush=True)
        else:
            transcript(event)

    typed = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if typed and "detection" not in settings.model_fields_set:
        # Nobody hears a call by mistake here, and a reader does not wait for the last sentence.
        settings = settings.model_copy(update={"detection": "streamed"})
    lines = typed_lines(standard_input(), max_chars=MAX_LINE_CHARS)
    quiet = as_json or question is not None
    while True:
        agent = chosen_agent(settings, agent_name, on_event=on_event, cue_sink=SilentCueSink())
        commands = ChatCommands(agent, settings, out)
        async with AsyncExitStack() as stack:
            conversation = Conversation(agent)
            with transcript.waiting("looking for tools") if not quiet else nullcontext():
                await stack.enter_async_context(conversation)
                if not typed or question is not None:
                    await servers_started(agent, STARTING_S)  # nobody can ask again
                if not quiet:
                    await commands.find_names()
            chat = _Chat(conversation, commands)
            if question is not None:
                failure = await chat.say(question[:MAX_LINE_CHARS])
                _print_failure(failure)
                return 1 if failure else 0
            if as_json:
                return await _run_lines(lines, chat, None)
            for name, near in unknown_settings():
                hint = f"did you mean {near}?" if near else "unset it."
                transcript.print_note(f"{name} is not a setting; {hint}")
            transcript.print_ready(len(commands.tools))
            if line := dry_run_line(settings):
                transcript.print_note(f"{line}: {DRY_RUN}")
            if typed:
                code = await _run_typed(chat, commands, transcript)
            else:
                code = await _run_lines(lines, chat, commands)
        if not commands.is_cleared:
            return code
        settings = commands.settings  # /model may have changed them


def is_told(record: logging.LogRecord) -> bool:
    """Say whether the chat itself tells what is logged: why a reply of the model failed."""
    return str(record.msg).startswith(_TOLD)


def reply_problem(settings: Settings, failure: BaseException) -> str:
    """Return in one line why a model's reply failed, and what to do where that is known."""
    if (known := known_failure(failure)) is not None:
        return str(known)
    if settings.fallbacks and isinstance(failure, APIConnectionError):
        models = ", ".join(map(str, (settings.model, *settings.fallbacks)))
        return (
            f"none of {models} gave a reply; each but the last has {settings.fallback_after:g} s "
            "to begin one (CAAL_FALLBACK_AFTER), and --verbose logs the rest"
        )
    return f"{failure or type(failure).__name__}; --verbose logs its traceback"


class _Chat:
    """Takes one turn after the other."""

    def __init__(self, conversation: Conversation, commands: ChatCommands) -> None:
        self._conversation: Final = conversation
        self._commands: Final = commands

    async def say(self, words: str) -> str | None:
        """Say `words`, wait until everything that answers them is over, and return what failed.

        Raises:
            ModelError: there is no model any more, or LiveKit has given up asking it.
        """
        agent = self._conversation.agent
        try:
            await self._conversation.say(words)
        except TimeoutError:
            return f"the turn was ended after {TURN_S:g} seconds"
        except RuntimeError as error:
            raise ModelError(f"the chat is over, as its model keeps failing ({error})") from error
        failure, agent.reply_failure = agent.reply_failure, None
        if failure is None:
            return None
        settings = self._commands.settings
        if not has_own_model(agent) and (problem := await model_problem(settings)) is not None:
            raise ModelUnreachable(sentence(problem))
        return f"the model's reply failed: {reply_problem(self._commands.settings, failure)}"

    def cancel_calls(self) -> None:
        """End the tools of the turn under way, which cancelling `say` leaves to go on."""
        self._conversation.agent.cancel_calls()


async def _run_lines(lines: AsyncIterator[str], chat: _Chat, commands: ChatCommands | None) -> int:
    """Take lines from a pipe or a file. Without `commands` every line is a turn."""
    async for typed in lines:
        line = typed.strip()
        if commands is not None and commands.is_command(line):
            if not await commands.run(line):
                break
        elif line:
            _print_failure(await chat.say(line))
    return 0


async def _run_typed(chat: _Chat, commands: ChatCommands, transcript: TerminalTranscript) -> int:
    """Take lines from a person at a terminal. Ctrl-C ends a turn, and a second one the chat."""
    path = paths.state_folder() / FILE_NAME
    history = await asyncio.to_thread(open_history, path, max_chars=MAX_LINE_CHARS)
    prompt = TypedPrompt(history, commands.words)
    with CtrlC.taken() as ctrl_c:
        while ctrl_c.presses < LAST_PRESS:
            before = ctrl_c.presses
            try:
                line = await ctrl_c.during(prompt.line())
            except EOFError:
                return 0
            if line is None:
                ctrl_c.presses = before + 1  # a key, which is no signal, counts as well
                if ctrl_c.presses < LAST_PRESS:
                    transcript.print_note(ONCE_MORE)
                continue
            ctrl_c.presses = 0
            line = line.strip()[:MAX_LINE_CHARS]
            if commands.is_command(line):
                if await ctrl_c.during(commands.run(line)) is False:
                    return 0
            elif line:
                try:
                    with transcript.waiting("the model answers"):
                        failure = await ctrl_c.during(chat.say(line), chat.cancel_calls)
                except ModelUnreachable as error:  # it may be back in the next turn
                    failure = str(error)
                _print_failure(failure)
            if 0 < ctrl_c.presses < LAST_PRESS:
                transcript.print_note(f"Stopped. {ONCE_MORE}")
    return INTERRUPTED


def _print_failure(failure: str | None) -> None:
    if failure is not None:
        console(stderr=True).print(failure, style="red", markup=False, emoji=False)
