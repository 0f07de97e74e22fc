"""`caal-node chat`: a person types to the agent instead of speaking."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LiveKit leaves the event types of its models open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
import re
import signal
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, contextmanager, nullcontext
from types import FrameType
from typing import Any, Final, Self, TypeVar

from livekit.agents import APIConnectionError
from rich.console import Console

from caal_node.agent import CaalAgent
from caal_node.cli.checks.local import unknown_settings
from caal_node.cli.chosen_agent import chosen_agent, has_own_model, with_chosen_model
from caal_node.cli.completion import known_models
from caal_node.cli.model_server import model_problem, sentence
from caal_node.cli.output import (
    TerminalTranscript,
    console,
    print_table,
    standard_input,
    typed_lines,
)
from caal_node.cli.tools import (
    NO_TOOLS,
    all_entries,
    find_entry,
    head_names,
    print_explanation,
    servers_started,
    tool_table,
)
from caal_node.config.settings import Settings
from caal_node.control.messages import compare_tables
from caal_node.conversation import TURN_S, Conversation
from caal_node.core import paths
from caal_node.core.counted import counted
from caal_node.core.errors import CaalError, ConfigError, ModelError, ModelUnreachable
from caal_node.core.events import Event, to_json
from caal_node.models.chat_context import known_failure
from caal_node.models.llm import LLM
from caal_node.room.cue_player import SilentCueSink
from caal_node.tools.middleware.dry_run import DRY_RUN
from caal_node.tools.middleware.standard import dry_run_line

# Ctrl-C ends what goes on, and not the program.

T = TypeVar("T")


def _nothing() -> None:
    """Nobody is at work."""


class CtrlC:
    """Counts how often Ctrl-C is pressed, and interrupts the work of `during`."""

    def __init__(self) -> None:
        self.presses = 0
        self._act: Callable[[], None] = _nothing

    @classmethod
    @contextmanager
    def taken(cls) -> Generator[Self]:
        """Take Ctrl-C over from Python. This has to be the main thread, in its event loop."""
        taken = cls()
        loop = asyncio.get_running_loop()

        def handle(_: int, __: FrameType | None) -> None:
            taken.presses += 1  # at once: whoever looks next has to know
            loop.call_soon_threadsafe(taken._interrupt)

        # Not by the loop's own signal handlers, which Windows has not.
        before = signal.signal(signal.SIGINT, handle)
        try:
            yield taken
        finally:
            signal.signal(signal.SIGINT, before)

    async def during(
        self, work: Coroutine[Any, Any, T], first: Callable[[], None] = _nothing
    ) -> T | None:
        """Do `work`; return what came of it, or None where Ctrl-C has ended it.

        A press calls `first` and cancels the work, which may still end in good order.
        """
        task = asyncio.ensure_future(work)

        def act() -> None:
            first()
            task.cancel()

        self._act = act
        try:
            return await task
        except asyncio.CancelledError:
            if not self.presses:
                raise
            return None
        finally:
            self._act = _nothing

    def _interrupt(self) -> None:
        self._act()


# The commands of `caal-node chat`: lines such as `/tools` that are not for the model.

EXIT: Final = "/exit"
HELP: Final[Mapping[str, str]] = {
    "/tools": "[NAME]   every tool, or all that is known of one",
    "/reload": "         list the tools again",
    "/model": "[MODEL]  the model in use, or another from now on: a name, or api:model@url",
    "/clear": "         begin a new conversation",
    "/help": "         these commands",
    EXIT: "         end the chat, as exit, quit, /quit, /bye and Ctrl-D do",
}
_ENDS: Final = frozenset({EXIT, "/quit", "/bye", "exit", "quit"})
_COMMAND: Final = re.compile(r"(/[a-z]+)(?:\s+(\S.*))?")
"""`/etc/hosts is gone` is none: it goes to the model."""


class ChatCommands:
    """Runs a command and prints what came of it."""

    def __init__(self, agent: CaalAgent, settings: Settings, out: Console) -> None:
        self._agent: Final = agent
        self.settings = settings
        """Those of the model in use."""
        self._out: Final = out
        self._run: Final[Mapping[str, Callable[[str], Awaitable[None]]]] = {
            "/tools": self._tools,
            "/reload": self._reload,
            "/model": self._model,
            "/help": self._help,
        }
        self.tools: Sequence[str] = ()
        """The names of all tools, as they were last listed."""
        self._models: Sequence[str] = ()
        self.is_cleared = False
        """Whether another conversation is to follow."""

    async def find_names(self) -> None:
        """Look for the names of tools, and of the models that their server has."""
        self.tools = [entry.exposed for entry in await all_entries(self._agent)]
        self._models = await known_models(self.settings)

    def words(self, command: str) -> Sequence[str]:
        """Return what may follow `command`; without one, the commands."""
        return {"": tuple(HELP), "/model": self._models}.get(command, self.tools)

    def is_command(self, line: str) -> bool:
        """Say whether a line is a command, known or not."""
        return line in _ENDS or _COMMAND.fullmatch(line) is not None

    async def run(self, line: str) -> bool:
        """Run the command of `line`; return False where the conversation is to end."""
        match = _COMMAND.fullmatch(line)
        name, rest = match.groups(default="") if match else (line, "")
        self.is_cleared = name == "/clear"
        if self.is_cleared or name in _ENDS:
            return False
        if (command := self._run.get(name)) is None:
            self._print(f"there is no {name}; /help lists the commands", "yellow")
            return True
        try:
            await command(rest.strip())
        except CaalError as error:
            self._print(str(error), "red")
        return True

    async def _tools(self, name: str) -> None:
        if name:
            print_explanation(self._out, find_entry(self._agent, name))
            return
        entries = await all_entries(self._agent)
        self.tools = [entry.exposed for entry in entries]
        if entries:
            table = tool_table(entries, head_names(self._agent), self._agent.policies.hide)
            print_table(self._out, table)
        else:
            self._print(NO_TOOLS, "yellow")
        self._print_failed(self._agent.failed)

    async def _reload(self, _: str) -> None:
        before = await asyncio.to_thread(self._agent.table.fingerprints)
        failed = dict(self._agent.failed)
        await self._agent.reload_tools()
        await self.find_names()
        after = await asyncio.to_thread(self._agent.table.fingerprints)
        report = compare_tables(before, after)
        changes = {"new": report.added, "gone": report.removed, "changed": report.changed}
        told = [f"{what}: {', '.join(names)}" for what, names in changes.items() if names]
        self._print(
            "; ".join([counted(report.tool_count, "tool"), *(told or ["as before"])]), "dim"
        )
        # What has failed only now is an event, which has been printed.
        self._print_failed(failed)

    async def _model(self, name: str) -> None:
        model = self._agent.model
        if not isinstance(model, LLM):
            raise ConfigError("only a caal_node.LLM can be changed; this agent has another kind")
        if not name:
            self._models = await known_models(self.settings)
            self._print(f"{model.model} is in use; known are: {', '.join(self._models)}", "dim")
            return
        chosen = with_chosen_model(self.settings, name, "/model")
        key = chosen.api_key.get_secret_value() if chosen.api_key else None
        await model.switch(chosen.model, chosen.api, chosen.model_address, key)
        self.settings = chosen
        self._print(f"{chosen.model} answers from now on", "dim")

    async def _help(self, _: str) -> None:
        for name, words in HELP.items():
            self._out.print(f"{name:<8} {words}", markup=False)
        self._print("Ctrl-C ends a turn; pressing it again ends the chat", "dim")

    def _print_failed(self, known: Mapping[str, str]) -> None:
        for source, reason in self._agent.failed.items():
            if known.get(source) == reason:
                self._print(f"no tools from {source}: {reason}", "yellow")

    def _print(self, words: str, style: str) -> None:
        self._out.print(words, style=style, markup=False, emoji=False)


MAX_LINE_CHARS: Final = 4_000
"""A longer turn is cut, as it would fill a small model's window."""
ONCE_MORE: Final = "Ctrl-C once more ends the chat."
_TOLD: Final = (
    "the model's reply failed",
    "all LLMs are unavailable",
    "exception occurred while executing tool",
    "error parsing arguments",
)
"""These log messages begin so; all but the first are LiveKit's, of a chain of models and of a call
that failed."""
LAST_PRESS: Final = 2
"""So many presses of Ctrl-C, with no line in between, end the chat."""
STARTING_S: Final = 10.0
"""Seconds that lines from a pipe wait for slow MCP servers, which a person need not. It is what a
server has to start in by default."""
INTERRUPTED: Final = 130
"""The exit code of a program that Ctrl-C has ended."""


async def run_chat(
    settings: Settings,
    agent_name: str | None,
    *,
    as_json: bool,
    question: str | None = None,
    results: bool = False,
) -> int:
    """Run turns until the input ends, or `question` is answered, and return the exit code.

    `results` prints the beginning of each tool's result.

    Raises:
        ConfigError: the settings or the agent are wrong.
        ModelError: there is no model any more that can be asked, and nobody who waits for it.
    """
    out = console()
    transcript = TerminalTranscript(out, results=results)

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
    for name, near in unknown_settings():
        hint = f"did you mean {near}?" if near else "unset it"
        _print_failure(f"{name} is not a setting; {hint}", style="yellow")
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
    """Say whether the chat itself tells what is logged: why a reply or a call failed."""
    return str(record.msg).startswith(_TOLD)


def reply_problem(settings: Settings, failure: BaseException) -> str:
    """Return in one line why a model's reply failed, and what to do where that is known."""
    if (known := known_failure(failure)) is not None:
        return str(known)
    if settings.fallbacks.models and isinstance(failure, APIConnectionError):
        models = ", ".join(map(str, (settings.model, *settings.fallbacks.models)))
        return (
            f"none of {models} gave a reply; each but the last has {settings.fallbacks.after:g} s "
            "to begin one (after in CAAL_FALLBACKS), and --verbose logs the rest"
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

    @property
    def asks_for_pin(self) -> bool:
        """Whether the next line is the PIN."""
        return self._conversation.asks_for_pin

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
    from caal_node.cli.typed_prompt import FILE_NAME, TypedPrompt, open_history

    path = paths.state_folder() / FILE_NAME
    history = await asyncio.to_thread(open_history, path, max_chars=MAX_LINE_CHARS)
    prompt = TypedPrompt(history, commands.words)
    with CtrlC.taken() as ctrl_c:
        while ctrl_c.presses < LAST_PRESS:
            before, hidden = ctrl_c.presses, chat.asks_for_pin
            try:
                line = await ctrl_c.during(prompt.line(hidden=hidden))
            except EOFError:
                return 0
            if line is None:
                ctrl_c.presses = before + 1  # a key, which is no signal, counts as well
                if ctrl_c.presses < LAST_PRESS:
                    transcript.print_note(ONCE_MORE)
                continue
            ctrl_c.presses = 0
            line = line.strip()[:MAX_LINE_CHARS]
            if hidden and not chat.asks_for_pin:
                transcript.print_note("The question is over, and nobody has got that line.")
                continue
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


def _print_failure(failure: str | None, style: str = "red") -> None:
    if failure is not None:
        console(stderr=True).print(failure, style=style, markup=False, emoji=False)
