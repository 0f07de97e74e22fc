"""Signing in to a remote server by OAuth 2.1: the host shows the page, the SDK does the rest.

Discovery, registration, PKCE, scopes, issuers and refreshing are the SDK's `OAuthClientProvider`.
What it cannot know is the host's to give: how a person is shown a page and comes back from it, and
where tokens are kept. Servers with an `Authorization` header of their own never come here.
Format: https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from mcp_bridge.servers import ServerConfig

MAX_URL_CHARS: Final = 16 * 1024
"""Of the address that the browser comes back to; longer ones are none."""


class MemoryStore:
    """Keeps one server's tokens for as long as the process runs."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        """`client`: who we are to the server, where that was agreed upon beforehand."""
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

    Cancelled when the server's deadline passes: a person needs a longer `connect_timeout`.
    """

    async def __call__(self, server: str, page: str) -> str:
        """Show `page`; give the whole address that the browser was sent back to."""
        ...


Stores: TypeAlias = Callable[[str], TokenStorage]


@dataclass(frozen=True, eq=False)
class OAuth:
    """What a manager needs to sign in to servers that ask for it."""

    sign_in: SignIn
    redirect_uri: str
    """Where the browser is sent back to; on loopback, for a program without a site of its own."""
    stores: Stores = field(default_factory=lambda: _StorePerServer())
    """By the server's name: where its tokens are kept."""
    client_metadata_url: str | None = None
    """An https:// document about this client, for servers that take one in place of registering."""
    client_name: str = "mcp-bridge"

    def auth(self, config: ServerConfig) -> httpx2.Auth | None:
        """Signs requests to one server, and signs in where it says that it must.

        None for a server that has an `Authorization` header of its own, or no address.
        """
        if not _leaves_room(config):
            return None
        page = _Page(config.name, self.sign_in)
        return OAuthClientProvider(
            server_url=config.url,
            client_metadata=OAuthClientMetadata(
                client_name=self.client_name,
                redirect_uris=[AnyUrl(self.redirect_uri)],
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
            ),
            storage=self.stores(config.name),
            redirect_handler=page.show,
            callback_handler=page.came_back,
            client_metadata_url=self.client_metadata_url,
        )


class _StorePerServer:
    def __init__(self) -> None:
        self._stores: Final[dict[str, MemoryStore]] = {}

    def __call__(self, server: str) -> TokenStorage:
        return self._stores.setdefault(server, MemoryStore())


class _Page:
    """One sign-in: the SDK shows a page in one step and reads the way back in the next."""

    def __init__(self, server: str, sign_in: SignIn) -> None:
        self._server: Final = server
        self._sign_in: Final = sign_in
        self._back = ""

    async def show(self, page: str) -> None:
        self._back = await self._sign_in(self._server, page)

    async def came_back(self) -> AuthorizationCodeResult:
        back, self._back = self._back, ""
        given = parse_qs(urlsplit(back).query) if len(back) <= MAX_URL_CHARS else {}
        code, state, issuer = (given.get(key, [None])[0] for key in ("code", "state", "iss"))
        return AuthorizationCodeResult(code=code or "", state=state, iss=issuer)


def _leaves_room(config: ServerConfig) -> bool:
    keyed = any(name.lower() == "authorization" for name in config.headers)
    return config.transport in ("http", "sse") and not keyed
