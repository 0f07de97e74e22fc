"""Searches by Brave's API, with a key of the owner's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from caal_node.toolsets.http_service import (
    HttpService,
    LateClient,
    ServiceRefused,
    objects_in,
    spoken,
)
from caal_node.toolsets.web_search.engine import (
    FETCHED,
    SEARCH_S,
    WORDS,
    Safety,
    SearchResults,
    distinct,
    result_of,
)

BRAVE_URL: Final = "https://api.search.brave.com/res/v1/web/search"
QUERY_WORDS: Final = 50
"""Words that Brave takes of a query; a longer one is refused with 422."""


class Brave:
    """Brave's web search. `url` is where its API is."""

    def __init__(
        self,
        client: LateClient,
        key: str,
        *,
        language: str,
        country: str,
        safety: Safety,
        url: str = BRAVE_URL,
    ) -> None:
        self.place: Final = "Brave Search"
        self._service = HttpService(client, self.place, WORDS, timeout_s=SEARCH_S)
        self._url = url
        self._headers = {"X-Subscription-Token": key, "Accept": "application/json"}
        self._given: dict[str, str | int] = {
            "count": FETCHED,
            "safesearch": safety,
            "search_lang": language,
            "text_decorations": "false",
            "result_filter": "web",
        } | ({"country": country} if country else {})

    async def search(self, query: str) -> SearchResults:
        """See `SearchEngine`."""
        words = " ".join(query.split()[:QUERY_WORDS])
        given = {"q": words, **self._given}
        try:
            body = await self._service.get(self._url, params=given, headers=self._headers)
        except ServiceRefused as error:
            said = f"{self.place} refuses the search; look at brave_key, and at what it may do."
            raise spoken(ServiceRefused(said), WORDS.refused) from error
        return read_results(query, body)


def read_results(query: str, body: Mapping[str, Any]) -> SearchResults:
    """Read an answer of Brave's web search."""
    web = next(iter(objects_in([body.get("web")])), body)
    pages = (
        result_of(row.get("title"), row.get("url"), row.get("description"), row.get("page_age"))
        for row in objects_in(web.get("results"))
    )
    return SearchResults(query, distinct(pages)[:FETCHED])
