"""Signs in to a remote server by OAuth 2.1: the host shows the page, the SDK does the rest.

Discovery, registration, PKCE, scopes, issuers and refreshing are the SDK's `OAuthClientProvider`.
What it cannot know is the host's to give: how a person is shown a page and comes back from it, and
where tokens are kept. Where it may go for that is judged in `sign_in_requests.py`. Servers with an
`Authorization` header of their own never come here.
Format: https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.security.addresses import plain_text
from mcp_bridge.transports.sign_in_requests import (
    MAX_URL_CHARS,
    LookUp,
    SignInRequests,
    look_up,
)
from mcp_bridge.transports.sign_ins import SignInFile, StoredSignInAuth

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
    mend: str = "sign in to {server}"
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
            config.name, f"wants a person to sign in; {self.mend.replace('{server}', config.name)}"
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
