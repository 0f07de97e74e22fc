"""The search over the tools of all tiers: for the model, for the person's words, for the API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import mcp_bridge
from caal_node.context.catalogue import described
from caal_node.core.errors import InvalidArguments
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.embedding import ServerEmbedder, kept_vectors
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_catalog import ToolCatalog
from mcp_bridge.embedding.semantic_index import SemanticIndex

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
            for old in list(self._catalogs)[:-_CATALOGS]:
                del self._catalogs[old]
        return task

    async def _make(self, table: ToolTable) -> ToolCatalog:
        catalog = await asyncio.to_thread(ToolCatalog, table)
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
        return await asyncio.to_thread(lambda: [e for e in found if not self._hides(e)])

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
