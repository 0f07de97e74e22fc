"""A client of the control API, for programs that steer an agent from outside its room:

    async with ControlClient("http://127.0.0.1:8889", token) as control:
        await control.reload("kitchen")
        called = await control.call("set_light", {"room": "kitchen", "on": True})
        async for event in control.events("kitchen"):
            ...

`room` may be left out where one room has an agent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Self, TypeVar

import httpx2
from pydantic import BaseModel, TypeAdapter, ValidationError

from caal_node.control.messages import (
    AnnounceResponse,
    CallResponse,
    ErrorResponse,
    ListResponse,
    ModelResponse,
    ReloadResponse,
    ReloadsResponse,
    SayResponse,
    SearchResponse,
)
from caal_node.core.errors import CaalError, ConfigError
from caal_node.core.events import AnswerTo, Event, Priority, from_json
from caal_node.http_client import UnfitAnswer, open_client, tls_for

ANSWER_MAX_BYTES: Final = 64 << 20
"""Bytes of an answer: a catalogue of 5,000 tools. A stream of events ends there, too."""
CONNECT_S: Final = 5.0
ANSWER_S: Final = 630.0
"""Seconds for an answer: longer than the API itself waits for an agent."""
LINE_MAX_CHARS: Final = 131_072
"""Characters of one event, twice what the API passes on."""

_Answer = TypeVar("_Answer", bound=BaseModel)
_RELOADED: Final[TypeAdapter[ReloadResponse | ReloadsResponse]] = TypeAdapter(
    ReloadResponse | ReloadsResponse
)


class ControlApiError(CaalError):
    """The API refused a request, or could not be reached; `str()` says what to do."""

    kind = "control"

    def __init__(self, detail: str, status: int = 0, body: ErrorResponse | None = None) -> None:
        super().__init__(detail)
        self.status: Final = status
        """HTTP's; 0 where there was no answer."""
        self.body: Final = body
        """What else the API says: the kind of a failed call, valid names, what to confirm."""


class ControlClient:
    """Asks one control API.

    Args:
        url: Its address, such as `http://127.0.0.1:8889`.
        token: Its CAAL_CONTROL_TOKEN.

    Raises:
        ConfigError: the address cannot be one.
    """

    def __init__(self, url: str, token: str) -> None:
        try:
            is_address = httpx2.URL(url).scheme in ("http", "https") and bool(httpx2.URL(url).host)
        except httpx2.InvalidURL:
            is_address = False
        if not is_address:
            raise ConfigError(f"{url}: no address of a control API; write http://HOST:PORT")
        self._url: Final = url.rstrip("/")
        self._token: Final = token
        self._http: httpx2.AsyncClient

    async def __aenter__(self) -> Self:
        self._http = open_client(
            ANSWER_MAX_BYTES,
            headers={"Authorization": f"Bearer {self._token}"},
            timeout=httpx2.Timeout(ANSWER_S, connect=CONNECT_S),
            verify=await tls_for(self._url),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def reload(
        self, room: str | None = None, *, tool: str | None = None, message: str | None = None
    ) -> ReloadResponse | ReloadsResponse:
        """Have the room's agent, or without `room` every agent, list its tools again.

        Args:
            tool: A new tool, which the agent announces if it is there.
            message: What the agent says instead.

        Raises:
            ControlApiError: it was not done.
        """
        body = {"room_name": room, "tool_name": tool, "message": message}
        return _checked(_RELOADED, await self._ask("POST", "/reload-tools", body))

    async def change_model(
        self,
        model: str,
        room: str | None = None,
        *,
        api: str | None = None,
        base_url: str | None = None,
    ) -> ModelResponse:
        """Have the room's agent ask another model from its next reply on.

        Raises:
            ControlApiError: the agent still asks the old one.
        """
        body = {"model": model, "room_name": room, "api": api, "base_url": base_url}
        return _read(ModelResponse, await self._ask("POST", "/model", body))

    async def say(self, text: str, room: str | None = None) -> SayResponse:
        """Have the room's agent say a sentence of up to 500 characters; return when it was said.

        If `status` is `not_said`, `reason` says why.

        Raises:
            ControlApiError: there is no answer.
        """
        body = {"text": text, "room_name": room}
        return _read(SayResponse, await self._ask("POST", "/say", body))

    async def announce(
        self,
        text: str,
        room: str | None = None,
        *,
        priority: Priority = "normal",
        answer: AnswerTo = "model",
    ) -> AnnounceResponse:
        """Have the room's agent say a sentence of up to 500 characters when its priority allows it.

        Args:
            priority: `low` waits for 5 s of silence and gives up, `normal` is as `say`, `urgent`
                interrupts the agent, though not the person.
            answer: Who gets what the person says next. With `caller` the sentence is a question,
                and the response has `status` `answered` and the `answer`, or `silence`.

        Raises:
            ControlApiError: there is no answer.
        """
        body = {"text": text, "room_name": room, "priority": priority, "answer": answer}
        return _read(AnnounceResponse, await self._ask("POST", "/announce", body))

    async def tools(self, room: str | None = None) -> ListResponse:
        """Return every tool of the room's agent.

        Raises:
            ControlApiError: there is no answer.
        """
        return _read(ListResponse, await self._ask("GET", "/api/tools", query=_room(room)))

    async def search(
        self, patterns: Sequence[str], room: str | None = None, *, limit: int = 10
    ) -> SearchResponse:
        """Return the tools that words or names with `*` find, the best first.

        Raises:
            ControlApiError: there is no answer.
        """
        body = {"patterns": [*patterns], "room_name": room, "limit": limit}
        return _read(SearchResponse, await self._ask("POST", "/api/tools/search", body))

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        room: str | None = None,
        *,
        confirmation: str = "",
    ) -> CallResponse:
        """Call one tool, once at most.

        Args:
            confirmation: The hash of an error of kind `needs_confirmation`, to say yes to it.

        Raises:
            ControlApiError: it gave no result; `body` says why and what to confirm.
        """
        body = {"name": name, "arguments": {**(arguments or {})}, "room_name": room}
        if confirmation:
            body["confirmation"] = confirmation
        return _read(CallResponse, await self._ask("POST", "/api/tools", body))

    async def events(self, room: str | None = None) -> AsyncGenerator[Event]:
        """Yield the room's events as they happen, until the room closes. Those of a newer version
        are left out.

        Raises:
            ControlApiError: the room cannot be listened to, or the connection broke.
        """
        opened = False
        try:
            async with self._http.stream(
                "GET", f"{self._url}/events", params=_room(room)
            ) as response:
                opened = True
                if response.status_code != 200:
                    raise _refusal(response.status_code, await response.aread())
                async with aclosing(_data(response)) as lines:
                    async for line in lines:
                        try:
                            event = from_json(line)
                        except ValueError:
                            continue
                        yield event
        except httpx2.HTTPError as error:
            if not opened:
                raise self._unreachable() from error
            raise ControlApiError(
                f"the events of {self._url} broke off; ask for them again"
            ) from error

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        sent = body and {name: value for name, value in body.items() if value is not None}
        try:
            response = await self._http.request(
                method, f"{self._url}{path}", json=sent, params=query
            )
        except httpx2.HTTPError as error:
            raise self._unreachable() from error
        if response.status_code != 200:
            raise _refusal(response.status_code, response.content)
        return response.content

    def _unreachable(self) -> ControlApiError:
        return ControlApiError(
            f"no control API answers at {self._url}; start it with: caal-node control"
        )


def _room(room: str | None) -> dict[str, str]:
    return {} if room is None else {"room_name": room}


async def _data(response: httpx2.Response) -> AsyncGenerator[str]:
    """Yield the data of each server-sent event; ours have one line each."""
    rest = ""
    async for piece in response.aiter_text():
        *lines, rest = (rest + piece).split("\n")
        for line in lines:
            if line.startswith("data: "):
                yield line.removeprefix("data: ")
        if len(rest) > LINE_MAX_CHARS:
            raise UnfitAnswer("sent an event that is too long")


def _read(kind: type[_Answer], content: bytes) -> _Answer:
    return _checked(TypeAdapter(kind), content)


_Checked = TypeVar("_Checked")


def _checked(adapter: TypeAdapter[_Checked], content: bytes) -> _Checked:
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        raise ControlApiError("what answers is no control API of this version") from error


def _refusal(status: int, content: bytes) -> ControlApiError:
    try:
        body = ErrorResponse.model_validate_json(content)
    except ValidationError:
        return ControlApiError(f"the control API answered with status {status}", status)
    return ControlApiError(body.detail, status, body)
