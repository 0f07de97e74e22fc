"""What signing in has brought, kept on disk: a person signs in once, and not in every room.

There is one file for each server, readable for its user alone, by the server's address: another
server under the same name gets nothing. Besides the tokens it holds until when they are good and
where they are renewed, which the SDK finds out anew in every process, and only by asking a person.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Literal

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import BaseModel

from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.files import read_capped, replace_file
from mcp_bridge.core.server_config import ServerConfig

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
