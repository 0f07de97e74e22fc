"""Fetches a public web page: never one of this machine or of its network.

A search, or a page that was read, could name an address of the home's own network, where a router
asks nobody for a password. So the host is looked up here, each address is judged, and the
connection goes to an address that was judged: a name that leads elsewhere the next moment changes
nothing. A redirect is one more address, judged like the first.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx2

from caal_node.core.errors import ToolBroke, ToolFailure, ToolRefused, ToolTimeout, ToolUnavailable
from caal_node.models.child_process import environment_without_keys
from caal_node.network.policy import Address, address_of, canonical_name, is_public
from caal_node.toolsets.http_service import LateClient, spoken

# The text of a page's HTML, taken out in a process that can be killed.

EXTRACTION_S: Final = 8.0
"""Seconds for one page. An article takes one, half of it for loading the library."""
UNREADABLE: Final = "I can't read that page."
_PROGRAM: Final = Path(__file__).with_name("page_extraction.py")


@dataclass(frozen=True, slots=True)
class PageText:
    """What a page says: a paragraph of the text a line."""

    title: str
    date: str
    text: str


async def text_of(html: bytes) -> PageText:
    """Return the text of a page, without its menus and advertisements.

    Raises:
        ToolTimeout: it takes too long.
        ToolBroke: it cannot be read.
    """
    # The program is started by its path, so that nothing of this package is loaded in it.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_PROGRAM)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment_without_keys(),
    )
    try:
        async with asyncio.timeout(EXTRACTION_S):
            output, _ = await process.communicate(html)
    except TimeoutError as error:
        failure = ToolTimeout(f"the page's text was not found in {EXTRACTION_S:g} seconds.")
        raise spoken(failure, UNREADABLE) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        found: object = json.loads(output) if process.returncode == 0 else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise spoken(ToolBroke("the page cannot be read."), UNREADABLE)
    page = cast("dict[str, Any]", found)
    return PageText(*(str(page.get(name) or "") for name in ("title", "date", "text")))


FETCH_S: Final = 8.0
"""Seconds for a page with all its redirects."""
PAGE_BYTES: Final = 1_048_576
"""Bytes that are read of a page; the text of an article comes well within them."""
REDIRECTS_MAX: Final = 5
HTTP_OK: Final = 200
NOT_PUBLIC: Final = "I only read pages of the public web."
NOT_THERE: Final = "I can't open that page right now."
_READABLE: Final = ("text/html", "application/xhtml+xml", "text/plain")
_AGENT: Final = "Mozilla/5.0 (compatible; caal-node)"
"""Many sites answer an unknown client with an error."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""It returns the addresses of a host for a port. Raises OSError where there are none."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """What a server sent, in whole or its beginning."""

    address: str
    """Where the last redirect led."""
    body: bytes
    is_plain: bool
    """Whether it is plain text and no HTML."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system's resolver gives them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


class PageFetch:
    """Fetches pages by a client that follows no redirects.

    Args:
        allows: Says whether an address may be connected to.
    """

    def __init__(
        self,
        client: LateClient,
        *,
        resolve: Resolve = resolve,
        allows: Callable[[Address], bool] = is_public,
    ) -> None:
        self._client = client
        self._resolve = resolve
        self._allows = allows

    async def fetch(self, address: str) -> FetchedPage:
        """Fetch a page.

        Raises:
            ToolRefused: it is no public page.
            ToolFailure: it cannot be reached, or is nothing that can be read.
        """
        try:
            async with asyncio.timeout(FETCH_S):
                for _ in range(REDIRECTS_MAX + 1):
                    page = await self._step(address)
                    if isinstance(page, FetchedPage):
                        return page
                    address = page
        except TimeoutError as error:
            failure = ToolTimeout(f"the page did not come in {FETCH_S:g} seconds.")
            raise spoken(failure, NOT_THERE) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            # A name that DNS cannot have is a UnicodeError.
            raise spoken(ToolUnavailable("the page cannot be reached."), NOT_THERE) from error
        raise spoken(ToolBroke("the page leads on and on to others."), NOT_THERE)

    async def _step(self, address: str) -> FetchedPage | str:
        """Return the page, or the address that it redirects to."""
        parts = _split(address)
        host = canonical_name(parts.hostname or "")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        place = await self._judged(host, port)
        # The name is for the server and its certificate; the connection goes to what was judged.
        literal = f"[{place}]" if ":" in place else place
        url = parts._replace(netloc=f"{literal}:{port}", fragment="").geturl()
        named = f"[{host}]" if ":" in host else host
        headers = {
            "Host": named if parts.port is None else f"{named}:{port}",
            "User-Agent": _AGENT,
            "Accept": "text/html,text/plain;q=0.8",
        }
        extensions: dict[str, Any] = {"sni_hostname": host}
        client = await self._client.get()
        async with client.stream("GET", url, headers=headers, extensions=extensions) as answer:
            if answer.has_redirect_location:
                return urljoin(address, answer.headers["location"])
            return await _read(address, answer)

    async def _judged(self, host: str, port: int) -> str:
        literal = address_of(host)
        found = [str(literal)] if literal is not None else await self._resolve(host, port)
        for each in found:
            read = address_of(each)
            if read is None or not self._allows(read):
                # One private address is enough: who answers for the name may mean that one.
                raise spoken(ToolRefused("the page is not on the public web."), NOT_PUBLIC)
        if not found:
            raise OSError("the name leads nowhere")
        return next((each for each in found if ":" not in each), found[0])


async def _read(address: str, answer: httpx2.Response) -> FetchedPage:
    if answer.status_code != HTTP_OK:
        # Such as 403 for whoever is no browser, and 404.
        failure: ToolFailure = ToolBroke(f"the page answers with HTTP {answer.status_code}.")
        raise spoken(failure, NOT_THERE)
    kind = answer.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    if kind not in _READABLE:
        raise spoken(ToolBroke(f"it is no page but {kind[:40]}."), UNREADABLE)
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) >= PAGE_BYTES:
            break
    return FetchedPage(address, bytes(body[:PAGE_BYTES]), kind == "text/plain")


def _split(address: str) -> SplitResult:
    """Raises: ToolRefused: it is no address of a web page, or one with a password in it."""
    try:
        parts = urlsplit(address)
        port, user = parts.port, parts.username
    except ValueError:
        parts, port, user = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not parts.hostname or user is not None or port == 0:
        raise spoken(ToolRefused("that is no address of a web page."), NOT_PUBLIC)
    return parts
