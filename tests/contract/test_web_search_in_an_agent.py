"""The web search in whole conversations, by real libraries, and on a real SearXNG.

The real one is installed where CAAL_TEST_SEARXNG names a folder (`python -m tests.real_searxng`).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from ddgs.engines.duckduckgo import Duckduckgo

from caal_node.agent import CaalAgent
from caal_node.config.setting_tables import toolset_tables
from caal_node.core.errors import ToolUnavailable
from caal_node.core.events import SourcesCited, ToolCallEnded
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.toolsets import registry
from caal_node.toolsets.http_service import LateClient
from caal_node.toolsets.installed import GROUP
from caal_node.toolsets.web_search import NOTHING, WebSearch, WebSearchOptions
from caal_node.toolsets.web_search.engines import DuckDuckGo, lookup_by_ddgs
from caal_node.toolsets.web_search.page_fetch import PageFetch
from tests.real_searxng import QUERIES, RECORDED, searxng

HEDGE = "I'm sorry, but I don't have access to real-time information, so I can't tell you."
ANSWERS = json.loads(RECORDED.read_text())
REAL = os.environ.get("CAAL_TEST_SEARXNG", "")


@asynccontextmanager
async def web_server(
    answer: Callable[[str], tuple[str, bytes]], status: str = "200 OK"
) -> AsyncGenerator[str]:
    """Serve what `answer` returns for a request's target: a content type and a body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        kind, body = answer(head.split()[1])
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def recorded(target: str) -> tuple[str, bytes]:
    """Answer as the recorded SearXNG does."""
    (query,) = parse_qs(urlsplit(target).query)["q"]
    name = next((name for name, each in QUERIES.items() if each == query), "results")
    return "application/json", json.dumps(ANSWERS[name]).encode()


@asynccontextmanager
async def talk_with(
    model: ScriptedModel, url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[AgentConversation]:
    entry = EntryPoint("web_search", "caal_node.toolsets.web_search:WebSearch", GROUP)
    monkeypatch.setattr(registry, "installed", lambda: {"web_search": entry})
    tables = toolset_tables({"web_search": {"engine": "searxng", "searxng_url": url}})
    settings = plain_settings().model_copy(update={"toolsets": tables})
    agent = CaalAgent(settings=settings, tiers={}, warm=False)
    async with AgentConversation(agent, model) as talk:
        yield talk


async def test_a_hedge_becomes_a_search_and_its_sources_are_named_without_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = ScriptedModel(
        HEDGE, "The blue team won two to one.", [ScriptedCall("name_sources", {})]
    )
    async with (
        web_server(recorded) as url,
        talk_with(model, url, monkeypatch) as talk,
    ):
        turn = await talk.say("who won the final")
        assert turn.text == "The blue team won two to one."
        (cited,) = talk.events_of(SourcesCited)
        assert [each.site for each in cited.sources] == [
            *("example.org", "en.wikipedia.org", "news.example.com")
        ]
        assert cited.sources[0].address == "https://www.example.org/sport/final"
        said = await talk.say("where did you read that?")
    assert said.text.startswith("I looked at these pages: Blue team wins the final, on example.org")
    assert len(model.requests) == 3


async def test_what_was_found_stays_in_the_tool_data(monkeypatch: pytest.MonkeyPatch) -> None:
    call = ScriptedCall("web_search", {"query": "who won the final"})
    model = ScriptedModel([call], "The blue team won.", "The second one is from Wikipedia.")
    async with (
        web_server(recorded) as url,
        talk_with(model, url, monkeypatch) as talk,
    ):
        await talk.say("who won the final? look it up")
        await talk.say("what was the second page?")
    assert "en.wikipedia.org" in str(model.requests[-1].items)


async def test_nothing_found_and_a_service_that_is_away_are_said_without_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = ScriptedCall("web_search", {"query": QUERIES["nothing"]})
    model = ScriptedModel([call], [call])
    async with (
        web_server(recorded) as url,
        talk_with(model, url, monkeypatch) as talk,
    ):
        assert (await talk.say("search the web for zzz")).text == NOTHING
    model = ScriptedModel([call])
    async with talk_with(model, "http://127.0.0.1:9", monkeypatch) as talk:
        turn = await talk.say("search the web for zzz")
        (ended,) = talk.events_of(ToolCallEnded)
    assert turn.text == "I can't reach the web search right now."
    assert ended.outcome == "error"
    assert len(model.requests) == 1


async def test_a_page_is_fetched_and_its_text_is_read() -> None:
    rows = "".join(
        f"<p>In minute {at} nothing happened at all on the lawn.</p>" for at in range(40)
    )
    html = (
        "<html><head><title>Final</title></head><body><nav><a href='/'>Home</a></nav><article>"
        f"<h1>Final</h1>{rows}<p>A ticket for the match cost nine euros at the gate.</p></article>"
        "</body></html>"
    )
    found = {"results": [{"title": "Final", "url": "", "content": "x"}]}

    def answer(target: str) -> tuple[str, bytes]:
        if target.startswith("/search"):
            return "application/json", json.dumps(found).encode()
        return "text/html", html.encode()

    async with web_server(answer) as url:
        found["results"][0]["url"] = f"{url}/final"
        reader = WebSearch(
            WebSearchOptions(engine="searxng", searxng_url=url),
            pages=PageFetch(LateClient(timeout_s=5), allows=lambda _: True),
        )
        await reader.web_search(query="final")
        page = await reader.read(page="1", about="price of a ticket")
        assert page["title"] == "Final"
        assert "nine euros" in page["text"]
        assert len(page["text"]) <= 1800
        public = WebSearch(WebSearchOptions(engine="searxng", searxng_url=url))
        await public.web_search(query="final")
        with pytest.raises(Exception, match="not on the public web"):
            await public.read("1")
        await reader.aclose()
        await public.aclose()


DDG_PAGE = """<html><body><div id="links">
<div class="result results_links"><div class="links_main links_deep result__body">
<h2 class="result__title">
<a class="result__a" href="https://www.example.org/a">Blue team wins</a></h2>
<a class="result__snippet" href="https://www.example.org/a">The <b>blue</b> team won.</a>
</div></div></div></body></html>"""
"""A page in the form of html.duckduckgo.com, as the library reads it."""


async def test_the_real_ddgs_reads_a_page_of_duckduckgo_s(monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = lookup_by_ddgs(language="en", country="GB", safety="moderate")
    async with web_server(lambda _: ("text/html", DDG_PAGE.encode())) as url:
        monkeypatch.setattr(Duckduckgo, "search_url", f"{url}/html/")
        (page,) = (await DuckDuckGo(lookup).search("who won")).results
    assert (page.title, page.site) == ("Blue team wins", "example.org")
    assert "blue team won" in page.text
    async with web_server(lambda _: ("text/html", b"<html></html>")) as url:
        monkeypatch.setattr(Duckduckgo, "search_url", f"{url}/html/")
        assert (await DuckDuckGo(lookup).search("who won")).is_empty
    monkeypatch.setattr(Duckduckgo, "search_url", "http://127.0.0.1:9/html/")
    with pytest.raises(ToolUnavailable):
        await DuckDuckGo(lookup).search("who won")


@pytest.mark.skipif(not REAL, reason="CAAL_TEST_SEARXNG names no folder with a SearXNG")
async def test_a_real_searxng_is_searched_and_its_faults_are_told() -> None:
    folder = Path(REAL)
    async with searxng(folder) as url:
        options = WebSearchOptions(engine="searxng", searxng_url=url)
        searcher = WebSearch(options)
        value = await searcher.web_search(query=QUERIES["results"])
        assert [row["site"] for row in value["results"]] == [
            *("example.org", "en.wikipedia.org", "news.example.com")
        ]
        assert (await searcher.web_search(query=QUERIES["answer"]))["answer"]
        assert (await searcher.web_search(query=QUERIES["nothing"])).words == NOTHING
        await searcher.aclose()
    async with searxng(folder, formats="html") as url:
        with pytest.raises(Exception, match=r"add json to search\.formats"):
            await WebSearch(options.model_copy(update={"searxng_url": url})).check()
    async with searxng(folder, broken_index=True) as url:
        with pytest.raises(ToolUnavailable, match="none of the engines"):
            await WebSearch(options.model_copy(update={"searxng_url": url})).check()
