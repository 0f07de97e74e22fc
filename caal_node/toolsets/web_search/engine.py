"""A search engine takes words and gives results."""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias

from caal_node.toolsets.http_service import ServiceWords
from caal_node.toolsets.web_search.results import SearchResults

SEARCH_S: Final = 8.0
"""Seconds for one search. A person waits for it in silence."""
FETCHED: Final = 10
"""Results that are asked for. A few are shown, and `read_page` may open any of them."""
WORDS: Final = ServiceWords(
    unreachable="I can't reach the web search right now.",
    too_often="The web search wants a pause. Please ask me again in a minute.",
    refused="The web search doesn't let me in. Its settings need a look.",
    broken="The web search gave me nothing that I can use.",
)

Safety: TypeAlias = Literal["strict", "moderate", "off"]
"""Whether pages for adults are left out, as far as the service can tell."""


class SearchEngine(Protocol):
    """One service that searches the web."""

    @property
    def place(self) -> str:
        """Its name or address, for the owner."""
        ...

    async def search(self, query: str) -> SearchResults:
        """Search for words.

        Raises:
            ToolFailure: it cannot be reached, refuses, or sends what cannot be read.
        """
        ...
