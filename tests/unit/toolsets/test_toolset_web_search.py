"""The toolset web_search: what the model reads, which page is meant, and what is cited."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from caal_node.answers.search_tools import search_arguments, search_tool
from caal_node.core.errors import ConfigError, InvalidArguments
from caal_node.core.events import Event, Events, Source, SourcesCited, from_json, to_json
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.methods import spec_of
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.web_search import (
    NOTHING,
    FoundPages,
    WebSearch,
    WebSearchOptions,
    page_said,
    passages,
    spoken_sources,
)
from caal_node.toolsets.web_search.engines import (
    FoundPage,
    SearchResults,
    cut_text,
    plain_text,
)
from caal_node.toolsets.web_search.page_fetch import FetchedPage
from tests.stand_ins.conversation import Heard

FINAL = FoundPage("Blue team wins", "https://www.example.org/a", "They won 2-1.", "2026-11-22")
WIKI = FoundPage("Final (competition)", "https://en.wikipedia.org/wiki/Final", "The last match.")
NEWS = FoundPage("Sunday's matches", "https://news.example.com/1")
FOUND = SearchResults("who won the final", (FINAL, WIKI, NEWS))


class FakeEngine:
    place = "a fake engine"

    def __init__(self, found: SearchResults = FOUND) -> None:
        self.found = found
        self.asked: list[str] = []

    async def search(self, query: str) -> SearchResults:
        self.asked.append(query)
        return self.found


class FakePages:
    """Every page is a plain text that names its address."""

    async def fetch(self, address: str) -> FetchedPage:
        text = f"The page of {address}.\nIt cost nine euros to get in, and the queue was long."
        return FetchedPage(address, text.encode(), is_plain=True)


def web_search(
    found: SearchResults = FOUND, told: list[Event] | None = None, **options: Any
) -> WebSearch:
    events = [] if told is None else told
    return WebSearch(
        WebSearchOptions(engine="duckduckgo", **options),
        ToolsetServices(events=Events(Heard(events))),
        engine=FakeEngine(found),
        pages=FakePages(),  # type: ignore[arg-type]
    )


async def test_a_search_gives_a_few_results_without_their_addresses() -> None:
    value = await web_search(results=2).web_search(query="  who won\nthe final ")
    assert value == {
        "results": [
            {
                "title": "Blue team wins",
                "site": "example.org",
                "date": "2026-11-22",
                "text": "They won 2-1.",
            },
            {"title": "Final (competition)", "site": "en.wikipedia.org", "text": "The last match."},
        ]
    }


async def test_where_nothing_is_found_a_person_hears_so_without_the_model() -> None:
    assert await web_search(SearchResults("zzz")).web_search(query="zzz") == VerbatimResult(
        {"results": []}, NOTHING
    )


async def test_an_answer_of_the_service_comes_first() -> None:
    found = SearchResults("height of mount fuji", (WIKI,), "3,776 metres")
    value = await web_search(found).web_search(query="height of mount fuji")
    assert list(value) == ["answer", "results"]


async def test_what_was_read_is_told_and_named() -> None:
    told: list[Event] = []
    searcher = web_search(told=told, results=2)
    assert "haven't looked" in (await searcher.name_sources()).words
    await searcher.web_search(query="who won")
    both = (
        Source("Blue team wins", "https://www.example.org/a", "example.org"),
        Source("Final (competition)", "https://en.wikipedia.org/wiki/Final", "en.wikipedia.org"),
    )
    assert told == [SourcesCited("web_search", both)]
    said = await searcher.name_sources()
    assert said.words == (
        "I looked at these pages: Blue team wins, on example.org; and "
        "Final (competition), on en.wikipedia.org."
    )
    assert said.value["sources"][0]["address"] == "https://www.example.org/a"
    await searcher.read(page="2")
    assert told[1:] == [SourcesCited("read_page", both[1:])]
    assert (await searcher.name_sources()).words == (
        "I read it here: Final (competition), on en.wikipedia.org."
    )


async def test_a_page_is_read_for_what_is_asked() -> None:
    searcher = web_search(page_characters=300)
    with pytest.raises(InvalidArguments, match="call web_search first"):
        await searcher.read("1")
    await searcher.web_search(query="who won")
    read = await searcher.read(page="the second one", about="what did it cost")
    assert read["site"] == "en.wikipedia.org"
    assert "nine euros" in read["text"]


async def test_a_page_that_no_search_has_found_is_not_opened() -> None:
    searcher = web_search()
    await searcher.web_search(query="who won")
    with pytest.raises(InvalidArguments, match=r"there are 1 example\.org, 2 en\.wikipedia"):
        await searcher.read(page="https://evil.example/?q=what-was-said")


async def test_what_was_found_is_forgotten_with_the_conversation() -> None:
    searcher = web_search()
    await searcher.web_search(query="who won")
    await searcher.aclose()
    with pytest.raises(InvalidArguments):
        await searcher.read("1")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("1", FINAL),
        ("2", WIKI),
        ("the third one", NEWS),
        ("result number two", WIKI),
        ("en.wikipedia.org", WIKI),
        ("wikipedia", WIKI),
        ("www.example.org", FINAL),
        ("https://news.example.com/1", NEWS),
        ("the one about Sunday's matches", NEWS),
        ("blue team", FINAL),
        ("4", None),
        ("0", None),
        ("", None),
        ("the cooking one", None),
    ],
)
def test_which_page_is_meant(words: str, meant: FoundPage | None) -> None:
    pages = FoundPages()
    pages.note_search(FOUND, 3)
    found = pages.meant(words)
    assert (found and found[0]) == meant


def test_a_number_counts_in_the_newest_search_and_a_name_in_older_ones() -> None:
    pages = FoundPages()
    pages.note_search(FOUND, 3)
    other = FoundPage("Rain tomorrow", "https://weather.example/")
    pages.note_search(SearchResults("rain", (other,)), 3)
    assert pages.meant("first") == (other, "rain")
    assert pages.meant("wikipedia") == (WIKI, "who won the final")


@given(st.text(max_size=200))
def test_any_words_for_a_page_are_read(words: str) -> None:
    pages = FoundPages()
    pages.note_search(FOUND, 3)
    found = pages.meant(words)
    assert found is None or found[0] in FOUND.results


def test_no_more_sources_are_spoken_than_anybody_remembers() -> None:
    many = [Source(f"Page {at}", f"https://x{at}.example/", f"x{at}.example") for at in range(8)]
    assert spoken_sources(many).count("Page") == 3


def test_the_event_of_sources_is_read_back_as_it_was_written() -> None:
    event = SourcesCited("web_search", (Source("A", "https://a.example/", "a.example"),))
    assert from_json(to_json(event)) == event


def test_the_safety_net_for_hedges_searches_by_it() -> None:
    schemas: list[dict[str, Any]] = [
        {
            "type": "function",
            "function": {
                "name": (spec := spec_of(each, "Agent")).name,  # type: ignore[arg-type]
                "description": spec.description,
                "parameters": spec.parameters,
            },
        }
        for each in web_search().tools
    ]
    assert search_tool(schemas) == "web_search"
    (schema,) = [each for each in schemas if each["function"]["name"] == "web_search"]
    assert search_arguments(schema, "who won?") == {"query": "who won?"}


def test_its_tools_only_read_and_have_examples() -> None:
    specs = [spec_of(each, "Agent") for each in web_search().tools]  # type: ignore[arg-type]
    assert {spec.name: spec.effect for spec in specs} == {
        "web_search": "read",
        "read_page": "read",
        "name_sources": "read",
    }
    assert all(spec.examples for spec in specs)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"engine": "searxng"}, "searxng_url"),
        ({"engine": "brave"}, "brave_key"),
        ({"engine": "searxng", "searxng_url": "ftp://x"}, "searxng_url"),
        ({"engine": "google"}, "engine"),
        ({"engine": "duckduckgo", "results": 50}, "results"),
    ],
)
def test_wrong_options_name_the_key(options: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValidationError) as caught:
        WebSearchOptions.model_validate(options)
    assert caught.value.errors()[0]["loc"] == (wrong,)


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caal_node.toolsets.web_search.find_spec", dict[str, object]().get)
    with pytest.raises(ConfigError, match=r"pip install 'caal-node\[web\]'"):
        web_search()


def test_a_text_is_cut_where_a_sentence_ends() -> None:
    assert cut_text("One sentence here. Another one there.", 30) == "One sentence here."
    assert cut_text("no sentence ends in these many words", 20) == "no sentence ends in…"


@given(st.text(max_size=400), st.integers(1, 120))
def test_a_cut_text_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    assert len(cut_text(text, limit)) <= limit


def test_html_and_invisible_characters_are_taken_out() -> None:
    assert plain_text("A <b>bold</b>\n&amp; \u200b\u202eplain\x00 text") == "A bold & plain text"


@given(
    st.lists(st.text(max_size=80), max_size=30).map("\n".join),
    st.text(max_size=40),
    st.integers(1, 400),
)
def test_passages_fit_and_come_from_the_page(text: str, question: str, limit: int) -> None:
    shown = passages(text, question, limit)
    assert len(shown) <= limit
    rows = {" ".join(row.split()) for row in text.splitlines()}
    for line in shown.split("\n"):
        assert any(row.startswith(line.rstrip("…")) for row in rows | {""})


def test_the_paragraphs_of_the_question_are_shown_in_the_page_s_order() -> None:
    filler = "Here is a paragraph about nothing that anybody would like to know at all. " * 3
    price = "The price of a ticket is nine euros, and children are free of charge on Sunday."
    place = "Tickets are sold at the station, where the price is shown on a large board too."
    text = "\n".join(["What it is about.", *[filler] * 9, price, filler, place])
    shown = passages(text, "the ticket price", 200)
    assert shown == f"What it is about.\n{price}\n{place}"


@pytest.mark.parametrize(
    ("request_", "address"),
    [
        ("Read https://a.example/x?y=1 for me.", "https://a.example/x?y=1"),
        ("what does (http://a.example) say?", "http://a.example"),
        ("compare https://a.example with https://b.example", None),
        ("read the second one", None),
        ("https://", None),
    ],
)
def test_a_page_whose_address_a_person_gives_is_meant(request_: str, address: str | None) -> None:
    found = page_said(request_)
    assert (found and found.address) == address


async def test_a_page_that_a_person_names_is_read_and_cited() -> None:
    told: list[Event] = []
    read = await web_search(told=told).read("1", request="Read https://a.example/x for me.")
    assert read["site"] == "a.example"
    assert "https://a.example/x" in read["text"]
    (cited,) = told
    assert isinstance(cited, SourcesCited)
    assert cited.sources[0].address == "https://a.example/x"
