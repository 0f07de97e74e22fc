"""A search engine takes words and gives results."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from caal_node.toolsets.http_service import ServiceWords

# What a search found, cleaned and cut to what a small model reads and a person hears.

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
