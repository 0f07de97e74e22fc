"""A web search that is hostile: the service that searches, and the pages that it finds."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from caal_node.core.errors import ToolFailure
from caal_node.models.child_process import end
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.http_service import LateClient
from caal_node.toolsets.web_search import WebSearch, WebSearchOptions
from caal_node.toolsets.web_search.engines import SEARCH_S, WORDS
from caal_node.toolsets.web_search.page_fetch import (
    EXTRACTION_S,
    FETCH_S,
    NOT_THERE,
    PAGE_BYTES,
    UNREADABLE,
    PageFetch,
)
from tests.attack.harness import Ending, Probe, attack

WEB: Final = "web search"
PAGE: Final = "Read http://museum.example/page"
HOURS: Final = "The museum opens at nine"
PAGE_S: Final = FETCH_S + EXTRACTION_S
_SERVER: Final = r"""
import json, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HTML, JSON, MIB = "text/html; charset=utf-8", "application/json", 2 ** 20
TEXT = "<p>The museum opens at nine in the morning, and closes at five.</p>"
PAGE = f"<html><body><article>{TEXT * 8}</article></body></html>"
ROWS = ",".join('{"title": "a", "url": "http://a.example/%d"}' % at for at in range(30_000))
ATTRIBUTES = " ".join(f"a{at}=1" for at in range(100_000))
SEARCHES = {
    "html": (HTML, b"<div>" * (2 * MIB)),
    "rows": (JSON, ('{"results": [%s]}' % ROWS).encode()),
    "objects": (JSON, b'{"results": [' + b"{}," * 650_000 + b"{}]}"),
    "levels": (JSON, b'{"results": ' + b"[" * 900_000 + b"]" * 900_000 + b"}"),
    "endless": (JSON, None),
}
PAGES = {
    "warm": (HTML, PAGE.encode()),
    "10 MB": (HTML, (PAGE + "<div>" * (2 * MIB)).encode()),
    "levels": (HTML, (PAGE + "<div>" * 100_000).encode()),
    "attributes": (HTML, (f"{PAGE}<p {ATTRIBUTES}>").encode()),
    "UTF-16 said": ("text/html; charset=utf-16", PAGE.encode()),
    "UTF-7 said": ("text/html; charset=utf-7", PAGE.encode()),
    "no such code": ("text/html; charset=" + "x" * 9_000, PAGE.encode()),
    "UTF-32": (HTML, PAGE.encode("utf-32")),
    "letters": ("text/plain", b"a" * (10 * MIB)),
    "endless": (HTML, None),
    "drip": (HTML, None),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        name = sys.argv[1]
        if self.path.startswith("/search") and name.startswith("search "):
            return self.say(*SEARCHES[name.removeprefix("search ")])
        if self.path.startswith("/search"):
            found = {"title": "Museum", "url": "http://museum.example/page", "content": "Hours."}
            return self.say(JSON, json.dumps({"results": [found]}).encode())
        if name == "redirects":
            self.send_response(302)
            self.send_header("Location", self.path + "a")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.say(*PAGES[name])

    def say(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            if body is not None:
                self.wfile.write(body)
            while body is None:
                self.wfile.write(b" " if sys.argv[1] == "drip" else b" " * 65_536)
                time.sleep(0.1 if sys.argv[1] == "drip" else 0.0)
        except OSError:
            self.close_connection = True


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def _web(name: str) -> AsyncGenerator[WebSearch]:
    """The toolset, with a SearXNG and a web in a process of their own that do one thing wrong."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _SERVER, name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    client = LateClient(timeout_s=SEARCH_S, max_bytes=2 * PAGE_BYTES)
    try:
        port = int(await process.stdout.readline())
        url = f"http://127.0.0.1:{port}"

        async def resolve(_: str, __: int) -> list[str]:
            return ["127.0.0.1"]

        pages = _Pages(client, port, resolve=resolve, allows=lambda _: True)
        yield WebSearch(WebSearchOptions(engine="searxng", searxng_url=url), pages=pages)
    finally:
        await client.aclose()
        await end(process, deadline_s=1.0)


class _Pages(PageFetch):
    """Takes port 80 of every host for the server's."""

    def __init__(self, client: LateClient, port: int, **rest: Any) -> None:
        super().__init__(client, **rest)
        self._port = port

    async def fetch(self, address: str) -> Any:
        return await super().fetch(address.replace(".example/", f".example:{self._port}/"))


async def _heard(probe: Probe, name: str) -> str:
    """What comes of a search, or of a page: the sentence of the failure, or what was read."""
    async with _web("warm") as warm, _web(name) as web:
        await warm.web_search("museum")
        await warm.read("", request=PAGE)

        async def ask() -> str:
            try:
                if name.startswith("search "):
                    found = await web.web_search("museum")
                    return found.words if isinstance(found, VerbatimResult) else json.dumps(found)
                return json.dumps(await web.read("", "hours", request=PAGE))
            except ToolFailure as failure:
                return failure.words or str(failure)

        return await probe.watch(ask)


@attack(WEB, "the search answers 10 MB of HTML", deadline_s=SEARCH_S)
async def html_for_results(probe: Probe) -> Ending:
    heard = await _heard(probe, "search html")
    return Ending(heard == WORDS.unreachable, heard)


@attack(WEB, "the search answers 1.5 MB of results", deadline_s=SEARCH_S)
async def many_results(probe: Probe) -> Ending:
    heard = await _heard(probe, "search rows")
    return Ending(len(heard) < 1_000 and "a.example" in heard, heard)


@attack(WEB, "the search answers 650,000 empty results", deadline_s=SEARCH_S)
async def empty_results(probe: Probe) -> Ending:
    heard = await _heard(probe, "search objects")
    return Ending(heard == WORDS.broken, heard)


@attack(WEB, "the search answers JSON that is 900,000 levels deep", deadline_s=SEARCH_S)
async def deep_results(probe: Probe) -> Ending:
    heard = await _heard(probe, "search levels")
    return Ending(heard == WORDS.broken, heard)


@attack(WEB, "the search answers without an end", deadline_s=SEARCH_S)
async def endless_results(probe: Probe) -> Ending:
    heard = await _heard(probe, "search endless")
    return Ending(heard == WORDS.unreachable, heard)


async def _page(probe: Probe, name: str, *expected: str) -> Ending:
    heard = await _heard(probe, name)
    return Ending(any(each in heard for each in expected) and len(heard) < 3_000, heard)


@attack(WEB, "a page of 10 MB", deadline_s=PAGE_S)
async def giant_page(probe: Probe) -> Ending:
    return await _page(probe, "10 MB", HOURS, UNREADABLE)


@attack(WEB, "a page that is nested 100,000 deep", deadline_s=PAGE_S)
async def nested_page(probe: Probe) -> Ending:
    return await _page(probe, "levels", HOURS, UNREADABLE)


@attack(WEB, "a page with a tag of 100,000 attributes", deadline_s=PAGE_S)
async def attributes_in_a_page(probe: Probe) -> Ending:
    return await _page(probe, "attributes", HOURS, UNREADABLE)


@attack(WEB, "a page says that it is UTF-16, and is not", deadline_s=PAGE_S)
async def not_utf_16(probe: Probe) -> Ending:
    return await _page(probe, "UTF-16 said", HOURS)


@attack(WEB, "a page says that it is UTF-7", deadline_s=PAGE_S)
async def not_utf_7(probe: Probe) -> Ending:
    return await _page(probe, "UTF-7 said", HOURS)


@attack(WEB, "a page names an encoding of 9,000 letters", deadline_s=PAGE_S)
async def no_encoding(probe: Probe) -> Ending:
    return await _page(probe, "no such code", HOURS)


@attack(WEB, "a page in UTF-32 that says it is UTF-8", deadline_s=PAGE_S)
async def utf_32(probe: Probe) -> Ending:
    return await _page(probe, "UTF-32", HOURS, UNREADABLE)


@attack(WEB, "a page of one word of 10 MB", deadline_s=PAGE_S)
async def one_word(probe: Probe) -> Ending:
    return await _page(probe, "letters", "aaa", UNREADABLE)


@attack(WEB, "a page redirects to others for ever", deadline_s=PAGE_S)
async def redirects(probe: Probe) -> Ending:
    return await _page(probe, "redirects", NOT_THERE)


@attack(WEB, "a page without an end", deadline_s=PAGE_S)
async def endless_page(probe: Probe) -> Ending:
    return await _page(probe, "endless", UNREADABLE)


@attack(WEB, "a page that comes byte by byte, for ever", deadline_s=FETCH_S)
async def dripping_page(probe: Probe) -> Ending:
    return await _page(probe, "drip", NOT_THERE)
