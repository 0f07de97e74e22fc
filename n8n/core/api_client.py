"""Requests to the two APIs of an n8n instance, and what their refusals mean."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from mcp_bridge.core.errors import why_not_permitted
from n8n.core.errors import DiscoveryFailure, N8nError
from n8n.core.http import HttpResponse, exchange, without_userinfo
from n8n.core.json_values import SHORT_BYTES, parse_json

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""The most that is read of one answer. A page of 50 workflows has a few hundred kilobytes. Of the
worst JSON a mebibyte takes half a second to read, in a thread."""
SCOPES: Final = ("workflow:list", "workflow:read", "execution:list", "execution:read")
"""What a key needs; without the last two everything works but the cause of a failure."""
DEFAULT_RETRY_AFTER_S: Final = 5.0
"""The wait after a 429 that does not say how long to wait."""
MIN_RETRY_AFTER_S: Final = 0.05
"""The wait after a 429 that says 0, which some servers do again and again."""

MAX_REQUESTS: Final = 100
"""n8n answers 429 after so many requests in WINDOW_S at its MCP server, to everybody behind one
address. It counts in fixed windows; a sliding one is no looser."""
WINDOW_S: Final = 300.0
KEPT_FOR_LISTING: Final = 8
"""Requests that reading details leaves over: two listings of an instance with more than 200
workflows, so that a reload can tell at least which workflows came and went."""


def check_address(url: str) -> str:
    """Return what to do about an address that is no n8n: often a page of the editor was copied."""
    parts = urlsplit(url)
    if not parts.path.strip("/"):
        return "check N8N_URL"
    return f"check N8N_URL, which is usually the address alone ({parts.scheme}://{parts.netloc})"


class RateLimiter:
    """Counts the requests of the last WINDOW_S seconds, over all discoveries of one N8nTools."""

    def __init__(
        self,
        max_requests: int = MAX_REQUESTS,
        window_s: float = WINDOW_S,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_requests = max_requests
        self._window_s = window_s
        self._clock = clock
        self._sent: deque[float] = deque()

    def acquire(self, *, keep_back: int = 0) -> float:
        """Count a request and return 0.0, or return the seconds until it may be sent.

        `keep_back` is how many requests are to be left for others.
        """
        now = self._clock()
        while self._sent and now - self._sent[0] >= self._window_s:
            self._sent.popleft()
        free = self._max_requests - keep_back
        if len(self._sent) < free:
            self._sent.append(now)
            return 0.0
        waited_for = self._sent[len(self._sent) - free] if free > 0 else self._sent[-1]
        return max(waited_for + self._window_s - now, 0.001)


class ApiClient:
    """Sends requests to one API with one credential, until one deadline.

    Every request here only reads, so waiting and asking again is safe.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        base_url: str,
        credential: str,
        deadline: float,
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        """`credential` is the name of the setting, `deadline` the event loop's time.

        A `rate_limiter` keeps the limit of an API that has one, rather than running into it.
        """
        self._client = client
        self._base_url = base_url
        self._shown_url = without_userinfo(base_url)
        self._credential = credential
        self._deadline = deadline
        self._rate_limiter = rate_limiter
        self.requests = 0

    async def ask_json(self, method: str, path: str, **request: Any) -> Any:
        """Return the JSON of an answer. Takes and raises what `ask` does."""
        return await self.parse((await self.ask(method, path, **request)).body)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        keep_back: int = 0,
        max_bytes: int = MAX_BODY_BYTES,
        **request: Any,
    ) -> HttpResponse:
        """Return the response of a 2xx. Raises N8nError, which says the fix, for all others.

        `keep_back` is how many requests of the rate limiter are to be left for others.
        """
        while True:
            limiter = self._rate_limiter
            if limiter is not None and (wait := limiter.acquire(keep_back=keep_back)):
                await self._wait(wait)
                continue
            response = await self._send(method, path, request, max_bytes)
            if response.status != 429:
                break
            wait = response.retry_after_s
            wait = DEFAULT_RETRY_AFTER_S if wait is None else max(wait, MIN_RETRY_AFTER_S)
            await self._wait(wait, status=429)
        if not 200 <= response.status < 300:
            raise self._refusal(response)
        if response.packing:
            raise N8nError(
                "protocol",
                f"{path} answers packed ({response.packing}), though it was asked not to: switch "
                "compression off in the proxy before n8n.",
            )
        if response.truncated:
            raise N8nError("protocol", f"{path} answers more than {max_bytes >> 10} KiB.")
        return response

    async def parse(self, body: bytes, read: Callable[[bytes], Any] = parse_json) -> Any:
        """Read the JSON of an answer off the event loop if it is long. Raises N8nError."""
        try:
            if len(body) <= SHORT_BYTES:
                return read(body)
            async with asyncio.timeout_at(self._deadline):
                return await asyncio.to_thread(read, body)
        except TimeoutError:
            raise self._too_late() from None
        except (ValueError, RecursionError):
            raise self.unexpected("no JSON") from None

    def unexpected(self, what: str) -> N8nError:
        """Return the error for a 2xx that n8n would not send."""
        fix = check_address(self._shown_url)
        return N8nError(
            "protocol",
            f"{self._shown_url} does not answer like n8n ({what}): {fix}.",
        )

    async def _wait(self, wait: float, *, status: int | None = None) -> None:
        if asyncio.get_running_loop().time() + wait >= self._deadline:
            raise N8nError(
                "rate_limited",
                f"n8n takes no more requests for {wait:.0f} s (100 in 5 minutes at its MCP "
                "server): reload later, or set N8N_API_KEY, which needs far fewer.",
                status=status,
                retry_after_s=wait,
            )
        await asyncio.sleep(wait)

    async def _send(
        self, method: str, path: str, request: dict[str, Any], max_bytes: int
    ) -> HttpResponse:
        self.requests += 1
        url = f"{self._base_url}{path}"
        try:
            async with asyncio.timeout_at(self._deadline):
                return await exchange(self._client, method, url, max_bytes=max_bytes, **request)
        except TimeoutError:
            raise self._too_late() from None
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            if said := why_not_permitted(error):
                raise N8nError(
                    "unreachable", f"n8n may not be asked at {self._shown_url}: {said}."
                ) from None
            raise N8nError(
                "unreachable",
                f"n8n cannot be reached at {self._shown_url}: check N8N_URL and that n8n is "
                "running.",
            ) from None

    def _too_late(self) -> N8nError:
        return N8nError("timeout", f"n8n at {self._shown_url} did not answer in time.")

    def _refusal(self, response: HttpResponse) -> N8nError:
        status, url, credential = response.status, self._shown_url, self._credential
        is_mcp = credential == "N8N_MCP_TOKEN"
        where = "Settings > Instance-level MCP" if is_mcp else "Settings > n8n API"
        kind: DiscoveryFailure = "protocol"
        message = f"n8n at {url} answered with status {status}."
        if status in (403, 404) and is_mcp:
            # 404 in 2.41, 403 in later versions: `MCP access is disabled`.
            kind, message = (
                "disabled",
                f"The MCP server of n8n at {url} is switched off: turn it on in {where}, "
                "or set N8N_API_KEY.",
            )
        elif status == 403:
            kind, message = (
                "unauthorized",
                f"{credential} may not read workflows: give it {', '.join(SCOPES)} in {where}.",
            )
        elif status == 401:
            kind = "unauthorized"
            message = f"n8n refused {credential}: make a new one in {where}."
        elif status == 404:
            kind = "disabled"
            fix = check_address(url)
            message = f"{url} has no public API: {fix}, or set N8N_MCP_TOKEN instead."
        elif 300 <= status < 400:
            target = response.headers.get("location", "")[:200]
            message = f"N8N_URL redirects to {target}: set it to that address."
        return N8nError(kind, message, status=status)
