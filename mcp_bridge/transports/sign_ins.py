"""What signing in has brought, kept on disk: so that a person signs in once, and not in every room.

One file a server, for its user alone, by the server's address: another server under the same name
gets nothing. Besides the tokens it holds until when they are good and where they are renewed, which
the SDK finds out anew in every process, and only by asking a person.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, cast

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken

from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.files import replace_file
from mcp_bridge.core.server_config import ServerConfig

logger = logging.getLogger(__name__)

VERSION: Final = 1
MAX_FILE_BYTES: Final = 256 * 1024
"""Tokens are rarely over 8 KiB, and a server's own description is rarely over 4."""

_MENDS_MAX: Final = 2
"""Of a request that was refused: by what another process has kept since, and by renewing."""
_LONG_AGO: Final = 1.0
_SAYS_WHERE: Final = "resource_metadata="
"""Of RFC 9728: where the server says at whom to sign in. Without, it may want any kind of token."""


class SignIns:
    """A folder of them; it need not exist yet."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)

    def __call__(self, config: ServerConfig) -> SignInFile:
        """What is kept for one server."""
        digest = hashlib.sha256(config.url.encode()).hexdigest()
        return SignInFile(self._folder / f"{digest}.json", config.url)

    def anew(self, config: ServerConfig) -> SignInFile:
        """The same, but nothing is read: for a person who signs in again."""
        file = self(config)
        return SignInFile(file.path, config.url, blank=True)

    def forget(self, config: ServerConfig) -> bool:
        """Removes what is kept for a server. False: nothing was. Raises: OSError."""
        try:
            self(config).path.unlink()
        except FileNotFoundError:
            return False
        return True


class SignInFile:
    """One server's; a `TokenStorage` of the SDK. What is damaged is as if it were not there.

    Where it cannot be written, that is logged: this process goes on with what it has in memory.
    """

    def __init__(self, path: Path, url: str, *, blank: bool = False) -> None:
        self.path: Final = path
        self._url: Final = url
        self._read_no_more = blank
        self._body: dict[str, Any] = {}
        self._last: str | None = None
        """The access token that was last read here, or written."""
        self.context: OAuthContext | None = None
        """The provider's: it takes from here, and gives, what the SDK's storage has no word for."""

    async def known(self) -> bool:
        """Whether somebody has signed in to this server."""
        return "tokens" in await asyncio.to_thread(self._read)

    async def get_tokens(self) -> OAuthToken | None:
        body = await asyncio.to_thread(self._read)
        try:
            tokens = OAuthToken.model_validate(body["tokens"])
            metadata = (
                OAuthMetadata.model_validate(body["metadata"]) if "metadata" in body else None
            )
            until = float(body.get("until") or 0.0)
        except (KeyError, ValueError, TypeError):
            return None
        self._last = tokens.access_token
        if self.context is not None:
            self.context.token_expiry_time = until or None
            self.context.oauth_metadata = metadata
        return tokens

    async def take_newer(self) -> bool:
        """Go on with what another process has kept here since; False: there is nothing newer.

        Rooms are processes of their own, and a refresh token is mostly good for one of them. Hold
        the context's lock.
        """
        before = self._last
        if self.context is None or await asyncio.to_thread(self._access_token) in (None, before):
            return False
        self.context.current_tokens = await self.get_tokens()
        self.context.client_info = await self.get_client_info()
        return self._last != before

    async def set_tokens(self, tokens: OAuthToken) -> None:
        kept: dict[str, Any] = {"tokens": _plain(tokens)}
        # The SDK knows the hour by the time it hands out the tokens.
        kept["until"] = self.context.token_expiry_time if self.context else None
        if self.context is not None and self.context.oauth_metadata is not None:
            kept["metadata"] = _plain(self.context.oauth_metadata)
        if await asyncio.to_thread(self._write, kept):
            self._last = tokens.access_token

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        body = await asyncio.to_thread(self._read)
        try:
            return OAuthClientInformationFull.model_validate(body["client"])
        except (KeyError, ValueError):
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await asyncio.to_thread(self._write, {"client": _plain(client_info)})

    def _read(self) -> dict[str, Any]:
        if self._read_no_more:
            return self._body
        try:
            with self.path.open("rb") as file:
                body = cast("Mapping[str, Any]", json.loads(file.read(MAX_FILE_BYTES)))
            if body["version"] != VERSION or body["url"] != self._url:
                raise ValueError("another server's, or another version")
            return dict(body)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            logger.warning("the sign-in %s is damaged; sign in again", self.path)
            return {}

    def _access_token(self) -> str | None:
        try:
            return str(self._read()["tokens"]["access_token"])
        except (KeyError, TypeError):
            return None

    def _write(self, given: Mapping[str, Any]) -> bool:
        self._body = {**self._read(), **given, "version": VERSION, "url": self._url}
        data = json.dumps(self._body).encode()
        try:
            if len(data) > MAX_FILE_BYTES:
                raise OSError(errno.EFBIG, f"it would be over {MAX_FILE_BYTES} bytes")
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self.path, data)
        except OSError as error:
            logger.warning("the sign-in %s was not kept: %s", self.path, error.strerror)
            return False
        return True


class StoredSignInAuth(httpx2.Auth):
    """Signs requests once somebody has signed in, here or in another process; before, it does not.

    So a server that wants a token of another kind, or none, is spoken to as without it.
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
        mends = _MENDS_MAX
        while True:
            async with aclosing(self._provider.async_auth_flow(request)) as steps:
                step = await anext(steps)
                while True:
                    response = yield step
                    refused = step is request and response.status_code == 401
                    if refused and mends and await self._mended(context):
                        mends -= 1
                        break
                    try:
                        step = await steps.asend(response)
                    except StopAsyncIteration:
                        return

    async def _mended(self, context: OAuthContext) -> bool:
        """Whether the request may be let in when it is sent again. The provider holds the lock."""
        if await self._file.take_newer():
            return True
        context.token_expiry_time = _LONG_AGO  # Ended before its time, or nobody said when.
        return context.can_refresh_token()


def _challenge(response: httpx2.Response) -> str:
    return response.headers.get("www-authenticate", "")


def _plain(model: OAuthToken | OAuthMetadata | OAuthClientInformationFull) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)
