"""The tools of `memory`: remember a fact, say what is known, and forget one."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final

from livekit.agents import RunContext
from pydantic import Field

from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke
from caal_node.tools.caller_of_call import caller_of
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import (
    ConfiguredToolset,
    OptionPath,
    ToolsetOptions,
    ToolsetServices,
    tool,
)
from caal_node.toolsets.memory.fact_files import FactFiles
from caal_node.toolsets.memory.fact_page import MAX_FACT_CHARS, FactPage, KeptFact, plain_fact
from caal_node.toolsets.memory.fact_words import key_words, meant, outdated, said_back, same
from caal_node.toolsets.memory.person import person_of
from mcp_bridge.core.files import make_private_folder

MAX_FACTS: Final = 500
"""Facts of one person."""
TOLD: Final = 20
"""Facts that one answer has."""
SPOKEN: Final = 3
"""Facts that are read out in one sentence; of more the model tells what fits the question."""
ASKED_BACK: Final = 3

NOTHING = "You haven't told me anything to remember yet."
NOTHING_ABOUT = "You haven't told me anything about that."
ONE_AT_A_TIME = "I can forget one thing at a time. Which one?"
UNREADABLE = "I can't get at my memory right now."


class MemoryOptions(ToolsetOptions):
    folder: OptionPath | None = Field(
        default=None, description="The folder for the pages of what is remembered (empty: our own)"
    )
    shared: bool = Field(
        default=False, description="Whether all of the household share one page (true or false)"
    )
    person_attribute: str = Field(default="", max_length=100)
    """The participant's attribute that names the person; "" takes their identity."""
    guests: tuple[str, ...] = Field(default=("guest*",), max_length=100)
    """Patterns of names for which nothing is remembered."""


class Memory(ConfiguredToolset):
    """See docs/toolsets.md."""

    NAME: ClassVar[str] = "memory"
    SUMMARY: ClassVar[str] = "Remembers what you tell it of yourself, each person apart."
    Options = MemoryOptions

    def __init__(
        self, options: MemoryOptions | None = None, services: ToolsetServices | None = None
    ) -> None:
        super().__init__(options, services)
        self.files: Final = FactFiles(self.options.folder or self.services.state)

    async def check(self) -> str:
        """See `ConfiguredToolset.check`."""
        folder = self.files.folder
        try:
            await asyncio.to_thread(make_private_folder, folder)
            pages = await asyncio.to_thread(lambda: len(list(folder.glob("*.md"))))
        except OSError as error:
            raise ConfigError(f"{folder}: it cannot be written; correct `folder`.") from error
        return f"{pages} page{'s' * (pages != 1)} in {folder}"

    @tool("write")
    async def remember_fact(self, context: RunContext[Any], fact: str) -> Any:
        """Remember something that the person says of themselves or their home.

        Args:
            fact: the whole fact in their own words
        Example: remember that my locker code is 4711 -> {"fact": "my locker code is 4711"}
        Example: don't forget that I am allergic to nuts -> {"fact": "I am allergic to nuts"}
        """
        text = plain_fact(fact)
        if not text:
            raise InvalidArguments("Ask what is to be remembered.")
        if len(text) > MAX_FACT_CHARS:
            raise InvalidArguments(
                f"A fact has at most {MAX_FACT_CHARS} characters; say it shorter."
            )
        today = self.services.now().astimezone(self.services.timezone).date()

        def change(page: FactPage) -> tuple[FactPage, VerbatimResult]:
            facts = page.facts
            if same(facts, text):
                return page, _result({"remembered": text}, f"I know that {said_back(text)}.")
            if (old := outdated(facts, text)) is not None:
                value = {"remembered": text, "in_place_of": old.text}
                words = f"I'll remember that {said_back(text)}, and no longer that "
                return page.replaced(old, text, today), _result(
                    value, f"{words}{said_back(old.text)}."
                )
            if len(facts) >= MAX_FACTS:
                raise ToolBroke(f"There are {MAX_FACTS} facts already; ask what to forget.")
            value = {"remembered": text}
            return page.added(text, today), _result(value, f"I'll remember that {said_back(text)}.")

        return await self._changed(context, change)

    @tool("read")
    async def what_do_you_know(self, context: RunContext[Any], about: str = "") -> Any:
        """Say what the person has asked to remember.

        Args:
            about: what it is about; empty for everything
        Example: what do you know about me -> {"about": ""}
        Example: what's my locker code -> {"about": "locker code"}
        """
        person = self._person(context)
        try:
            page = await asyncio.to_thread(self.files.read, person)
        except (OSError, ValueError) as error:
            raise _unusable(error) from error
        facts = page.facts
        found = meant(facts, about) if key_words(about) else facts
        if not found:
            return VerbatimResult([], NOTHING_ABOUT if key_words(about) else NOTHING)
        rows = [_row(fact) for fact in found[-TOLD:]]
        if len(found) > SPOKEN:
            left = len(found) - len(rows)
            return {"facts": rows} | ({"older_left_out": left} if left else {})
        return VerbatimResult(rows, f"You told me that {_joined(found)}.")

    @tool("destructive")
    async def forget_fact(self, context: RunContext[Any], fact: str) -> Any:
        """Forget one thing that was remembered.

        Args:
            fact: words that say which
        Example: forget my locker code -> {"fact": "locker code"}
        Example: you can forget what I said about the piano -> {"fact": "piano"}
        """

        def change(page: FactPage) -> tuple[FactPage, VerbatimResult]:
            facts = page.facts
            exact = same(facts, plain_fact(fact))
            found = [exact] if exact else meant(facts, fact)
            if not found:
                words = NOTHING_ABOUT if key_words(fact) else ONE_AT_A_TIME
                return page, _result({"forgotten": None}, words)
            if len(found) > 1:
                listed = [said_back(each.text) for each in found[:ASKED_BACK]]
                value = {
                    "forgotten": None,
                    "which_one": [_row(each) for each in found[:ASKED_BACK]],
                }
                return page, _result(value, f"Which one: that {', or that '.join(listed)}?")
            text = found[0].text
            words = f"I've forgotten that {said_back(text)}."
            return page.without(found[0]), _result({"forgotten": text}, words)

        return await self._changed(context, change)

    def _person(self, context: RunContext[Any]) -> str:
        options: MemoryOptions = self.options
        return person_of(
            caller_of(context),
            attribute=options.person_attribute,
            guests=options.guests,
            shared=options.shared,
        )

    async def _changed(self, context: RunContext[Any], change: Any) -> VerbatimResult:
        person = self._person(context)
        try:
            return await asyncio.to_thread(self.files.change, person, change)
        except (OSError, ValueError) as error:
            raise _unusable(error) from error


def _result(value: Any, words: str) -> VerbatimResult:
    return VerbatimResult(value, words)


def _row(fact: KeptFact) -> dict[str, str]:
    return {"fact": fact.text} | ({"told_on": fact.day} if fact.day else {})


def _joined(facts: list[KeptFact]) -> str:
    return ", and that ".join(said_back(fact.text) for fact in facts)


def _unusable(error: OSError | ValueError) -> ToolBroke:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    failure = ToolBroke(f"The page of memory cannot be used: {why}.")
    failure.words = UNREADABLE
    return failure
