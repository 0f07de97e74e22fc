"""How an instance is asked over HTTP: within limits on bytes and time, and by its two APIs."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from mcp_bridge.core.bounded_http import bounded
from mcp_bridge.core.computing import computed
from mcp_bridge.core.errors import why_not_permitted
from n8n.core.errors import DiscoveryFailure, N8nError
from n8n.core.json_values import SHORT_BYTES, parse_json

# Turns the address of an instance as people write it into a URL that a client can use.

PORT: Final = 5678
"""Where n8n listens unless it is told otherwise."""
MCP_PATH: Final = "/mcp-server/http"
"""Where an instance has its own MCP server."""
_SCHEMES: Final = ("http", "https")
_LOCAL_ENDINGS: Final = (".local", ".localhost", ".lan", ".home", ".internal", ".home.arpa")
"""Names that end so are of one network alone."""


def instance_url(text: str) -> str:
    """Return the http(s) URL of an instance, with no slash at its end.

    People may leave out the scheme: `localhost:5678` gets http://, and a public name without a port
    https://, since keys go there. A host of one's own network gets n8n's port where it has none.
    The address that n8n shows for its MCP server is taken for the instance's.

    Raises:
        ValueError: This is no such address; the message says why, without the address.
    """
    text = text.strip().rstrip("/").removesuffix(MCP_PATH)
    has_scheme = "://" in text
    if not has_scheme and text.partition("/")[0].rstrip(":") in _SCHEMES:
        raise _wrong_scheme()  # such as http//host
    try:
        parts = urlsplit(text if has_scheme else f"http://{text}")
        port = parts.port  # the parser checks it only here
    except ValueError:
        raise ValueError("this is no address; check brackets and port (1 to 65535)") from None
    if parts.scheme not in _SCHEMES:
        raise _wrong_scheme()
    if not parts.hostname or port == 0:
        raise ValueError("this is no address; write e.g. localhost:5678, or a URL")
    if any(char.isspace() for char in text):
        raise ValueError("the address has a space in it")
    if not has_scheme and port is None:
        if _is_of_this_network(parts.hostname):
            parts = parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{PORT}")
        else:
            parts = parts._replace(scheme="https")
    return parts.geturl().rstrip("/")


def _wrong_scheme() -> ValueError:
    return ValueError("the address must begin with http:// or https://")


def _is_of_this_network(host: str) -> bool:
    """Return whether a name or an address cannot be one of the public Internet's."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host.rstrip(".") or host.endswith(_LOCAL_ENDINGS)


CONNECT_TIMEOUT_S = 5.0
"""A host that does not take a connection by then is down, not slow."""
KEEPALIVE_S = 2.0
"""Node closes idle connections after 5 s (`Keep-Alive: timeout=5`). A POST that meets the closing
connection may have run and must not be repeated, so connections are given up well before that."""
STEP_S = 0.005
"""How long a body is read before the event loop gets its turn: what has arrived already would else
be read to its end."""
STEP_BYTES = 1_024
"""How much of a body is shown at once to who looks at it while it comes."""
_TEXT_TYPES = frozenset(
    ("application/xml", "application/javascript", "application/x-www-form-urlencoded")
)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response that was read up to a limit."""

    status: int
    headers: Mapping[str, str]
    """The names are in lower case."""
    body: bytes
    truncated: bool
    """The body was longer than the limit, so `body` is only its beginning."""

    @property
    def packing(self) -> str:
        """How the body is compressed. Such a body is not read: nobody asked for it, and a few bytes
        may unpack to any number."""
        return packing_of(self.headers)

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_text(self) -> bool:
        """Whether the body can be read, judged by its type, or without one by its first bytes."""
        kind = self.media_type
        if not kind:
            return b"\x00" not in self.body[:1024]
        return kind.startswith("text/") or kind.endswith(("json", "+xml")) or kind in _TEXT_TYPES

    @property
    def retry_after_s(self) -> float | None:
        """How many seconds the Retry-After header asks to wait; it holds seconds or a date."""
        value = self.headers.get("retry-after", "").strip()
        if value.isdecimal():
            return float(value[:9])
        try:
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
        except (ValueError, TypeError):
            return None


def packing_of(headers: Mapping[str, str]) -> str:
    """Return the encoding of a body that came compressed though it was asked for plain, or ""."""
    coding = headers.get("content-encoding", "").strip().lower()
    return "" if coding == "identity" else coding[:40]


async def open_client(
    base_url: str, headers: Mapping[str, str] | None = None
) -> httpx2.AsyncClient:
    """Open a client that follows no redirect, repeats nothing, and has no deadline of its own.

    It is made in a thread: the first one imports for 100 ms, and for https the certificate
    authorities are read, which takes as long again. An event loop may not be held for that.
    """
    return await asyncio.to_thread(_client, base_url, headers or {})


def _client(base_url: str, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    return bounded(
        httpx2.AsyncClient(
            # Cookies are not even read: those of one giant head take 70 ms.
            cookies=CookieJar(DefaultCookiePolicy(netscape=False)),
            headers={"accept-encoding": "identity", "user-agent": "caal-node", **headers},
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_S),
            verify=_tls_context() if base_url.startswith("https:") else _empty_tls_context(),
            follow_redirects=False,
        )
    )


@cache
def _tls_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@cache
def _empty_tls_context() -> ssl.SSLContext:
    """Return the context for plain http: it trusts nobody, so https fails, as it should."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def exchange(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    max_bytes: int,
    on_chunk: Callable[[bytes], None] | None = None,
    **request: Any,
) -> HttpResponse:
    """Send a request and read at most `max_bytes` of its response.

    `on_chunk` sees the body as it comes. A compressed body is not read. Raises httpx2's own errors.
    Cancelling closes the connection.
    """
    async with client.stream(method, url, **request) as response:
        body = bytearray()
        if packing_of(response.headers):
            return HttpResponse(response.status_code, response.headers, b"", truncated=False)
        turn_ends = time.perf_counter() + STEP_S
        async for chunk in response.aiter_bytes():
            body += chunk[: max_bytes + 1 - len(body)]
            if len(body) > max_bytes:
                break
            for at in range(0, len(chunk), STEP_BYTES):
                if on_chunk is not None:
                    on_chunk(chunk[at : at + STEP_BYTES])
                if time.perf_counter() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = time.perf_counter() + STEP_S
        truncated = len(body) > max_bytes
        del body[max_bytes:]
        return HttpResponse(response.status_code, response.headers, bytes(body), truncated)


def without_userinfo(url: str) -> str:
    """Return an address fit for messages: without a password, whatever is in it."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


# Requests to the two APIs of an n8n instance, and what their refusals mean.

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
                return await computed(read, body)
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
