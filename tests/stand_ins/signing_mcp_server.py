"""A real MCP server over HTTP that wants people to sign in, with its own authorization server.

Everybody who opens its page is let in. `end` makes the access tokens that it gave end, `revoke` the
refresh tokens too.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import uvicorn
from mcp import MCPError
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

LIVES_S: Final = 3_600
_CODE_S: Final = 60.0


class SignInServer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Gives out codes and tokens, and knows which it gave."""

    def __init__(self) -> None:
        self.url = ""
        self.signed_in = 0
        self.renewed = 0
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}

    def end(self) -> None:
        self._access.clear()

    def revoke(self) -> None:
        self.end()
        self._refresh.clear()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self._clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + _CODE_S,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        self.signed_in += 1
        return self._given(str(client.client_id), authorization_code.scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self._refresh[refresh_token.token]
        self.renewed += 1
        return self._given(str(client.client_id), scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self._access.get(token)
        return found if found and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._access.pop(token.token, None)
        self._refresh.pop(token.token, None)

    def _given(self, client: str, scopes: list[str]) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        until = int(time.time()) + LIVES_S
        self._access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=until
        )
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes)
        return OAuthToken(access_token=access, expires_in=LIVES_S, scope="", refresh_token=refresh)


@asynccontextmanager
async def signing_server() -> AsyncGenerator[SignInServer]:
    """A server on a port of its own; `provider.url` is where it is."""
    provider = SignInServer()
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    provider.url = f"{origin}/mcp"
    server = MCPServer(
        "diary",
        auth_server_provider=provider,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=AnyHttpUrl(provider.url),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            validate_token_resource=False,
        ),
    )

    @server.tool()
    def next_entry() -> str:  # pyright: ignore[reportUnusedFunction]  # the server has it
        """The next entry of the diary."""
        return "dentist at nine"

    @server.tool()
    def show_ticket(angry: bool) -> str:  # pyright: ignore[reportUnusedFunction]  # as above
        """Says whose token it was called with, as it should not."""
        token = get_access_token()
        assert token is not None
        if angry:
            raise MCPError(-32603, f"I do not like {token.token}")
        return f"you came with {token.token}"

    app = server.streamable_http_app()
    http = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    # It listens already, so whoever connects waits until it serves.
    serving = asyncio.create_task(http.serve([listener]))
    try:
        yield provider
    finally:
        http.should_exit = True
        await serving
