"""The toolset `web_search`: search the web, read a page that was found, and name the sources."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Annotated, Any, Final, Literal

from livekit.agents import RunContext
from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from caal_node.core.addresses import server_url
from caal_node.core.errors import ConfigError, InvalidArguments
from caal_node.core.events import SourcesCited
from caal_node.tools.request import request_of
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, ToolsetServices, tool
from caal_node.toolsets.http_service import LateClient, spoken
from caal_node.toolsets.web_search.brave import Brave
from caal_node.toolsets.web_search.duckduckgo import DuckDuckGo, lookup_by_ddgs
from caal_node.toolsets.web_search.engine import SEARCH_S, Safety, SearchEngine
from caal_node.toolsets.web_search.found_pages import FoundPages, page_said, spoken_sources
from caal_node.toolsets.web_search.page_fetch import PAGE_BYTES, PageFetch
from caal_node.toolsets.web_search.page_text import UNREADABLE, PageText, text_of
from caal_node.toolsets.web_search.passages import passages
from caal_node.toolsets.web_search.results import QUERY_CHARS, FoundPage
from caal_node.toolsets.web_search.searxng import SearXNG

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
        return f"{self._engine.place} answers; a test search found {len(found.results)} pages"

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
