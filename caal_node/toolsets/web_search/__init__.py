"""The toolset `web_search`: searches the web, reads a page that was found, and names the sources.

The owner chooses the service that searches: `engines.py`.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any, Final, Literal

from livekit.agents import RunContext
from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from caal_node.core.addresses import server_url
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError, InvalidArguments
from caal_node.core.events import Source, SourcesCited
from caal_node.grounding.spoken_numbers import numbers
from caal_node.policy.heard_words import COMMON, stems
from caal_node.tools.caller_of_call import request_of
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, ToolsetServices, tool
from caal_node.toolsets.http_service import LateClient, spoken
from caal_node.toolsets.web_search.engines import (
    QUERY_CHARS,
    SEARCH_S,
    Brave,
    DuckDuckGo,
    FoundPage,
    Safety,
    SearchEngine,
    SearchResults,
    SearXNG,
    cut_text,
    lookup_by_ddgs,
    result_of,
)
from caal_node.toolsets.web_search.page_fetch import (
    PAGE_BYTES,
    UNREADABLE,
    PageFetch,
    PageText,
    text_of,
)

# Chooses what a model reads of a page: the paragraphs that share words with a question.

PARAGRAPHS_MAX: Final = 400
"""Paragraphs of a page that are compared; more is an index and no text."""
PARAGRAPH_CHARS: Final = 600
"""Characters of one paragraph that are shown, so that one does not hide all others."""
CUT_CHARS: Final = 80
"""Characters below which the beginning of a further paragraph says nothing."""
_HEAD_SCORE: Final = 0.5
"""What the first paragraph is worth by its place: it says what the page is about, and a paragraph
with a word of the question is worth more."""


def passages(text: str, question: str, limit: int) -> str:
    """Return the parts of `text` that fit a question best, in the page's order.

    Args:
        text: A page's text, a paragraph a line.
        question: What is to be answered; "" takes the page's beginning.
        limit: Characters of the whole at most.
    """
    rows = [" ".join(row.split()) for row in text.splitlines()]
    rows = [row for row in rows if row][:PARAGRAPHS_MAX]
    asked = stems(question) - COMMON
    ranked = sorted(range(len(rows)), key=lambda at: (-_score(rows[at], asked, at), at))
    return "\n".join(rows_within(rows, ranked, limit))


def rows_within(rows: list[str], ranked: Iterable[int], limit: int) -> list[str]:
    """Return the best of `rows`, cut, in their own order, that together fit into `limit`."""
    chosen: dict[int, str] = {}
    left = limit
    for at in ranked:
        row = cut_text(rows[at], min(PARAGRAPH_CHARS, left)) if left > 0 else ""
        if not row or (chosen and row != rows[at] and len(row) < CUT_CHARS):
            break
        chosen[at] = row
        left -= len(row) + 1  # and the end of its line
    return [chosen[at] for at in sorted(chosen)]


def _score(row: str, asked: frozenset[str], at: int) -> float:
    """Return how many words of the question a paragraph has; earlier ones win where that is equal.

    A heading, of a few words, is little by itself.
    """
    found = len(asked & stems(row))
    return found * (1.0 if len(row) > 60 else 0.5) + (_HEAD_SCORE if at == 0 else 0.0)


# Which pages a conversation's searches have found, which one is meant, and which were used.

SEARCHES_MAX: Final = 8
"""Searches whose pages can still be opened. Nobody goes further back."""
SPOKEN_MAX: Final = 3
"""Sources that are named aloud."""
WORDS_CHARS: Final = 2_048
"""Characters of what names a page: as many as an address may have."""
_ORDINALS: Final[Mapping[str, int]] = {
    word: at
    for at, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(),  # noqa: SIM905 - a list of words reads better as words
        1,
    )
}
_PAGE_WORDS: Final = stems("number result page link site")
_ADDRESS: Final = re.compile(r"https?://[^\s<>]+")
_WORD: Final = re.compile(r"[^\W\d_]+")


class FoundPages:
    """The pages of the last searches, and what the last answer was made of."""

    def __init__(self) -> None:
        self._searches: deque[SearchResults] = deque(maxlen=SEARCHES_MAX)
        self.cited: Sequence[Source] = ()
        """The pages that the newest answer was made of."""

    def note_search(self, found: SearchResults, shown: int) -> None:
        """Remember a search, of which the model reads `shown` results."""
        self._searches.appendleft(found)
        self.cited = tuple(map(source_of, found.results[:shown]))

    def note_read(self, page: FoundPage) -> None:
        """Remember that a page was read."""
        self.cited = (source_of(page),)

    @property
    def newest(self) -> Sequence[FoundPage]:
        """The pages of the newest search."""
        return self._searches[0].results if self._searches else ()

    def meant(self, words: str) -> tuple[FoundPage, str] | None:
        """Return the page that is meant by a number, a site, a title or an address, and what was
        searched for when it was found; None where none fits.

        A number is its place in the newest search.
        """
        words = words[:WORDS_CHARS]
        if (at := _place_in(words)) is not None:
            fits = at <= len(self.newest)
            return (self.newest[at - 1], self._searches[0].query) if fits else None
        wanted = words.strip().casefold().removeprefix("www.").rstrip("/")
        for search in self._searches:
            for page in search.results:
                if wanted and wanted in (page.address.casefold().rstrip("/"), page.site):
                    return page, search.query
        return None if "://" in words else self._by_words(words)

    def _by_words(self, words: str) -> tuple[FoundPage, str] | None:
        asked = {each for each in stems(words) - COMMON if not each.isdecimal()}
        best: tuple[FoundPage, str] | None = None
        most = 0
        for search in self._searches:
            for page in search.results:
                shared = len(asked & stems(f"{page.title} {page.site.replace('.', ' ')}"))
                if shared > most:
                    best, most = (page, search.query), shared
        return best


def _place_in(words: str) -> int | None:
    """Return the place that "2", "the second one" or "number two" says, from 1."""
    text = words.casefold()
    if "." in text.strip(" ."):  # a site
        return None
    for word in _WORD.findall(text):
        if (place := _ORDINALS.get(word)) is not None:
            return place
    found = [number for number in numbers(text) if number.value == int(number.value) >= 1]
    others = {each for each in stems(text) - COMMON - _PAGE_WORDS if not each.isdecimal()}
    return int(found[0].value) if len(found) == 1 and not others else None


def page_said(request: str) -> FoundPage | None:
    """Return the page whose address a person wrote or pasted; None for none, or for several."""
    addresses = {match[0].rstrip(".,;:!?)'\"") for match in _ADDRESS.finditer(request)}
    if len(addresses) != 1:
        return None
    page = result_of("", addresses.pop(), "")
    return page if page.site else None


def source_of(page: FoundPage) -> Source:
    """Return a page as a source that an answer names."""
    return Source(page.title, page.address, page.site)


def spoken_sources(sources: Sequence[Source]) -> str:
    """Return the sentence that names where something was read."""
    if not sources:
        return "I haven't looked anything up on the web yet."
    named = [f"{each.title}, on {each.site}" for each in sources[:SPOKEN_MAX]]
    if len(named) == 1:
        return f"I read it here: {named[0]}."
    return f"I looked at these pages: {'; '.join(named[:-1])}; and {named[-1]}."


NOTHING: Final = "I found nothing about that on the web."
_LIBRARIES: Final = ("trafilatura", "ddgs")


def _address(text: str) -> str:
    return server_url(text, ("http", "https"))


class WebSearchOptions(ToolsetOptions):
    """The table `[toolsets.web_search]`."""

    engine: Literal["searxng", "brave", "duckduckgo"] = Field(
        description="Which service searches: searxng (your own), brave (with a key) or duckduckgo"
    )
    searxng_url: Annotated[str, AfterValidator(_address)] | None = Field(
        default=None,
        description="The address of your SearXNG, such as http://127.0.0.1:8888",
        validate_default=True,
    )
    brave_key: SecretStr | None = Field(
        default=None,
        description="Your key for Brave's search API (api-dashboard.search.brave.com)",
        validate_default=True,
    )
    results: int = Field(default=3, ge=1, le=8)
    """How many results the model reads of a search."""
    page_characters: int = Field(default=1800, ge=300, le=5000)
    """How much of a page it reads: about 450 tokens."""
    language: str = Field(default="en", pattern=r"^[a-z]{2}$")
    country: str = Field(default="", pattern=r"^([A-Z]{2})?$")
    safe_search: Safety = "moderate"

    @field_validator("searxng_url", "brave_key")
    @classmethod
    def _needed(cls, value: object, info: ValidationInfo) -> object:
        needs = {"searxng_url": "searxng", "brave_key": "brave"}[str(info.field_name)]
        if value is None and info.data.get("engine") == needs:
            raise ValueError(f'engine = "{needs}" needs it; run: caal-node tools add web_search')
        return value


class WebSearch(ConfiguredToolset):
    """Searches the web and reads what it finds.

    Args:
        engine: Searches in place of the service of the options.
        pages: Fetches pages in place of the public web's.
    """

    NAME = "web_search"
    SUMMARY = "Searches the web, reads pages that it found, and says where it read something."
    EXTRA = "web"
    Options = WebSearchOptions

    def __init__(
        self,
        options: WebSearchOptions | None = None,
        services: ToolsetServices | None = None,
        *,
        engine: SearchEngine | None = None,
        pages: PageFetch | None = None,
    ) -> None:
        options = options or WebSearchOptions(engine="duckduckgo")
        super().__init__(options, services)
        for name in _LIBRARIES:
            if find_spec(name) is None:
                raise ConfigError(
                    f"{self.NAME} needs {name}; run: pip install 'caal-node[{self.EXTRA}]'"
                )
        self._client = LateClient(timeout_s=SEARCH_S, max_bytes=2 * PAGE_BYTES)
        self._engine = engine or _engine_of(options, self._client)
        self._pages = pages or PageFetch(self._client)
        self._found = FoundPages()

    async def aclose(self) -> None:
        """Close the connections. What was found is forgotten with the conversation."""
        await super().aclose()
        await self._client.aclose()
        self._found = FoundPages()

    async def check(self) -> str:
        """Search once, and say what came."""
        try:
            found = await self._engine.search("weather")
        finally:
            await self._client.aclose()
        pages = counted(len(found.results), "page")
        return f"{self._engine.place} answers; a test search found {pages}"

    @tool("read")
    async def web_search(self, query: str) -> dict[str, Any] | VerbatimResult:
        """Search online, on the internet, for news, prices, people and facts you do not know.

        Example: who won the match last night -> {"query": "match result last night"}
        Example: look up the height of Mount Fuji -> {"query": "height of Mount Fuji"}

        Args:
            query: The words to search for.
        """
        words = " ".join(query.split())[:QUERY_CHARS]
        if not words:
            raise InvalidArguments("query is empty; write the words to search for.")
        found = await self._engine.search(words)
        self._found.note_search(found, self.options.results)
        self._cite("web_search")
        value = found.for_model(self.options.results)
        return VerbatimResult(value, NOTHING) if found.is_empty else value

    @tool("read")
    async def read_page(
        self, context: RunContext[Any], page: str = "1", about: str = ""
    ) -> dict[str, Any]:
        """Read a page that web_search has found, for more than its first lines.

        Example: read me the first one -> {"page": "1"}
        Example: what does the second page say about the price -> {"page": "2", "about": "price"}

        Args:
            page: Its number in the results, or its site.
            about: What you want to know from it.
        """
        return await self.read(page, about, request=request_of(context))

    async def read(self, page: str, about: str = "", *, request: str = "") -> dict[str, Any]:
        """Return the text of a page that was found, or whose address is in the person's words.

        Args:
            request: Those words.

        Raises:
            InvalidArguments: there is no such page, or nothing to read on it.
            ToolFailure: it cannot be opened.
        """
        said = page_said(request)
        found, query = (said, "") if said is not None else self._meant(page)
        fetched = await self._pages.fetch(found.address)
        if fetched.is_plain:
            text = PageText(found.title, "", fetched.body.decode("utf-8", "replace"))
        else:
            text = await text_of(fetched.body)
        # Words of a long page are compared for some 50 ms.
        limit = self.options.page_characters
        shown = await asyncio.to_thread(passages, text.text, about or query, limit)
        if not shown:
            raise spoken(InvalidArguments("that page has no text; read another one."), UNREADABLE)
        self._found.note_read(found)
        self._cite("read_page")
        read = {"title": found.title, "site": found.site, "date": text.date, "text": shown}
        return {name: value for name, value in read.items() if value}

    @tool("read", remembered=False)
    async def name_sources(self) -> VerbatimResult:
        """Say on which web pages the last answer was read.

        Example: where did you read that -> {}
        Example: what are your sources -> {}
        """
        sources = [
            {"title": each.title, "site": each.site, "address": each.address}
            for each in self._found.cited
        ]
        return VerbatimResult({"sources": sources}, spoken_sources(self._found.cited))

    def _meant(self, page: str) -> tuple[FoundPage, str]:
        if not self._found.newest:
            raise InvalidArguments("nothing was searched for yet; call web_search first.")
        if (meant := self._found.meant(page)) is None:
            known = ", ".join(f"{at} {each.site}" for at, each in enumerate(self._found.newest, 1))
            raise InvalidArguments(f"there is no such page in the results; there are {known}.")
        return meant

    def _cite(self, tool_name: str) -> None:
        if self._found.cited:
            self.services.emit(SourcesCited(tool_name, tuple(self._found.cited)))


def _engine_of(options: WebSearchOptions, client: LateClient) -> SearchEngine:
    language, safety = options.language, options.safe_search
    if options.engine == "searxng" and options.searxng_url is not None:
        return SearXNG(client, options.searxng_url, language=language, safety=safety)
    if options.engine == "brave" and options.brave_key is not None:
        key = options.brave_key.get_secret_value()
        country = options.country
        return Brave(client, key, language=language, country=country, safety=safety)
    return DuckDuckGo(lookup_by_ddgs(language=language, country=options.country, safety=safety))
