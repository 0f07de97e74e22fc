"""The tools of a conversation whose prompt begins with a few of them and is told of the others.

Which tools stand in front is settled when the tools are listed, and once the model's context is
known (`caal_node.tools.tool_search`). Here the person's words are looked at before the first
request of their turn, and what can be called in it is put together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Final, Protocol, TypeAlias

from livekit.agents import llm

from caal_node.answers.search_tools import may_search, search_tool
from caal_node.config.switches import Switches
from caal_node.context.builder import MAX_TURNS
from caal_node.context.token_estimate import PromptTools, item_tokens
from caal_node.context.told_tools import NO_ITEMS, Offer, ToldTools, callable_in
from caal_node.core.events import ToolsTold
from caal_node.core.items import Item, ToolsItem, Turn, WindowItem
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.models.chat_context import to_schemas
from caal_node.models.model_preparation import SAMPLES
from caal_node.tools.remote_toolset import RemoteTool
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import HidesTools

logger = logging.getLogger("caal_node")

WORDS_CHARS: Final = 4_096
"""Characters of a person's words by which tools are looked for: four minutes of speech. Of longer
ones the beginning and the end are read, where people say what they want."""
RANKINGS_KEPT: Final = 8
"""Words whose ranking is kept until they are asked with: as many replies as are begun early."""

LIVEKITS_LIST: Final[ContextVar[list[llm.Tool]]] = ContextVar("livekits_list")
"""LiveKit's own list of the tools of the reply under way, of which it runs what is in it by the
time of a call. A class below an agent may have given the agent's node another list."""

BuildWindow: TypeAlias = Callable[[Mapping[str, ToolsItem]], tuple[WindowItem, ...]]
"""It returns the window of a conversation with tools in front of words, by the words' ids."""


class ToolSupply(Protocol):
    """What is needed of the toolset that owns the tools of all tiers."""

    table: ToolTable
    search: ToolEntry
    """The tool that finds others. It is not in the table."""

    @property
    def head(self) -> frozenset[str] | None: ...

    def allow_head(self, max_tokens: int) -> None:
        """Let all tools stand in front where they have at most so many estimated tokens."""
        ...

    def choose_head(self, *, most: int) -> None:
        """Put at most so many estimated tokens of tools in front."""
        ...

    def function_tools(self, names: Iterable[str]) -> Sequence[llm.Tool]: ...

    async def fitting(self, words: str, besides: Collection[str] = ()) -> tuple[str, ...]:
        """Return the names of the few tools that fit a person's words, best first."""
        ...


class HearsTold(Protocol):
    """What hears which tools are told with a person's words."""

    def note_told(self, words_id: str, told: ToolsTold) -> None:
        """Hear it once for words of an id, during the first request that they are asked with."""
        ...


class ToolsOnDemand:
    """Decides which tools stand in front, and which others one conversation has at hand.

    Args:
        supply: It owns the tools.
        policies: They say which remote tools the model is not to see.
        hearer: It hears what is told.
        switches: They say whether the web is searched in place of a hedge.
        window_turns: Turns of the conversation's window.
    """

    def __init__(
        self,
        supply: ToolSupply,
        policies: HidesTools | None = None,
        hearer: HearsTold | None = None,
        *,
        switches: Switches,
        window_turns: int = MAX_TURNS,
    ) -> None:
        self._switches: Final = switches
        self._supply: Final = supply
        self._policies: Final = policies
        self._hearer: Final = hearer
        self._told: Final = ToldTools(window_turns)
        self._ranked: dict[str, tuple[str, ...]] = {}
        self._front: tuple[object, PromptTools] | None = None
        self._web: tuple[ToolTable, str | None] | None = None
        """The tool of a table that searches the web. The node calls it by itself where a reply
        cannot know an answer, whether the model was told of it or not."""

    def allow(self, tokens: int) -> None:
        """Let all tools stand in front where they have at most so many estimated tokens."""
        self._supply.allow_head(tokens)

    def shorten(self, most: int) -> None:
        """Put at most so many estimated tokens of tools in front, of this table."""
        self._supply.choose_head(most=most)

    @property
    def is_on(self) -> bool:
        """Whether there are tools that do not stand in front."""
        return self._supply.head is not None

    def front(
        self,
        own: Sequence[llm.Tool],
        examples: Mapping[str, tuple[Example, ...]],
    ) -> PromptTools:
        """Return the tools that stand in front, the search first; the same object while it can be.

        Args:
            own: The tools that LiveKit has. Those of the agent that are in no table, and so in no
                search, stand in front too.
            examples: What a person may say, by the tools' names.
        """
        table, head, search = self._supply.table, self._supply.head or (), self._supply.search
        own = [tool for tool in own if not isinstance(tool, RemoteTool)]
        key = table, head, search, tuple(own), examples
        if self._front is None or self._front[0] != key:
            there = {tool.id for tool in own}
            entries = (entry for entry in table if entry.exposed in head)
            shown = [entry for entry in entries if self._is_callable(entry, there)]
            others = (tool for tool in own if tool.id not in table)
            schemas = (search.schema, *(each.schema for each in shown), *to_schemas(others))
            names = {schema["function"]["name"] for schema in schemas}
            said = {name: found for name, found in examples.items() if name in names}
            self._front = key, PromptTools(schemas, said)
        return self._front[1]

    async def look_at(self, history: Sequence[Item], front: PromptTools) -> None:
        """Look for the tools that fit the newest words, once, before they are first asked with."""
        words = Turn(history).words
        if words is None or self._told.is_settled(words) or words.id in self._ranked:
            return
        try:
            found = await self._supply.fitting(_shortened(words.text), front.names)
        except Exception:  # the turn goes on: the model can search
            logger.exception("the tools that fit a request could not be found")
            found = ()
        self._ranked[words.id] = found
        for old in list(self._ranked)[:-RANKINGS_KEPT]:
            del self._ranked[old]

    def window(
        self, history: Sequence[Item], offer: Offer, front: PromptTools, build: BuildWindow
    ) -> tuple[WindowItem, ...]:
        """Return the window, with what is told with the newest words once these were looked at."""
        search, words = self._supply.search.exposed, Turn(history).words
        if words is not None and (ranked := self._ranked.pop(words.id, None)) is not None:
            self._told.forget_all_but(history)
            window = self._told.settle(
                words, ranked, offer, build, besides=front.names, search=search
            )
            if self._hearer is not None and (told := self._told.by_words.get(words.id)):
                event = ToolsTold("words", told.names, item_tokens(told))
                self._hearer.note_told(words.id, event)
            return window
        return build(self._told.by_words)

    @property
    def told(self) -> Mapping[str, ToolsItem]:
        """What was told, by the ids of the words behind it."""
        return self._told.by_words if self.is_on else NO_ITEMS

    def samples(
        self,
        own: Sequence[llm.Tool],
        front: PromptTools,
        examples: Mapping[str, tuple[Example, ...]],
    ) -> PromptTools:
        """Return the tools in front, and a few of the others from all over the table."""
        names = [entry.exposed for entry in self._supply.table if entry.exposed not in front.names]
        spread = names[:: max(1, len(names) // SAMPLES)][:SAMPLES]
        return self._with(front, spread, own, examples)

    def at_hand(
        self,
        window: Sequence[WindowItem],
        own: Sequence[llm.Tool],
        front: PromptTools,
        examples: Mapping[str, tuple[Example, ...]],
    ) -> PromptTools:
        """Return the tools that can be called: those in front, and those that `window` tells of."""
        names = callable_in(window, self._supply.search.exposed)
        return self._with(front, names, own, examples)

    def _with(
        self,
        front: PromptTools,
        names: Iterable[str],
        own: Sequence[llm.Tool],
        examples: Mapping[str, tuple[Example, ...]],
    ) -> PromptTools:
        """Return the tools in front, and those of `names` behind them that can be called."""
        offer = self.offer(own, {})
        schemas = [
            offered[0]
            for name in names
            if name not in front.names and (offered := offer(name)) is not None
        ]
        if not schemas:
            return front
        told = {schema["function"]["name"] for schema in schemas}
        said = {name: found for name, found in examples.items() if name in told}
        return PromptTools((*front.schemas, *schemas), {**front.examples, **said})

    def offer(self, own: Sequence[llm.Tool], examples: Mapping[str, tuple[Example, ...]]) -> Offer:
        """Return what knows the tools that can be called, each with the first of its `examples`."""
        there = {tool.id for tool in own}

        def offered(name: str) -> tuple[ToolSchema, Example | None] | None:
            entry = self._supply.table.get(name)
            if entry is None or not self._is_callable(entry, there):
                return None
            return entry.schema, next(iter(examples.get(name, ())), None)

        return offered

    def web_search(self, own: Sequence[llm.Tool]) -> tuple[ToolSchema, ...]:
        """Return the tool that searches the web, if there is one that can be called."""
        if not self._switches.checks.hedges:
            return ()
        table = self._supply.table
        if self._web is None or self._web[0] is not table:
            self._web = table, search_tool([e.schema for e in table if may_search(e.schema)])
        name = self._web[1]
        offered = self.offer(own, {})(name) if name is not None else None
        return () if offered is None else (offered[0],)

    def function_tools(self, tools: PromptTools, own: Sequence[llm.Tool]) -> list[llm.Tool]:
        """Return LiveKit's form of `tools`: those of `own`, and what LiveKit has not got yet."""
        web = (schema["function"]["name"] for schema in self.web_search(own))
        names = dict.fromkeys((*tools.names, *web))
        there = [tool for tool in own if tool.id in names or not _is_function(tool)]
        known = {tool.id for tool in there}
        return [*there, *self._supply.function_tools(name for name in names if name not in known)]

    def _is_callable(self, entry: ToolEntry, own: Collection[str]) -> bool:
        if entry.spec.tier == "agent":
            return entry.exposed in own
        return self._policies is None or not self._policies.hide(entry)


def _shortened(words: str) -> str:
    if len(words) <= WORDS_CHARS:
        return words
    half = WORDS_CHARS // 2
    return f"{words[:half]} {words[-half:]}"


def _is_function(tool: llm.Tool) -> bool:
    return isinstance(tool, (llm.FunctionTool, llm.RawFunctionTool))
