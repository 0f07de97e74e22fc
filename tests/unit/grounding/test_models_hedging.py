"""Replies that say they cannot know what is current, and the tool that could."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.answers.search_tools import search_arguments, search_tool
from caal_node.grounding.hedges import denies_access, hedges
from tests.labelled_sentences import sentences

DATA = Path(__file__).parents[2] / "data"


def replies(name: str) -> list[str]:
    return [line for line in (DATA / name).read_text(encoding="utf-8").splitlines() if line]


def share(name: str) -> float:
    rows = replies(name)
    return sum(map(hedges, rows)) / len(rows)


def test_hedges_are_found() -> None:
    assert len(replies("hedges.txt")) >= 250
    assert share("hedges.txt") >= 0.99


def test_ordinary_replies_do_not_count() -> None:
    assert len(replies("ordinary_replies.txt")) >= 450
    assert share("ordinary_replies.txt") <= 0.012


def test_words_that_nothing_was_learned_from() -> None:
    """Do not fix the sentences by these two files: they would tell nothing any more."""
    assert share("hedges_held_out.txt") >= 0.85
    assert share("ordinary_replies_held_out.txt") <= 0.035


@pytest.mark.parametrize("language", ["en", "de"])
def test_hedges_by_another_topic_are_found_and_answers_pass(language: str) -> None:
    held_out = [each for each in sentences("answer", held_out=True) if each.language == language]
    hedged = [hedges(each.text) for each in held_out if each.label == "hedges"]
    others = [hedges(each.text) for each in held_out if each.label in ("answers", "nothing")]
    assert sum(hedged) / len(hedged) >= 0.8
    assert sum(others) / len(others) <= 0.02


def test_what_is_the_persons_own_is_denied_by_no_hedge() -> None:
    reply = "I cannot see your calendar, as I have no access to it."
    assert denies_access(reply)
    assert not hedges(reply)


@pytest.mark.parametrize(
    "reply",
    [
        'Assistants like to say "I don\'t have access to real-time data".',
        "It is sunny. He wrote: “I cannot browse the internet.”",
        "",
        "…",
    ],
)
def test_a_quote_is_no_hedge(reply: str) -> None:
    assert not hedges(reply)


def test_marks_and_curly_quotes_do_not_hide_a_hedge() -> None:
    assert hedges("I **don’t** have access to *real-time* information.")
    assert hedges("That is a good question!\n\nI can't browse the internet, though.")


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    assert hedges(text) in (True, False)


def test_long_texts_are_judged_by_their_beginning() -> None:
    hedge = "I can't browse the internet."
    assert hedges(hedge + " word" * 100_000)
    assert not hedges("Fine words. " * 1000 + hedge)


def tool(name: str, about: str, *required: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": schema},
    }


TEXT = {"type": "string"}
WEB = tool("web_search", "Search the web.", "query", query=TEXT, count={"type": "integer"})
FILES = tool("search_files", "Search files on this computer.", "pattern", pattern=TEXT)
LIGHT = tool("turn_on", "Turn on a light.", "entity", entity=TEXT)


@pytest.mark.parametrize(
    "found",
    [
        WEB,
        tool("tavily__tavily-search", "Search for current information.", "query", query=TEXT),
        tool("googleSearch", "Results of Google.", "q", q=TEXT),
        tool("search", "Searches the internet with DuckDuckGo.", query=TEXT, region=TEXT),
        tool("search", "Find something.", "text", text=TEXT),
        tool("duckduckgo__search", "DuckDuckGo results", "query", query=TEXT),
        tool("lookup", "Search online for facts.", "question", question=TEXT),
    ],
)
def test_the_search_tool_is_found_among_others(found: dict[str, Any]) -> None:
    assert search_tool([LIGHT, FILES, found]) == found["function"]["name"]
    assert len(search_arguments(found, "who  won\nlast night?") or {}) == 1


@pytest.mark.parametrize(
    "other",
    [
        FILES,
        LIGHT,
        tool("search_emails", "Search the mailbox.", "query", query=TEXT),
        tool("search_notes", "Search notes; also those from the web.", "query", query=TEXT),
        tool("spotify_search", "Search songs and playlists.", "query", query=TEXT),
        tool("web_search", "Search the web.", "query", "engine", query=TEXT, engine=TEXT),
        tool("web_search", "Search the web.", "id", id={"type": "integer"}),
        tool("open_website", "Open a page on the web.", "url", url=TEXT),
        tool("mcp_discover", "Search tools by pattern.", "pattern", pattern=TEXT),
    ],
)
def test_another_tool_is_no_search(other: dict[str, Any]) -> None:
    assert search_tool([other]) is None


def test_two_that_are_equally_likely_are_none() -> None:
    assert search_tool([WEB, tool("brave_search", "Web results.", "q", q=TEXT)]) is None
    assert search_tool([]) is None


def test_what_is_searched_for_is_the_question_in_one_line() -> None:
    assert search_arguments(WEB, " who \n won? ") == {"query": "who won?"}
    assert search_arguments(WEB, "x" * 1000) == {"query": "x" * 400}
    assert search_arguments(WEB, "  ") is None
    assert search_arguments(tool("t", "", "a", "b", a=TEXT, b=TEXT), "who?") is None
    assert search_arguments(tool("t", "", "a", a={"type": "string", "enum": ["x"]}), "who?") is None
    assert search_arguments({}, "who?") is None
