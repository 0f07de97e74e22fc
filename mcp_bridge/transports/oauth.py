"""Signs in to a remote server by OAuth 2.1: the host shows the page, the SDK does the rest.

Discovery, registration, PKCE, scopes, issuers and refreshing are the SDK's `OAuthClientProvider`.
What it cannot know is the host's to give: how a person is shown a page and comes back from it, and
where tokens are kept. Where it may go for that is judged here, too. Servers with an
`Authorization` header of their own never come here.
Format: https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import parse_qs, urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio.to_thread
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, BaseModel

from mcp_bridge.core.bounded_http import bound_transport, bounded
from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.files import read_capped, replace_file
from mcp_bridge.core.sanitize import one_line
from mcp_bridge.core.server_config import ServerConfig, is_loopback
from mcp_bridge.security.policy import is_public, origin_of, plain_text

# What signing in has brought, kept on disk: a person signs in once, and not in every room.
#
# There is one file for each server, readable for its user alone, by the server's address: another
# server under the same name gets nothing. Besides the tokens it holds until when they are good and
# where they are renewed, which the SDK finds out anew in every process, and only by asking a
# person.

logger = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 256 * 1024
"""Tokens are rarely over 8 KiB, and a server's own description is rarely over 4."""

_MAX_RETRIES: Final = 2
"""A refused request is tried again with what another process has kept since, and after renewing."""
_LONG_AGO: Final = 1.0
_SAYS_WHERE: Final = "resource_metadata="
"""By this (RFC 9728) a server says where to sign in. Without, it may want any kind of token."""


class SignIns:
    """A folder of sign-ins; it need not exist yet."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)

    def __call__(self, config: ServerConfig) -> SignInFile:
        """Gives what is kept for one server."""
        digest = hashlib.sha256(config.url.encode()).hexdigest()
        return SignInFile(self._folder / f"{digest}.json", config.url)

    def anew(self, config: ServerConfig) -> SignInFile:
        """Gives the same, but nothing is read: for a person who signs in again."""
        file = self(config)
        return SignInFile(file.path, config.url, blank=True)

    def forget(self, config: ServerConfig) -> bool:
        """Removes what is kept for a server. False: nothing was. Raises: OSError."""
        try:
            self(config).path.unlink()
        except FileNotFoundError:
            return False
        return True


class _StoredSignIn(BaseModel):
    """The content of one file."""

    version: Literal[1] = 1
    url: str
    tokens: OAuthToken | None = None
    until: float | None = None
    """When the tokens end, in seconds since 1970."""
    metadata: OAuthMetadata | None = None
    client: OAuthClientInformationFull | None = None


class SignInFile:
    """The sign-in of one server; a `TokenStorage` of the SDK. A damaged one is as if not there.

    Where it cannot be written, that is logged: this process goes on with what it has in memory.
    """

    def __init__(self, path: Path, url: str, *, blank: bool = False) -> None:
        self.path: Final = path
        self._blank: Final = blank
        self._stored = _StoredSignIn(url=url)
        self._last: str | None = None
        """The access token that was last read here, or written."""
        self.context: OAuthContext | None = None
        """The provider's context. What the SDK's storage has no word for goes to it and comes from
        it."""

    async def known(self) -> bool:
        """Tells whether somebody has signed in to this server."""
        return (await asyncio.to_thread(self._read)).tokens is not None

    async def get_tokens(self) -> OAuthToken | None:
        stored = await asyncio.to_thread(self._read)
        if stored.tokens is None:
            return None
        self._last = stored.tokens.access_token
        if self.context is not None:
            self.context.token_expiry_time = stored.until or None
            self.context.oauth_metadata = stored.metadata
        return stored.tokens

    async def take_newer(self) -> bool:
        """Goes on with what another process has kept here since; False: there is nothing newer.

        Rooms are processes of their own, and a refresh token is mostly good for one of them. The
        caller holds the context's lock.
        """
        before = self._last
        tokens = (await asyncio.to_thread(self._read)).tokens
        if self.context is None or tokens is None or tokens.access_token == before:
            return False
        self.context.current_tokens = await self.get_tokens()
        self.context.client_info = await self.get_client_info()
        return self._last != before

    async def set_tokens(self, tokens: OAuthToken) -> None:
        # The SDK knows the hour by the time it hands out the tokens.
        new: dict[str, Any] = {
            "tokens": tokens,
            "until": self.context.token_expiry_time if self.context else None,
        }
        if self.context is not None and self.context.oauth_metadata is not None:
            new["metadata"] = self.context.oauth_metadata
        if await asyncio.to_thread(self._write, new):
            self._last = tokens.access_token

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return (await asyncio.to_thread(self._read)).client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await asyncio.to_thread(self._write, {"client": client_info})

    def _read(self) -> _StoredSignIn:
        if self._blank:
            return self._stored
        try:
            found = _StoredSignIn.model_validate_json(read_capped(self.path, MAX_FILE_BYTES))
            if found.url != self._stored.url:
                raise ValueError("another server's")
        except FileNotFoundError:
            return _StoredSignIn(url=self._stored.url)
        except (OSError, ValueError):
            logger.warning("the sign-in %s is damaged; sign in again", self.path)
            return _StoredSignIn(url=self._stored.url)
        return found

    def _write(self, new: dict[str, Any]) -> bool:
        self._stored = self._read().model_copy(update=new)
        data = self._stored.model_dump_json(exclude_none=True).encode()
        try:
            if len(data) > MAX_FILE_BYTES:
                raise OSError(errno.EFBIG, f"it would be over {MAX_FILE_BYTES} bytes")
            replace_file(self.path, data)
        except OSError as error:
            logger.warning("the sign-in %s was not kept: %s", self.path, error.strerror)
            return False
        return True


class StoredSignInAuth(httpx2.Auth):
    """Signs requests once somebody has signed in, here or in another process; before, it does not.

    So a server that wants a token of another kind, or none, is spoken to as without this.
    """

    def __init__(
        self, provider: OAuthClientProvider, file: SignInFile, wanted: ServerUnavailable
    ) -> None:
        """`wanted` is raised where the server says that somebody must sign in."""
        self._provider: Final = provider
        self._file: Final = file
        self._wanted: Final = wanted
        self._known = False

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        self._known = self._known or await self._file.known()
        if not self._known:
            response = yield request
            if response.status_code == 401 and _SAYS_WHERE in _challenge(response):
                raise self._wanted
            return
        context = self._provider.context
        async with context.lock:
            if context.current_tokens is not None and not context.is_token_valid():
                await self._file.take_newer()
        retries = _MAX_RETRIES
        while True:
            async with aclosing(self._provider.async_auth_flow(request)) as steps:
                step = await anext(steps)
                while True:
                    response = yield step
                    refused = step is request and response.status_code == 401
                    if refused and retries and await self._may_succeed_now(context):
                        retries -= 1
                        break
                    try:
                        step = await steps.asend(response)
                    except StopAsyncIteration:
                        return
                    except ServerUnavailable:
                        # Somebody may have signed in while it was asked where to.
                        async with context.lock:
                            is_newer = await self._file.take_newer()
                        if not (is_newer and retries):
                            raise
                        retries -= 1
                        break

    async def _may_succeed_now(self, context: OAuthContext) -> bool:
        """Tells whether the request may be let in now. The provider holds the lock."""
        if await self._file.take_newer():
            return True
        context.token_expiry_time = _LONG_AGO  # Ended before its time, or nobody said when.
        return context.can_refresh_token()


def _challenge(response: httpx2.Response) -> str:
    return response.headers.get("www-authenticate", "")


# Sends what a sign-in asks for, to addresses that the server names, and judges these first.
#
# A server says where people sign in to it: documents, a registration, a page, an endpoint for
# tokens. Without a rule it could have us ask whatever this machine can reach. So such a request
# goes to the server's own origin, to origins that its entry names (`authorization_servers`), and
# else to https:// addresses of the public internet alone. A name is looked up once, and what is
# judged is what is then connected to: a second look-up could say something else.

MAX_URL_CHARS: Final = 16 * 1024
"""The length of any address of a sign-in, that of the way back included."""
MAX_BODY_BYTES: Final = 32 * 1024
"""Such documents are rarely over 8 KiB. At worst, as a list of nothing but errors, this much is
parsed in 15 ms."""
DEADLINE_S: Final = 20.0
"""The time for one request, from looking up its name to the last byte of its answer."""
_NO_KEEPALIVE: Final = httpx2.Limits(max_keepalive_connections=0)
"""Connections are pooled by address, and two names at one address must not share one."""

_NUMBER: Final = re.compile(r"(?=.*\Z)(?:.*:.*|(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?)")
"""A host that is an address written as a number, in any way that one can be (127.1, 0x7f000001)."""

LookUp: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""A function that gives all addresses of a name."""


async def look_up(host: str, port: int) -> Sequence[str]:
    """Gives all addresses of a name. Raises: httpx2.ConnectError."""
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpx2.ConnectError(f"{host[:100]!r} cannot be looked up") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class SignInRequests:
    """The requests of one server's sign-ins."""

    def __init__(self, config: ServerConfig, look_up: LookUp) -> None:
        self._server: Final = config.name
        self._look_up: Final = look_up
        self._own: Final = {origin_of(url) for url in (config.url, *config.authorization_servers)}

    async def check(self, url: str) -> Sequence[str]:
        """Gives the public addresses that `url` may be asked at; none where any will do.

        Raises: ServerUnavailable, with the fix; httpx2.ConnectError.
        """
        try:
            parts, origin = urlsplit(url), origin_of(url)
        except ValueError:
            parts, origin = urlsplit(""), None
        host = parts.hostname
        if not host or parts.scheme not in ("http", "https") or not _is_plainly_written(url):
            raise ServerUnavailable(self._server, "has its sign-in at what is no web address")
        if plain_text(url) is not None:
            raise self._refusal(url, "not encrypted; it has to be https://")
        if origin in self._own:
            return ()
        fix = "if that is yours, name it in authorization_servers"
        if parts.scheme != "https" or is_loopback(url):
            raise self._refusal(url, f"neither its own address nor a public one; {fix}")
        if _proxy_of(url) is not None and _NUMBER.fullmatch(host) is None:
            return ()  # the owner's proxy looks names up, and decides what it reaches
        found = await self._look_up(host, parts.port or 443)
        if not found or not all(map(is_public, found)):
            raise self._refusal(url, f"neither its own address nor a public one; {fix}")
        return found

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request and reads its whole answer.

        Raises: ServerUnavailable, where it may not be sent or its answer is no document.
        """
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with asyncio.timeout(DEADLINE_S):
                addresses = await self.check(str(request.url))
                client = await anyio.to_thread.run_sync(_client, str(request.url), addresses)
                async with client:
                    response = await client.send(request, stream=True, follow_redirects=False)
                    try:
                        await self._read(response)
                    finally:
                        await response.aclose()
                    return response
        except TimeoutError:
            raise httpx2.ReadTimeout(f"no answer in {DEADLINE_S:g} s", request=request) from None

    async def _read(self, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ServerUnavailable(self._server, "packs its sign-in though it was asked not to")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _CappedBody(response.stream, self._server)
        await response.aread()

    def _refusal(self, url: str, why: str) -> ServerUnavailable:
        parts = urlsplit(url)
        where = one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", 100)
        return ServerUnavailable(self._server, f"has its sign-in at {where}, which is {why}")


class _CappedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, server: str) -> None:
        self._inner: Final = inner
        self._server: Final = server

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_BODY_BYTES
        async for part in self._inner:
            left -= len(part)
            if left < 0:
                long = f"answers a sign-in with over {MAX_BODY_BYTES // 1024} KiB"
                raise ServerUnavailable(self._server, long)
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class JudgedTransport(httpx2.AsyncBaseTransport):
    """Connects to addresses that were judged, whatever the name leads to by now.

    The certificate must still be the name's.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, addresses: Sequence[str]) -> None:
        self._inner: Final = inner
        self._addresses: Final = addresses

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        failure = httpx2.ConnectError("it has no address")
        for address in self._addresses:
            there = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode()},
            )
            try:
                return await self._inner.handle_async_request(there)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()


def _client(url: str, addresses: Sequence[str]) -> httpx2.AsyncClient:
    """Makes a client for one request, in a thread, as it reads certificates."""
    if not addresses:
        return bounded(httpx2.AsyncClient(timeout=DEADLINE_S, trust_env=not is_loopback(url)))
    inner = bound_transport(httpx2.AsyncHTTPTransport(limits=_NO_KEEPALIVE))
    return httpx2.AsyncClient(timeout=DEADLINE_S, transport=JudgedTransport(inner, addresses))


def _is_plainly_written(url: str) -> bool:
    """Tells whether it reads as it leads: no user name as a disguise, nothing that is not seen."""
    visible = url.isascii() and url.isprintable() and not {" ", "\\"} & set(url)
    return visible and len(url) <= MAX_URL_CHARS and urlsplit(url).username is None


def _proxy_of(url: str) -> str | None:
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None or proxy_bypass(parts.netloc) else proxy


# The SDK logs a trace of each failure, which is told in one line of `failed` anyway.
logging.getLogger("mcp.client.auth.oauth2").addFilter(lambda record: not record.exc_info)

_MAX_REQUESTS: Final = 16
"""The requests of one sign-in (documents, registration, token), redirects included."""
_PKCE: Final = "S256"


class MemoryStore:
    """Keeps one server's tokens for as long as the process runs."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        """Takes in `client` who we are to the server, where that was agreed upon beforehand."""
        self._client = client
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class SignIn(Protocol):
    """The host's way of sending a person to a page.

    It is cancelled when the server's deadline passes: a person needs a longer `connect_timeout`.
    """

    async def __call__(self, server: str, page: str) -> str:
        """Shows `page`, and gives the whole address that the browser was sent back to."""
        ...


TokenStores: TypeAlias = Callable[[ServerConfig], TokenStorage]


@dataclass(frozen=True, eq=False)
class OAuth:
    """What a manager needs to sign in to servers that ask for it."""

    sign_in: SignIn | None = None
    """Shows a person a page; None where nobody can be shown one. Then what `SignIns` keeps of an
    earlier sign-in is used and renewed, and where that does not do, the server is down until
    somebody signs in again."""
    redirect_uri: str = "http://127.0.0.1/"
    """Where the browser is sent back to; on loopback, for a program without a site of its own."""
    stores: TokenStores = field(default_factory=lambda: _memory_stores())
    """Where a server's tokens are kept; `SignIns` keeps them on disk."""
    client_metadata_url: str | None = None
    """An https:// document about this client, for servers that take one in place of registering."""
    client_name: str = "mcp-bridge"
    fix: str = "sign in to {server}"
    """What a person is to do where nobody can be shown a page."""
    look_up: LookUp = look_up
    """Finds the addresses of a name that a sign-in leads to."""

    def auth(self, config: ServerConfig) -> httpx2.Auth | None:
        """Gives what signs requests to one server, and signs in where it says that it must.

        It is None for a server that has an `Authorization` header of its own, or no address.
        """
        plain = plain_text(config.url) is not None  # A token must not go over it.
        if not takes_sign_in(config) or (plain and self.sign_in is None):
            return None
        store = self.stores(config)
        wanted = ServerUnavailable(
            config.name, f"needs a sign-in; {self.fix.replace('{server}', config.name)}"
        )
        requests = SignInRequests(config, self.look_up)
        page = _SignInPage(config.name, self.sign_in, wanted, requests)
        provider = _JudgedProvider(
            requests,
            server_url=config.url,
            client_metadata=OAuthClientMetadata(
                client_name=self.client_name,
                redirect_uris=[AnyUrl(self.redirect_uri)],
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
            ),
            storage=store,
            redirect_handler=page.show,
            callback_handler=page.came_back,
            client_metadata_url=self.client_metadata_url,
        )
        page.context = provider.context
        if not isinstance(store, SignInFile):
            return provider
        store.context = provider.context
        return StoredSignInAuth(provider, store, wanted) if self.sign_in is None else provider


def _memory_stores() -> TokenStores:
    """Gives each server a store in memory."""
    stores: dict[str, MemoryStore] = {}
    return lambda config: stores.setdefault(config.name, MemoryStore())


class _JudgedProvider(OAuthClientProvider):
    """Sends by itself what a sign-in asks for, so that only the server's own request is the host's
    to send.
    """

    def __init__(self, requests: SignInRequests, **options: Any) -> None:
        super().__init__(**options)
        self._requests: Final = requests

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        left = _MAX_REQUESTS
        async with aclosing(super().async_auth_flow(request)) as steps:
            step = await anext(steps)
            while left:
                if step is request:
                    response = yield step
                else:
                    left -= 1
                    response = await self._requests.send(step)
                try:
                    step = await steps.asend(response)
                except StopAsyncIteration:
                    return
        raise OAuthFlowError(f"over {_MAX_REQUESTS} requests")


class _SignInPage:
    """One sign-in: the SDK shows a page in one step and reads the way back in the next."""

    def __init__(
        self,
        server: str,
        sign_in: SignIn | None,
        wanted: ServerUnavailable,
        requests: SignInRequests,
    ) -> None:
        self.context: OAuthContext | None = None
        """The provider's context, which holds what the server says of its sign-in."""
        self._server: Final = server
        self._sign_in: Final = sign_in
        self._wanted: Final = wanted
        self._requests: Final = requests
        self._back = ""

    async def show(self, page: str) -> None:
        if self._sign_in is None:
            raise self._wanted
        await self._requests.check(page)
        says = self.context.oauth_metadata if self.context is not None else None
        methods = says.code_challenge_methods_supported if says is not None else None
        if methods is not None and _PKCE not in methods:
            raise ServerUnavailable(self._server, f"has a sign-in without PKCE ({_PKCE})")
        self._back = await self._sign_in(self._server, page)

    async def came_back(self) -> AuthorizationCodeResult:
        back, self._back = self._back, ""
        given = parse_qs(urlsplit(back).query) if len(back) <= MAX_URL_CHARS else {}
        code, state, issuer = (given.get(key, [None])[0] for key in ("code", "state", "iss"))
        if state is not None and not state.isascii():
            state = None  # it is none of ours, and the SDK cannot compare it
        return AuthorizationCodeResult(code=code or "", state=state, iss=issuer)


def takes_sign_in(config: ServerConfig) -> bool:
    """Tells whether there is anything to sign in to: an address, without a key of its own."""
    keyed = any(name.lower() == "authorization" for name in config.headers)
    return config.transport in ("http", "sse") and not keyed
