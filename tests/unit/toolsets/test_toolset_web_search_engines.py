"""The forms in which search services answer, and what becomes of their errors.

SearXNG's answers are a real one's (`python -m tests.real_searxng`); Brave's are written by its
documentation, and ddgs's rows by the library.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import (
    NetworkRefused,
    ToolBroke,
    ToolFailure,
    ToolTimeout,
    ToolUnavailable,
)
from caal_node.network.policy import parse_policy
from caal_node.toolsets import http_service
from caal_node.toolsets.http_service import LateClient, ServiceRefused
from caal_node.toolsets.web_search import engines
from caal_node.toolsets.web_search.engines import WORDS, Brave, DuckDuckGo, SearXNG

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "web_search" / "searxng.json").read_text()
)
BRAVE = {
    "type": "search",
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Blue team wins",
                "url": "https://www.example.org/a",
                "description": "The <strong>blue</strong> team won.",
                "page_age": "2026-11-22T20:15:00",
                "meta_url": {"hostname": "www.example.org"},
            }
        ],
    },
}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
Answer = Callable[[httpx2.Request], httpx2.Response]


def client(answer: Answer) -> LateClient:
    return LateClient(timeout_s=5, transport=httpx2.MockTransport(answer))


def searching(answer: Answer) -> SearXNG:
    return SearXNG(client(answer), "http://searx.lan", language="en", safety="strict")


async def test_searxng_is_asked_for_json_and_its_pages_are_read() -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, json=RECORDED["results"])

    found = await searching(answer).search("who won & why")
    assert dict(asked[0].url.params) == {
        "q": "who won & why",
        "language": "en",
        "safesearch": "2",
        "format": "json",
    }
    assert asked[0].url.path == "/search"
    assert [each.site for each in found.results] == [
        "example.org",
        "en.wikipedia.org",
        "news.example.com",
    ]
    assert found.results[0].text == "The blue team won the final 2–1 on Sunday evening."
    assert len(found.results[1].text) <= 240


def test_searxng_s_own_answer_is_read_in_its_old_and_its_new_form() -> None:
    assert engines.searxng_results("q", RECORDED["answer"]).answer
    assert engines.searxng_results("q", {"answers": ["42"]}).answer == "42"
    box = {"infoboxes": [{"infobox": "Fuji", "content": "A mountain."}]}
    assert engines.searxng_results("q", box).answer == "Fuji: A mountain."


def test_searxng_that_finds_nothing_is_no_error() -> None:
    assert engines.searxng_results("q", RECORDED["nothing"]).is_empty


async def test_searxng_whose_engines_all_fail_is_unavailable() -> None:
    body = {"results": [], "unresponsive_engines": [["household", "timeout"]]}
    with pytest.raises(ToolUnavailable, match="none of the engines"):
        await searching(lambda _: httpx2.Response(200, json=body)).search("q")


async def test_searxng_without_json_says_which_setting_to_change() -> None:
    with pytest.raises(ServiceRefused, match=r"search\.formats"):
        await searching(lambda _: httpx2.Response(403, text="<html>")).search("q")


async def test_brave_gets_its_key_in_a_header_and_its_pages_are_read() -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, json=BRAVE)

    engine = Brave(client(answer), "k3y", language="en", country="GB", safety="moderate")
    (page,) = (await engine.search("word " * 80)).results
    assert (page.title, page.text, page.date) == (
        "Blue team wins",
        "The blue team won.",
        "2026-11-22",
    )
    assert asked[0].headers["x-subscription-token"] == "k3y"
    assert "k3y" not in str(asked[0].url)
    assert len(asked[0].url.params["q"].split()) == engines.QUERY_WORDS
    assert asked[0].url.params["country"] == "GB"


@pytest.mark.parametrize(
    ("status", "kind", "heard"),
    [
        (401, ServiceRefused, "doesn't let me in"),
        (422, ServiceRefused, "doesn't let me in"),
        (429, ToolUnavailable, "pause"),
        (503, ToolUnavailable, "can't reach"),
        (302, ToolBroke, "nothing that I can use"),
    ],
)
async def test_each_error_has_a_kind_and_a_sentence(
    status: int, kind: type[ToolFailure], heard: str
) -> None:
    engine = Brave(
        client(lambda _: httpx2.Response(status, text="no")),
        "k3y",
        language="en",
        country="",
        safety="off",
    )
    with pytest.raises(kind) as caught:
        await engine.search("q")
    assert heard in (caught.value.words or "")
    assert "k3y" not in str(caught.value)


async def test_a_service_that_is_away_or_slow_is_a_sentence() -> None:
    def away(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no", request=request)

    def slow(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("no", request=request)

    with pytest.raises(ToolUnavailable, match=r"at http://searx\.lan cannot be reached\.$"):
        await searching(away).search("q")
    with pytest.raises(ToolTimeout, match="8 seconds"):
        await searching(slow).search("q")


@pytest.mark.parametrize("body", ["no json", "[1]", "3", "[" * 5_000])
async def test_an_answer_that_is_no_object_is_told_as_such(body: str) -> None:
    with pytest.raises(ToolBroke, match="nothing that can be read"):
        await searching(lambda _: httpx2.Response(200, text=body)).search("q")


@given(st.dictionaries(st.sampled_from(["results", "answers", "infoboxes", "web"]), JSON_VALUES))
def test_whatever_a_service_sends_is_read(body: dict[str, Any]) -> None:
    for read in (engines.searxng_results, engines.brave_results):
        found = read("q", body)
        assert all(each.site and each.title for each in found.results)


def test_a_page_comes_once_and_only_from_the_web() -> None:
    rows = [
        {"title": "A", "href": "https://a.example/x", "body": "text"},
        {"title": "A again", "href": "https://a.example/x/#part", "body": "text"},
        {"title": "", "href": "https://b.example/", "body": "text"},
        {"title": "C", "href": "javascript:alert(1)", "body": "text"},
        {"title": "D", "href": "https://[broken/", "body": "text"},
        "no row",
    ]
    found = engines.duckduckgo_results("q", rows)
    assert [each.title for each in found.results] == ["A", "b.example"]


async def test_duckduckgo_is_not_asked_where_the_network_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(engines, "policies", lambda: (parse_policy("lan"),))
    with pytest.raises(NetworkRefused):
        await DuckDuckGo(lambda query: asked.append(query) or []).search("q")
    assert asked == []


async def test_a_client_is_opened_once_and_again_after_it_was_closed() -> None:
    late = client(lambda _: httpx2.Response(200, json={}))
    one, same = await asyncio.gather(late.get(), late.get())
    assert one is same
    await late.aclose()
    await late.aclose()
    assert one.is_closed
    assert await late.get() is not one
    await late.aclose()


@pytest.mark.parametrize("rows", ["{}," * 250_000 + "{}", "[" * 40_000 + "]" * 40_000])
async def test_an_answer_of_more_values_than_are_read_is_a_sentence(rows: str) -> None:
    answer = httpx2.Response(200, text=f'{{"results": [{rows}]}}')
    with pytest.raises(ToolBroke) as caught:
        await searching(lambda _: answer).search("q")
    assert caught.value.words == WORDS.broken


async def test_a_long_answer_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_service, "AT_ONCE_CHARS", 10)
    found = await searching(lambda _: httpx2.Response(200, json=RECORDED["results"])).search("q")
    assert found.results
