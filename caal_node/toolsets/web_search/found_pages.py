"""Which pages a conversation's searches have found, which one is meant, and which were used."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from caal_node.core.events import Source
from caal_node.grounding.spoken_numbers import numbers
from caal_node.policy.heard_words import COMMON, stems
from caal_node.toolsets.web_search.results import FoundPage, SearchResults, result_of

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
