"""The search engines: each takes words and gives results, cleaned and cut."""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# The library for DuckDuckGo leaves its types open.

from __future__ import annotations

import asyncio
import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

from caal_node.core.errors import ToolUnavailable
from caal_node.network.guard import policies, refusal
from caal_node.toolsets.http_service import (
    HttpService,
    LateClient,
    ServiceRefused,
    ServiceWords,
    objects_in,
    spoken,
)

# A search's results: what a small model reads and a person hears.

TEXT_CHARS: Final = 240
"""Characters of a result's text: two sentences, about 60 tokens."""
TITLE_CHARS: Final = 100
ANSWER_CHARS: Final = 400
"""Characters of the answer that a service gives by itself, such as the head of an article."""
ADDRESS_CHARS: Final = 2_048
"""Characters of an address. Browsers and servers take about as many."""
QUERY_CHARS: Final = 400
"""Characters of what is searched for. Services take about as many."""
RAW_CHARS: Final = 1_500
"""Characters of a text that are cleaned, several times as many as are shown."""
ROWS_MAX: Final = 30
"""Rows of an answer that are looked at. To clean them takes a few milliseconds."""

_TAG: Final = re.compile(r"<[^<>]{0,500}>")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_SENTENCE_END: Final = re.compile(r"[.!?…][\"')\]]*(?=\s)")


@dataclass(frozen=True, slots=True)
class FoundPage:
    """One page that a search has found."""

    title: str
    address: str
    text: str = ""
    date: str = ""
    """When it was published, as `2026-11-23`; "" where nobody says."""

    @property
    def site(self) -> str:
        """The host without `www.`, as people name a site."""
        return site_of(self.address)


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What one search found, best first."""

    query: str
    results: tuple[FoundPage, ...] = ()
    answer: str = ""
    """The service's own answer, "" where it gave none."""

    @property
    def is_empty(self) -> bool:
        return not (self.results or self.answer)

    def for_model(self, count: int) -> dict[str, Any]:
        """Return what the model reads: the answer, and `count` results without their addresses.

        An address is thirty tokens that nobody wants to hear; the site and the title name a page.
        """
        shown = [
            {"title": each.title, "site": each.site, "date": each.date, "text": each.text}
            for each in self.results[:count]
        ]
        rows = [{name: value for name, value in row.items() if value} for row in shown]
        return {"answer": self.answer, "results": rows} if self.answer else {"results": rows}


def site_of(address: str) -> str:
    """Return the host of an address without `www.`."""
    try:
        return (urlsplit(address).hostname or "").removeprefix("www.")
    except ValueError:  # such as a bracket that is not closed
        return ""


def result_of(title: object, address: object, text: object, date: object = "") -> FoundPage:
    """Make a result of what a service sent, whatever its types are.

    A page without a title is named by its site.
    """
    where = str(address or "").strip()[:ADDRESS_CHARS]
    day = _DATE.match(str(date or ""))
    name = cut_text(plain_text(title), TITLE_CHARS) or site_of(where)
    return FoundPage(name, where, cut_text(plain_text(text), TEXT_CHARS), day[0] if day else "")


def distinct(results: Iterable[FoundPage]) -> tuple[FoundPage, ...]:
    """Return the results that lead to a web page, each page once."""
    found: dict[str, FoundPage] = {}
    for each in islice(results, ROWS_MAX):
        if each.site and each.address.startswith(("http://", "https://")):
            found.setdefault(each.address.partition("#")[0].rstrip("/"), each)
    return tuple(found.values())


def plain_text(value: object) -> str:
    """Return a text on one line, without HTML and without characters that nobody sees."""
    if not isinstance(value, str):
        return ""
    text = " ".join(html.unescape(_TAG.sub("", value[:RAW_CHARS])).split())
    if text.isprintable():
        return text
    seen = "".join(char for char in text if unicodedata.category(char)[0] != "C")
    return " ".join(seen.split())


def cut_text(text: str, limit: int) -> str:
    """Return the beginning of a text in at most `limit` characters, ended where a sentence does.

    Where no sentence ends in the second half it ends at a word, with an ellipsis.
    """
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, limit + 1)]
    if ends and limit // 2 <= ends[-1] <= limit:
        return text[: ends[-1]]
    beginning = text[: limit - 1]
    if not text[limit - 1].isspace():
        beginning = beginning.rpartition(" ")[0] or beginning
    return f"{beginning.rstrip()}…"


# What every engine is.

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


# Searches by Brave's API, with a key of the owner's.

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
        return brave_results(query, body)


def brave_results(query: str, body: Mapping[str, Any]) -> SearchResults:
    """Read an answer of Brave's web search."""
    web = next(iter(objects_in([body.get("web")])), body)
    pages = (
        result_of(row.get("title"), row.get("url"), row.get("description"), row.get("page_age"))
        for row in objects_in(web.get("results"))
    )
    return SearchResults(query, distinct(pages)[:FETCHED])


# Searches by DuckDuckGo's pages, without a key, by the library ddgs.
#
# The library connects past Python's sockets, so CAAL_NETWORK could not hold it: where a limit is
# set it is not used at all. It blocks, so it runs in a thread, and stops by its own deadline.

Lookup: TypeAlias = Callable[[str], Sequence[Any]]
"""It searches for words, blocking, and returns ddgs's rows: objects of title, href and body."""
ENGINE_S: Final = 6
"""Whole seconds that ddgs gives one page of DuckDuckGo's, so that it ends within SEARCH_S."""
_NOTHING: Final = "No results found"
_DUCKDUCKGO_SAFETY: Final = {"strict": "on", "moderate": "moderate", "off": "off"}


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
        return duckduckgo_results(query, rows)


def duckduckgo_results(query: str, rows: Sequence[Any]) -> SearchResults:
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
    given: dict[str, Any] = {"region": region, "safesearch": _DUCKDUCKGO_SAFETY[safety]}

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


# Searches by a SearXNG of the owner's own, which asks many search engines and knows nobody.
#
# Its JSON is off by default: `search.formats` in its `settings.yml` has to name `json`, else it
# answers 403.

_SEARXNG_SAFETY: Final[Mapping[Safety, int]] = {"off": 0, "moderate": 1, "strict": 2}


class SearXNG:
    """A SearXNG at an address, such as `http://127.0.0.1:8888`."""

    def __init__(self, client: LateClient, url: str, *, language: str, safety: Safety) -> None:
        self.place: Final = f"SearXNG at {url}"
        self._service = HttpService(client, self.place, WORDS, timeout_s=SEARCH_S)
        self._url = f"{url}/search"
        self._given = {
            "language": language,
            "safesearch": _SEARXNG_SAFETY[safety],
            "format": "json",
        }

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
        found = searxng_results(query, body)
        if found.is_empty and body.get("unresponsive_engines"):
            failure = ToolUnavailable(f"none of the engines of {self.place} gave an answer.")
            raise spoken(failure, WORDS.unreachable)
        return found


def searxng_results(query: str, body: Mapping[str, Any]) -> SearchResults:
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
