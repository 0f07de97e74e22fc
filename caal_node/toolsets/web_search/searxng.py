"""Searches by a SearXNG of the owner's own, which asks many search engines and knows nobody.

Its JSON is off by default: `search.formats` in its `settings.yml` has to name `json`, else it
answers 403.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from caal_node.core.errors import ToolUnavailable
from caal_node.toolsets.http_service import (
    HttpService,
    LateClient,
    ServiceRefused,
    objects_in,
    spoken,
)
from caal_node.toolsets.web_search.engine import (
    ANSWER_CHARS,
    FETCHED,
    SEARCH_S,
    WORDS,
    Safety,
    SearchResults,
    cut_text,
    distinct,
    plain_text,
    result_of,
)

_SAFETY: Final[Mapping[Safety, int]] = {"off": 0, "moderate": 1, "strict": 2}


class SearXNG:
    """A SearXNG at an address, such as `http://127.0.0.1:8888`."""

    def __init__(self, client: LateClient, url: str, *, language: str, safety: Safety) -> None:
        self.place: Final = f"SearXNG at {url}"
        self._service = HttpService(client, self.place, WORDS, timeout_s=SEARCH_S)
        self._url = f"{url}/search"
        self._given = {"language": language, "safesearch": _SAFETY[safety], "format": "json"}

    async def search(self, query: str) -> SearchResults:
        """See `SearchEngine`."""
        try:
            body = await self._service.get(self._url, params={"q": query, **self._given})
        except ServiceRefused as error:
            failure = ServiceRefused(
                f"{self.place} refuses searches in JSON; add json to search.formats in its "
                "settings.yml, and turn its limiter off for this machine."
            )
            raise spoken(failure, WORDS.refused) from error
        found = read_results(query, body)
        if found.is_empty and body.get("unresponsive_engines"):
            failure = ToolUnavailable(f"none of the engines of {self.place} gave an answer.")
            raise spoken(failure, WORDS.unreachable)
        return found


def read_results(query: str, body: Mapping[str, Any]) -> SearchResults:
    """Read an answer of SearXNG: its pages, and its own answer or the box about a thing."""
    pages = (
        result_of(row.get("title"), row.get("url"), row.get("content"), row.get("publishedDate"))
        for row in objects_in(body.get("results"))
    )
    said = next(_answers(body), "")
    return SearchResults(query, distinct(pages)[:FETCHED], cut_text(said, ANSWER_CHARS))


def _answers(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what SearXNG answers by itself. Older versions send texts, newer ones objects."""
    answers = body.get("answers")
    for each in cast("list[object]", answers) if isinstance(answers, list) else []:
        row = cast("Mapping[str, Any]", each) if isinstance(each, dict) else {"answer": each}
        if text := plain_text(row.get("answer")):
            yield text
    for row in objects_in(body.get("infoboxes")):
        name, text = plain_text(row.get("infobox")), plain_text(row.get("content"))
        if text:
            yield f"{name}: {text}" if name else text
