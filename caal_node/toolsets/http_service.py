"""A service that a toolset asks over HTTP, and what a person hears where it does not answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, cast

import httpx2

from caal_node.core.errors import ToolBroke, ToolFailure, ToolTimeout, ToolUnavailable
from caal_node.http_client import ANSWER_MAX_BYTES, open_client

# Reads a service's JSON, and ends where it holds more than any service has to say.
#
# Python's own reader builds a whole text before anything can be counted, and keeps the interpreter
# to itself meanwhile, in a thread too. A long text is read value by value here, and what was read
# of it is freed value by value, in the thread of whoever calls.

AT_ONCE_CHARS: Final = 65_536
"""A longer text is read value by value: this much takes a millisecond at once."""
VALUES_MAX: Final = 200_000
"""Values of one long text: Home Assistant's registry of six thousand devices has as many. They take
half a second in a thread, and 30 MB."""
DEPTH_MAX: Final = 32
"""Lists and objects within each other; Home Assistant's have six."""
_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class TooLarge(ValueError):
    """A text holds more than is read."""


def read_json(text: str) -> Any:
    """Return the value that a text is.

    Raises:
        TooLarge: it has more values, or more of them within each other, than is read.
        ValueError: it is no JSON.
        RecursionError: it is short, and nothing but lists within each other.
    """
    return json.loads(text) if len(text) <= AT_ONCE_CHARS else _Reader(text).read()


def read_object(text: str) -> Mapping[str, Any]:
    """Return the object that a text is; what is no object is an empty one. It raises the same."""
    found = read_json(text)
    if isinstance(found, dict):
        return cast("Mapping[str, Any]", found)
    let_go(found)
    return {}


def let_go(value: object) -> None:
    """Empty the lists and objects of a JSON value that nobody needs any more, one after the other.

    A hundred thousand of them that are freed at once would keep the interpreter for 20 ms.
    """
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            found = cast("dict[str, object]", each)
            left.extend(found.values())
            found.clear()
        elif isinstance(each, list):
            rows = cast("list[object]", each)
            left.extend(rows)
            rows.clear()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._at = 0
        self._left = VALUES_MAX
        self._begun: Final = list[object]()
        """The lists and objects whose ends are not read yet."""

    def read(self) -> Any:
        try:
            value = self._value(0)
            self._begun.append(value)
            self._skip_space()
            if self._at < len(self._text):
                raise ValueError("there is something behind it")
        except ValueError:
            let_go(self._begun)
            raise
        return value

    def _value(self, depth: int) -> Any:
        self._skip_space()
        self._left -= 1
        if self._left < 0 or depth > DEPTH_MAX:
            raise TooLarge("it holds too much")
        match self._text[self._at : self._at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case _:
                return self._scalar()

    def _scalar(self) -> Any:
        value, self._at = _DECODER.raw_decode(self._text, self._at)
        return value

    def _object(self, depth: int) -> dict[str, Any]:
        found = dict[str, Any]()
        self._begun.append(found)
        self._at += 1
        while not self._ends("}", first=not found):
            key = self._scalar() if self._text.startswith('"', self._at) else None
            self._skip_space()
            if not isinstance(key, str) or not self._text.startswith(":", self._at):
                raise ValueError("a member has no name")
            self._at += 1
            found[key] = self._value(depth + 1)
        self._begun.pop()
        return found

    def _list(self, depth: int) -> list[Any]:
        found = list[Any]()
        self._begun.append(found)
        self._at += 1
        while not self._ends("]", first=not found):
            found.append(self._value(depth + 1))
        self._begun.pop()
        return found

    def _ends(self, bracket: str, *, first: bool) -> bool:
        """Take the bracket, or the comma that stands before each value but the first."""
        self._skip_space()
        char = self._text[self._at : self._at + 1]
        if char == bracket:
            self._at += 1
            return True
        if not first:
            if char != ",":
                raise ValueError("there is no comma")
            self._at += 1
            self._skip_space()
        return False

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space is not None else self._at


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
