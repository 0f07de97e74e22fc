"""Searches by DuckDuckGo's pages, without a key, by the library ddgs.

The library connects past Python's sockets, so CAAL_NETWORK could not hold it: where a limit is
set it is not used at all. It blocks, so it runs in a thread, and stops by its own deadline.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# The library leaves its types open.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from caal_node.core.errors import ToolUnavailable
from caal_node.network.guard import policies, refusal
from caal_node.toolsets.http_service import objects_in, spoken
from caal_node.toolsets.web_search.engine import (
    FETCHED,
    SEARCH_S,
    WORDS,
    Safety,
    SearchResults,
    distinct,
    result_of,
)

Lookup: TypeAlias = Callable[[str], Sequence[Any]]
"""It searches for words, blocking, and returns ddgs's rows: objects of title, href and body."""
ENGINE_S: Final = 6
"""Whole seconds that ddgs gives one page of DuckDuckGo's, so that it ends within SEARCH_S."""
_NOTHING: Final = "No results found"
_SAFETY: Final = {"strict": "on", "moderate": "moderate", "off": "off"}


class DuckDuckGo:
    """DuckDuckGo, by its pages for people."""

    def __init__(self, lookup: Lookup) -> None:
        self.place: Final = "DuckDuckGo"
        self._lookup = lookup

    async def search(self, query: str) -> SearchResults:
        if limits := policies():
            raise refusal(limits[0])
        try:
            async with asyncio.timeout(SEARCH_S):
                rows = await asyncio.to_thread(self._lookup, query)
        except TimeoutError as error:
            failure = ToolUnavailable(f"{self.place} gave no answer in {SEARCH_S:g} seconds.")
            raise spoken(failure, WORDS.unreachable) from error
        return read_results(query, rows)


def read_results(query: str, rows: Sequence[Any]) -> SearchResults:
    """Read the rows that ddgs returns."""
    pages = (
        result_of(row.get("title"), row.get("href"), row.get("body"))
        for row in objects_in(list(rows))
    )
    return SearchResults(query, distinct(pages)[:FETCHED])


def lookup_by_ddgs(*, language: str, country: str, safety: Safety) -> Lookup:
    """Return a lookup by the library, which is loaded with the first search.

    The lookup raises ToolUnavailable where DuckDuckGo cannot be reached or wants a pause.
    """
    region = f"{country.lower()}-{language}" if country else "wt-wt"
    given: dict[str, Any] = {"region": region, "safesearch": _SAFETY[safety]}

    def lookup(query: str) -> Sequence[Any]:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException, RatelimitException

        try:
            return DDGS(timeout=ENGINE_S).text(
                query, max_results=FETCHED, backend="duckduckgo", **given
            )
        except RatelimitException as error:
            raise spoken(
                ToolUnavailable("DuckDuckGo was asked too often."), WORDS.too_often
            ) from error
        except DDGSException as error:
            if _NOTHING in str(error):
                return ()
            failure = ToolUnavailable("DuckDuckGo cannot be reached.")
            raise spoken(failure, WORDS.unreachable) from error

    return lookup
