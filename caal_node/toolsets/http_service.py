"""A service that a toolset asks over HTTP, and what a person hears where it does not answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, cast

import httpx2

from caal_node.core.errors import ToolBroke, ToolFailure, ToolTimeout, ToolUnavailable
from caal_node.http_client import ANSWER_MAX_BYTES, open_client
from caal_node.toolsets.long_json import AT_ONCE_CHARS, read_json

_OK: Final = 200
_TOO_MANY: Final = 429
_REFUSALS: Final = (401, 403, 422)
Failure = TypeVar("Failure", bound=ToolFailure)


class ServiceRefused(ToolBroke):
    """The service answers that this caller may not ask: a wrong key, or a form that is off."""


@dataclass(frozen=True, slots=True)
class ServiceWords:
    """What a person hears of a service that gives nothing."""

    unreachable: str
    too_often: str
    refused: str
    broken: str


class LateClient:
    """An HTTP client that is opened with its first use, and again after it was closed.

    Args:
        timeout_s: Seconds for connecting, and for each piece of an answer.
        max_bytes: Bytes of an answer at most.
        options: Anything else that `httpx2.AsyncClient` takes.
    """

    def __init__(
        self, *, timeout_s: float, max_bytes: int = ANSWER_MAX_BYTES, **options: Any
    ) -> None:
        self._open = partial(open_client, max_bytes, timeout=timeout_s, **options)
        self._lock = asyncio.Lock()
        self._client: httpx2.AsyncClient | None = None

    async def get(self) -> httpx2.AsyncClient:
        """Return the client, open."""
        async with self._lock:
            if self._client is None:
                # It reads the certificates of all authorities, which takes 40 ms.
                self._client = await asyncio.to_thread(self._open)
            return self._client

    async def aclose(self) -> None:
        """Close the client. It is opened again where somebody still wants it."""
        async with self._lock:
            client, self._client = self._client, None
            if client is not None:
                await client.aclose()


class HttpService:
    """One service, whose answers are JSON objects.

    Args:
        place: What it is called in errors: a name or an address.
        timeout_s: Seconds for one answer.
    """

    def __init__(
        self, client: LateClient, place: str, words: ServiceWords, *, timeout_s: float
    ) -> None:
        self.place: Final = place
        self.words: Final = words
        self._client = client
        self._timeout_s = timeout_s

    async def get(self, url: str, **request: Any) -> Mapping[str, Any]:
        """Send a GET request, and return the JSON object of its answer.

        Args:
            request: The parameters and headers, as `AsyncClient.get` takes them.

        Raises:
            ToolUnavailable, ToolTimeout: nobody answers, or not in time.
            ServiceRefused: it lets this caller ask nothing.
            ToolBroke: it answers with another error, or with no JSON object.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await (await self._client.get()).get(url, **request)
        except (TimeoutError, httpx2.TimeoutException) as error:
            failure = ToolTimeout(f"{self.place} gave no answer in {self._timeout_s:g} seconds.")
            raise spoken(failure, self.words.unreachable) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            host = "" if isinstance(error, httpx2.InvalidURL) else httpx2.URL(url).host
            at = "" if host in self.place else f" at {host}"
            failure = ToolUnavailable(f"{self.place} cannot be reached{at}.")
            raise spoken(failure, self.words.unreachable) from error
        return await self._body(answer)

    async def _body(self, answer: httpx2.Response) -> Mapping[str, Any]:
        status = answer.status_code
        if status == _TOO_MANY:
            failure = ToolUnavailable(f"{self.place} was asked too often; try later.")
            raise spoken(failure, self.words.too_often)
        if status in _REFUSALS:
            failure = ServiceRefused(f"{self.place} refuses this (HTTP {status}).")
            raise spoken(failure, self.words.refused)
        if status >= 500:
            failure = ToolUnavailable(f"{self.place} has a fault (HTTP {status}).")
            raise spoken(failure, self.words.unreachable)
        try:
            text = answer.content.decode(json.detect_encoding(answer.content))
            if len(text) <= AT_ONCE_CHARS:
                body: object = read_json(text)
            else:
                body = await asyncio.to_thread(read_json, text)
        except (ValueError, RecursionError):
            body = None
        if status != _OK or not isinstance(body, dict):
            failure = ToolBroke(f"{self.place} sent nothing that can be read (HTTP {status}).")
            raise spoken(failure, self.words.broken)
        return cast("Mapping[str, Any]", body)


def spoken(failure: Failure, words: str) -> Failure:
    """Return the failure with the sentence that a person hears of it."""
    failure.words = words
    return failure


def objects_in(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON list; nothing where it is none."""
    rows = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, dict)]
