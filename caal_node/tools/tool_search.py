"""Which tools a prompt begins with, and the search that finds the others: for the model, for the
user's words, and for the API. How often each tool is called is counted here as well."""

from __future__ import annotations

import asyncio
import json
import logging
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

import mcp_bridge
from caal_node.context.schemas import described
from caal_node.context.token_estimate import TOOLS_TOKENS
from caal_node.core.errors import InvalidArguments
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import ToolSpec
from caal_node.language.requests import PlainAnswer, plain_answer
from caal_node.models.embedding import ServerEmbedder, kept_vectors
from caal_node.models.strategies.tool_relevance import JOINERS
from caal_node.policy.rule import AnyOf
from caal_node.tools.table import ToolEntry, ToolTable
from mcp_bridge.core.computing import computed
from mcp_bridge.core.files import read_capped, replace_file
from mcp_bridge.discovery.bm25 import Vocabulary
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.semantic_index import SemanticIndex, SemanticQuery

# The index of a table's tools, in which they are searched.

VECTORS_S: Final = 1.0
"""Seconds to wait for vectors that are still being made. It is enough for those on disk."""
_EVERYDAY: Final[Mapping[str, Any]] = tomllib.loads(read("everyday_words.toml"))
VOCABULARY: Final = Vocabulary(
    [(said, means) for lists in _EVERYDAY.values() for said, means in lists["means"]],
    JOINERS,
    [reply for lists in _EVERYDAY.values() for reply in lists["replies"]],
)
_CAUTION: Final[Mapping[PlainAnswer, float]] = MappingProxyType(
    {"": 1.0, "knowledge": 1.25, "statement": 1.25, "talk": 2.5}
)
"""The caution with words that a plain answer is likely for, by why it is likely. "How far is it to
the lake" is for a tool all the same; hardly any small talk is."""


class ToolCatalog:
    """An immutable index. Making it takes 0.2 ms a tool, so make it in a thread."""

    def __init__(self, table: ToolTable) -> None:
        self.table: Final = table
        self._tools: Final = tuple(_tool_info(entry) for entry in self.table)
        self._finder: Final = ToolFinder(self._tools, VOCABULARY)

    def embed(self, meanings: SemanticIndex) -> None:
        """Begin to make the vectors of these tools, so that they are there when one is wanted."""
        meanings.set_tools(self._tools)

    async def find(
        self,
        patterns: Sequence[str],
        meanings: SemanticIndex | None = None,
        *,
        request: str = "",
    ) -> list[ToolEntry]:
        """Return the tools that match, best first, ranked as `mcp_discover` ranks.

        Args:
            meanings: It takes over these tools, and ranks by what words mean as well; None ranks
                by the words alone.
            request: What a person said. Its words rank the names that a glob matches.
        """
        meaning = await self._meaning(patterns, meanings, wait_s=VECTORS_S)
        found = self._finder.find(patterns, meaning, request=request)
        return [self.table.resolve(tool.name) for tool in found]

    async def fitting(
        self, words: str, meanings: SemanticIndex | None = None, *, besides: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Return the exposed names of the few tools that fit what a person said, best first.

        There are as many as the scores say, three or four on average and twelve at most, and none
        for words that ask for nothing.

        Args:
            meanings: As in `find`. Vectors that are still being made are not waited for.
            besides: The names that the model has already. They are left out, and nothing takes
                their place: what fits worse than they do is not told for their sake.
        """
        parts = self._finder.parts_of(words)
        meaning = await self._meaning(parts, meanings, wait_s=0.0)
        found = self._finder.fitting(parts, meaning, caution=caution_of(words))
        return tuple(tool.name for tool in found if tool.name not in besides)

    async def _meaning(
        self, patterns: Sequence[str], meanings: SemanticIndex | None, *, wait_s: float
    ) -> SemanticQuery | None:
        if meanings is None:
            return None
        self.embed(meanings)
        worded = self._finder.patterns_of_words(patterns)
        return await meanings.query(self._tools, worded, wait_s=wait_s)


def caution_of(words: str) -> float:
    """Return how much better than usual a tool must fit what a person said."""
    return _CAUTION[plain_answer(words)]


def _tool_info(entry: ToolEntry) -> mcp_bridge.ToolInfo:
    spec = entry.spec
    return mcp_bridge.ToolInfo(
        name=entry.exposed,
        server=spec.source,
        tool=spec.own_name or spec.name,
        description=spec.details or spec.description,
        input_schema=spec.parameters,
        examples=tuple(mcp_bridge.Example(e.utterance, e.arguments) for e in spec.examples),
    )


# Which tools stand at a prompt's front, where all together are more than it should hold.
#
# A prompt's front is read once and must not change, so this is settled when the tools are listed.
# Whatever is left out is on demand: it is told where the conversation grows.

FLOOD: Final = 3
"""Times the budget. A source that adds some tools between two reloads does not come near it, and
more would fit into no prompt."""
OWN_PART: Final = 4
"""The agent's own methods stay at the front where a quarter of the budget is enough for them."""
USED_PART: Final = 8
"""What is used often stands at the front within an eighth of the budget: with a context of 8,192,
three or four tools."""


class HidesTools(Protocol):
    """A policy, as far as prompts go."""

    def hide(self, entry: ToolEntry, /) -> bool:
        """Say whether the model is not to see a tool."""
        ...


@dataclass(frozen=True, slots=True)
class PromptHead:
    """Which tools a conversation's prompts have at their front."""

    max_tokens: int
    """Estimated tokens that the schemas of all tools may have together."""
    pinned: Sequence[str] = ()
    """Globs over exposed names that are always at the front."""
    policies: HidesTools | None = None

    def hides(self, entry: ToolEntry) -> bool:
        return self.policies is not None and self.policies.hide(entry)

    def names(
        self,
        table: ToolTable,
        search: str,
        before: frozenset[str] | None,
        *,
        reloaded: bool,
        most: int | None,
        used: Sequence[str] = (),
    ) -> frozenset[str] | None:
        """Return the exposed names; see `head_names`. `most` is a further limit to the tokens."""
        return head_names(
            table,
            search,
            max_tokens=self.max_tokens if most is None else min(self.max_tokens, most),
            pinned=self.pinned,
            hides=self.hides,
            before=before,
            reloaded=reloaded,
            used=used,
        )


def head_names(
    table: ToolTable,
    search: str,
    *,
    max_tokens: int,
    pinned: Sequence[str] = (),
    hides: Callable[[ToolEntry], bool] = lambda _: False,
    before: frozenset[str] | None = None,
    reloaded: bool = True,
    used: Sequence[str] = (),
) -> frozenset[str] | None:
    """Return the exposed names at the front of every prompt; None where all tools stand there.

    They are the search tool, what is pinned or answers from documents, the agent's own methods
    where those are few, and what is used often.

    Args:
        search: The exposed name of the search tool.
        max_tokens: Estimated tokens that the schemas of all tools may have together.
        pinned: Globs over exposed names. They count whatever tokens they need.
        hides: Which tools no prompt shows; they need no room.
        before: What was returned for the table that this one replaces.
        reloaded: Whether the owner, or a session's start, has asked for this table. A change that
            comes on its way leaves the front as it is, unless it is a flood.
        used: The names that are used often, the most used first.
    """
    if before is not None and not reloaded:
        return frozenset(name for name in before if name == search or name in table)
    shown = [entry for entry in table if not hides(entry)]
    tokens = _tokens(table, shown)
    if tokens <= (max_tokens if reloaded else FLOOD * max_tokens):
        return None
    pins = AnyOf(pinned)
    # What answers from the owner's documents is also called in place of a reply.
    head = {e.exposed for e in shown if pins.fits(e.exposed) or e.spec.answers}
    own = [entry for entry in shown if entry.spec.tier == "agent"]
    if _tokens(table, own) <= max_tokens // OWN_PART:
        head |= {entry.exposed for entry in own}
    left = max_tokens // USED_PART
    for name in used:
        entry = table.get(name)
        if entry is None or name in head or hides(entry):
            continue
        if (size := table.schema_tokens[name]) <= left:
            head.add(name)
            left -= size
    return None if len(head) == len(shown) else frozenset((search, *head))


def _tokens(table: ToolTable, entries: Sequence[ToolEntry]) -> int:
    sizes = [table.schema_tokens[entry.exposed] for entry in entries]
    return TOOLS_TOKENS + sum(sizes) if sizes else 0


logger = logging.getLogger("caal_node.tools")

SEARCH_SOURCE: Final = "mcp"
"""The source of the search tool. No tool of a server of that name is called `mcp_discover` by its
source, as the server's name stands in front of each."""
FITTING_S: Final = 2.0
"""Seconds to look for tools that fit a person's words. Vectors take 20 ms, the ranking 1 ms; only
the first turn after a reload of thousands of tools may have to wait for an index."""
_CATALOGS: Final = 2
"""Indexes that are kept: of the table, and of one with what LiveKit's toolsets have found since."""


class ToolSearch:
    """Searches a table's tools.

    An index is made once for each table, in a thread, and is waited for by whoever searches.

    Args:
        embedder: Makes searches go by meaning as well; None goes by words. It is this object's to
            close, where it can be closed.
        hides: Which tools the model is never told of.
    """

    def __init__(
        self, embedder: mcp_bridge.Embedder | None, hides: Callable[[ToolEntry], bool]
    ) -> None:
        self._embedder: Final = embedder
        self._meanings: Final = SemanticIndex(embedder, kept_vectors()) if embedder else None
        self._hides: Final = hides
        self._catalogs: Final[dict[ToolTable, asyncio.Task[ToolCatalog]]] = {}
        self._tasks: Final[set[asyncio.Task[ToolCatalog]]] = set()

    def prepare(self, table: ToolTable) -> asyncio.Task[ToolCatalog]:
        """Begin to make the index of a table, and its vectors, if nobody has yet."""
        if (task := self._catalogs.get(table)) is None:
            making = asyncio.create_task(self._make(table), name="caal-tools-catalog")
            task = self._catalogs[table] = making
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return task

    async def _make(self, table: ToolTable) -> ToolCatalog:
        catalog = await computed(ToolCatalog, table)
        for old in list(self._catalogs)[:-_CATALOGS]:
            del self._catalogs[old]
        if self._meanings is not None:
            catalog.embed(self._meanings)
        return catalog

    async def find(
        self, table: ToolTable, patterns: Sequence[str], request: str = ""
    ) -> list[ToolEntry]:
        """Return the tools of `table` that match, best first, as `ToolCatalog.find` does."""
        catalog = await asyncio.shield(self.prepare(table))
        return await catalog.find(patterns, self._meanings, request=request)

    async def find_shown(
        self, table: ToolTable, patterns: Sequence[str], request: str = ""
    ) -> list[ToolEntry]:
        """Return the tools that match and that the model may see, best first."""
        found = await self.find(table, patterns, request)
        # `*` finds thousands, and each is held against the owner's rules.
        return await computed(lambda: [e for e in found if not self._hides(e)])

    async def fitting(
        self, table: ToolTable, words: str, besides: Collection[str]
    ) -> tuple[str, ...]:
        """Return the names of the few tools that fit a person's words, best first.

        Those of `besides` are left out. After `FITTING_S` there are none: the model can search.
        """
        try:
            async with asyncio.timeout(FITTING_S):
                catalog = await asyncio.shield(self.prepare(table))
                found = await catalog.fitting(words, self._meanings, besides=besides)
        except TimeoutError:
            logger.warning("no tools were looked for within %g s; the model may search", FITTING_S)
            return ()
        return tuple(name for name in found if not self._hides(table.resolve(name)))

    async def aclose(self) -> None:
        """End what runs in the background."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._meanings is not None:
            await self._meanings.aclose()
        if isinstance(self._embedder, ServerEmbedder):
            await self._embedder.aclose()


def search_spec(table: ToolTable) -> ToolSpec:
    """Describe the search tool for a prompt; it names the sources of the table's tools."""
    tool = mcp_bridge.discover_tool(list(dict.fromkeys(entry.spec.source for entry in table)))
    return ToolSpec(
        tier="mcp",
        source=SEARCH_SOURCE,
        name=tool.name,
        wanted=tool.name,
        description=tool.description,
        parameters=tool.input_schema,
        read_only=True,
        effect="read",  # it is this program's own
        remembered=False,
    )


def is_search(spec: ToolSpec) -> bool:
    """Say whether a tool is the search, which runs no other tool."""
    return spec.source == SEARCH_SOURCE and spec.name == mcp_bridge.DISCOVER


def search_patterns(value: object) -> list[str]:
    """Return what a model wants to find; it may write one text in place of a list.

    Raises:
        InvalidArguments: there is nothing to look for.
    """
    given = cast("list[object]", value if isinstance(value, list) else [value])
    patterns = [text for text in given if isinstance(text, str) and text.strip()]
    if not patterns:
        raise InvalidArguments('patterns: write a list of words, such as ["weather forecast"]')
    return patterns


def search_answer(
    found: Sequence[ToolEntry], starting: Iterable[str] = ()
) -> tuple[tuple[ToolEntry, ...], Mapping[str, Any]]:
    """Return which tools a search makes callable, and what the model reads of it.

    Args:
        found: What matches, best first.
        starting: Names of servers whose tools are not known yet.
    """
    entries = {entry.exposed: entry for entry in found}
    offer = mcp_bridge.offer(entries, lambda name: described(entries[name].schema))
    not_ready = {"not_ready_yet": list(starting), "say": "They are being set up."}
    answer = {**offer.answer(), **(not_ready if not_ready["not_ready_yet"] else {})}
    return tuple(entries[name] for name in offer.ready), answer


# How often an agent's conversations have called each remote tool, kept between sessions.

OFTEN: Final = 5
"""Calls from which a tool is used often."""
REMEMBERED: Final = 500
"""Calls of all tools together. Beyond them all counts are halved, so that habits may change."""
FILE_MAX_BYTES: Final = 256 * 1024


class UsedTools:
    """The counts of one agent, in a file that its rooms share. `load` and `save` block.

    A room that ends at the same time as another may lose its counts.
    """

    def __init__(self, file: Path) -> None:
        self._file: Final = file
        self._new: Final[Counter[str]] = Counter()
        self.often: tuple[str, ...] = ()
        """The exposed names of the tools that were used often when this was loaded, the most used
        first."""

    def note(self, name: str) -> None:
        """Count a call that has worked."""
        self._new[name] += 1

    def load(self) -> None:
        """Read what earlier sessions have called."""
        self.often = tuple(name for name, calls in self._kept().most_common() if calls >= OFTEN)

    def save(self) -> None:
        """Add what was called since the last time to the file, where the disk lets it."""
        if not self._new:
            return
        counts = self._kept() + self._new
        self._new.clear()
        if counts.total() > REMEMBERED:
            counts = Counter({name: calls // 2 for name, calls in counts.items() if calls > 1})
        try:
            replace_file(self._file, json.dumps(counts).encode())
        except OSError as error:
            logger.warning("how often tools are used could not be kept: %s", error)

    def _kept(self) -> Counter[str]:
        try:
            kept: object = json.loads(read_capped(self._file, FILE_MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return Counter()
        counts = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
        return Counter({name: n for name, n in counts.items() if isinstance(n, int) and n > 0})
