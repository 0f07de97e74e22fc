"""The commands of `caal-node chat`: lines such as `/tools` that are not for the model."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LiveKit leaves the event types of its models open, so they are half unknown.

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from rich.console import Console

from caal_node.agent import CaalAgent
from caal_node.cli.chosen_agent import with_chosen_model
from caal_node.cli.completion import known_models
from caal_node.cli.output import print_table
from caal_node.cli.tools import (
    all_entries,
    find_entry,
    head_names,
    print_explanation,
    tool_table,
)
from caal_node.config.settings import Settings
from caal_node.control.messages import compare_tables
from caal_node.core.errors import CaalError, ConfigError
from caal_node.models.llm import LLM

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
        print_table(self._out, tool_table(entries, head_names(self._agent)))
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
        self._print("; ".join([f"{report.tool_count} tools", *(told or ["as before"])]), "dim")
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
        self._print("Ctrl-C ends a turn, and pressed once more the chat", "dim")

    def _print_failed(self, known: Mapping[str, str]) -> None:
        for source, reason in self._agent.failed.items():
            if known.get(source) == reason:
                self._print(f"no tools from {source}: {reason}", "yellow")

    def _print(self, words: str, style: str) -> None:
        self._out.print(words, style=style, markup=False, emoji=False)
