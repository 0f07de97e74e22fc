"""The control API over HTTP, with rooms in memory: every status, and what is sent on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
from fastapi import Request
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from caal_node.config.settings import Settings
from caal_node.control import app as app_module
from caal_node.control import http_api
from caal_node.control.app import make_app
from caal_node.control.http_api import MAX_BODY_BYTES
from caal_node.control.messages import (
    AGENT_REQUEST,
    Announcement,
    ModelReport,
    ModelRequest,
    ReloadRequest,
)
from caal_node.control.room_agents import LiveKitRefused, LiveKitUnreachable
from caal_node.control.rpc import (
    BUSY,
    MAX_REQUEST_BYTES,
    RequestFailed,
    RpcAnswer,
    RpcRequest,
    SendChunk,
    join,
)
from caal_node.core.errors import ConfigError
from tests.stand_ins.fake_rooms import FakeRooms

TOKEN = "-".join(["a", "long", "random", "token"])
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def client(rooms: FakeRooms) -> AsyncGenerator[httpx2.AsyncClient]:
    app = make_app(Settings(control_token=SecretStr(TOKEN)), rooms)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://control") as http,
    ):
        yield http


class SlowRooms(FakeRooms):
    """Rooms whose list comes when a test says so."""

    def __init__(self, agents: dict[str, list[str]]) -> None:
        super().__init__(agents)
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def live(self, name: str | None = None) -> Sequence[str]:
        self.reached.set()
        await self.go.wait()
        return await super().live(name)

    async def ask(self, room: str, identity: str, request: RpcRequest) -> RpcAnswer | None:
        if isinstance(request, SendChunk):
            text = join([request.data], MAX_REQUEST_BYTES)
            if isinstance(AGENT_REQUEST.validate_json(text), ModelRequest):
                self.answers = [ModelReport(model="m", api="ollama")]
        return await super().ask(room, identity, request)


async def post(rooms: FakeRooms, body: object = None, **options: object) -> httpx2.Response:
    async with client(rooms) as http:
        sent = {"json": body} if body is not None else {}
        return await http.post("/reload-tools", **{"headers": BEARER, **sent, **options})  # type: ignore[arg-type] -- options of post


async def test_a_reload_without_a_body_reaches_the_only_room() -> None:
    rooms = FakeRooms({"kitchen": ["agent"]})
    response = await post(rooms)
    assert response.status_code == 200
    assert response.json() == {
        "status": "reloaded",
        "room_name": "kitchen",
        "tool_count": 4,
        "added": ["get_weather"],
        "removed": [],
        "changed": ["timer"],
        "failed": ["files"],
        "new": [],
        "faults": [],
        "tool_name": None,
        "found": None,
    }
    assert not rooms.is_open


async def test_without_a_name_all_rooms_with_an_agent_reload_and_each_result_is_listed() -> None:
    rooms = FakeRooms({"kitchen": ["a"], "cellar": ["b"], "empty": []})
    response = await post(rooms, {"tool_name": "timer"})
    answer = response.json()
    assert (response.status_code, answer["status"]) == (200, "reloaded")
    assert [each["room_name"] for each in answer["rooms"]] == ["kitchen", "cellar"]
    assert [each["changed"] for each in answer["rooms"]] == [["timer"], ["timer"]]
    assert sorted(room for room, _, _ in rooms.asked) == ["cellar", "kitchen"]


async def test_a_room_that_cannot_reload_hides_no_other_rooms_result() -> None:
    class OneFails(FakeRooms):
        async def ask(self, room: str, identity: str, request: RpcRequest) -> RpcAnswer | None:
            if room == "cellar":
                return RequestFailed(reason="error")
            return await super().ask(room, identity, request)

    response = await post(OneFails({"kitchen": ["a"], "cellar": ["b"]}))
    answer = response.json()
    assert (response.status_code, answer["status"]) == (200, "partly")
    assert [each["status"] for each in answer["rooms"]] == ["reloaded", "error"]
    assert "could not do it" in answer["rooms"][1]["detail"]


async def test_the_named_room_is_asked_with_the_tool_and_the_message() -> None:
    rooms = FakeRooms({"kitchen": ["a"], "cellar": ["b"]})
    body = {"room_name": "cellar", "tool_name": "get_weather", "message": " Weather is here. "}
    response = await post(rooms, body)
    told = response.json()
    assert told["room_name"] == "cellar"
    assert (told["tool_name"], told["found"]) == ("get_weather", False)
    [(room, identity, request)] = rooms.asked
    assert (room, identity) == ("cellar", "b")
    assert isinstance(request, ReloadRequest)
    [announcement] = request.announcements
    assert announcement == Announcement(tool_name="get_weather", message="Weather is here.")


@pytest.mark.parametrize(
    "header",
    [None, "", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer ", f"Bearer {TOKEN}x", "Bearer \xe9"],
)
async def test_without_the_token_nothing_is_asked(header: str | None) -> None:
    rooms = FakeRooms({"kitchen": ["agent"]})
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    response = await post(rooms, {"unknown": 1}, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in response.text
    assert rooms.asked == []


@pytest.mark.parametrize(
    ("rooms", "body", "status", "words"),
    [
        (FakeRooms({"a": ["x"]}), {"room_name": "z"}, 404, "no live room 'z'. Live are: a."),
        (FakeRooms({}), None, 404, "No room is live"),
        (
            FakeRooms({f"r{n}": ["x"] for n in range(30)}),
            None,
            409,
            "name one as room_name: r0, r1",
        ),
        (FakeRooms({"a": ["x"]}, [RequestFailed(reason="error")]), None, 502, "could not do it"),
        (FakeRooms({"a": ["x"]}, [RequestFailed(reason="refused", detail="no")]), None, 403, "no"),
        (FakeRooms({"a": ["x"]}, [LiveKitRefused("keys")]), None, 502, "keys"),
        (FakeRooms({"a": ["x"]}, [ZeroDivisionError("inner")]), None, 500, "(ZeroDivisionError)"),
        (FakeRooms({"a": ["x"]}, [LiveKitUnreachable("down")]), None, 503, "down"),
        (FakeRooms({"a": []}), None, 504, "no agent in room 'a'"),
    ],
)
async def test_what_stands_in_the_way_has_a_status_and_a_sentence(
    rooms: FakeRooms, body: object, status: int, words: str
) -> None:
    response = await post(rooms, body)
    assert response.status_code == status
    assert response.json()["status"] == "error"
    assert words in response.json()["detail"]
    assert "inner" not in response.text


async def test_so_many_requests_at_once_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "MAX_REQUESTS", 2)
    rooms = SlowRooms({"a": ["x"]})
    async with client(rooms) as http:

        async def post() -> httpx2.Response:
            return await http.post("/model", headers=BEARER, json={"model": "m"})

        asked = [asyncio.create_task(post()) for _ in range(2)]
        await rooms.reached.wait()
        third = await post()
        assert third.status_code == 503
        assert third.json() == {"status": "error", "detail": BUSY}
        rooms.go.set()
        assert [(await one).status_code for one in asked] == [200, 200]
        assert (await post()).status_code == 200


async def test_closing_ends_a_reload_that_nobody_waits_for_any_more() -> None:
    ended = asyncio.Event()

    class Hanging(SlowRooms):
        async def live(self, name: str | None = None) -> Sequence[str]:
            try:
                return await super().live(name)
            finally:
                ended.set()

    rooms = Hanging({"a": ["x"]})
    async with client(rooms) as http:
        caller = asyncio.create_task(http.post("/reload-tools", headers=BEARER, json={}))
        await rooms.reached.wait()
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        assert not ended.is_set()
    assert ended.is_set()


async def test_one_reload_serves_all_who_come_while_another_one_runs() -> None:
    rooms = SlowRooms({"a": ["x"]})
    async with client(rooms) as http:

        async def post(message: str) -> httpx2.Response:
            return await http.post("/reload-tools", headers=BEARER, json={"message": message})

        first = asyncio.create_task(post("one"))
        await rooms.reached.wait()
        others = [asyncio.create_task(post(said)) for said in ["two", "three"] * 20]
        await asyncio.sleep(0.1)  # until they are read; where they are not, more runs are counted
        rooms.go.set()
        answers = await asyncio.gather(first, *others)
    assert [answer.status_code for answer in answers] == [200] * 41
    reloads = [request for _, _, request in rooms.asked if isinstance(request, ReloadRequest)]
    said = [[one.message for one in reload.announcements] for reload in reloads]
    assert said == [["one"], ["two", "three"]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"message": "a", "message": "b"}', "The key 'message' stands twice"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 9000, "not JSON"),
        (b'{"room_name": NaN}', "NaN is not JSON; send a number, null or a text."),
        (b'{"room_name": 1e400}', "The number 1e400 is too large; send a smaller one, or a text."),
        (b"[]", "must be a JSON object"),
        (b'{"room": "a"}', "no field 'room'; the fields are room_name, tool_name, message"),
        (b'{"room_name": 3}', "room_name: "),
        (b'{"room_name": ""}', "room_name: "),
        (b'{"message": "%s"}' % (b"x" * 501), "message: "),
    ],
)
async def test_a_wrong_body_is_refused_in_plain_words(content: bytes, words: str) -> None:
    rooms = FakeRooms({"a": ["x"]})
    response = await post(rooms, content=content)
    assert response.status_code == 422
    assert words in response.json()["detail"]
    assert rooms.asked == []


async def post_model(rooms: FakeRooms, body: object) -> httpx2.Response:
    async with client(rooms) as http:
        return await http.post("/model", headers=BEARER, json=body)


async def test_another_model_is_asked_for_in_the_named_room() -> None:
    rooms = FakeRooms({"kitchen": ["a"], "cellar": ["b"]}, [ModelReport(model="m", api="ollama")])
    response = await post_model(rooms, {"room_name": "cellar", "model": "m"})
    assert response.status_code == 200
    assert response.json() == {
        "status": "changed",
        "room_name": "cellar",
        "model": "m",
        "api": "ollama",
    }
    [(room, _, request)] = rooms.asked
    assert room == "cellar"
    assert isinstance(request, ModelRequest)
    assert (request.model, request.api, request.base_url) == ("m", None, None)


async def test_a_model_that_cannot_be_used_is_told_with_the_agents_reason() -> None:
    rooms = FakeRooms(
        {"a": ["x"]}, [RequestFailed(reason="error", detail="the model m is not there; pull it")]
    )
    response = await post_model(rooms, {"model": "m"})
    assert response.status_code == 502
    assert "the model m is not there; pull it" in response.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"model": ""},
        {"model": "m", "api": "livekit"},
        {"model": "m", "base_url": "file:///etc/passwd"},
        {"model": "m", "api_key": "k"},
    ],
    ids=str,
)
async def test_a_model_body_that_could_run_code_or_carry_a_secret_is_refused(body: object) -> None:
    rooms = FakeRooms({"a": ["x"]})
    assert (await post_model(rooms, body)).status_code == 422
    assert rooms.asked == []


async def test_a_body_without_an_end_is_cut_off() -> None:
    sent = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal sent
        while sent < 100 * MAX_BODY_BYTES:
            sent += 1024
            yield b" " * 1024

    response = await post(FakeRooms({"a": ["x"]}), content=endless())
    assert response.status_code == 413
    assert response.headers["connection"] == "close"


async def test_a_body_that_never_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "BODY_S", 0.05)
    never = asyncio.Event()

    async def stalled(_: Request) -> AsyncGenerator[bytes]:
        yield b"{"
        await never.wait()

    monkeypatch.setattr(Request, "stream", stalled)
    response = await post(FakeRooms({"a": ["x"]}), {})
    assert response.status_code == 408
    assert response.headers["connection"] == "close"


async def test_health_needs_no_token_and_asks_nobody() -> None:
    rooms = FakeRooms({})
    rooms.broken = LiveKitUnreachable("down")
    async with client(rooms) as http:
        response = await http.get("/health")
    assert response.status_code == 200
    assert response.json()["status"] == "ok"


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
async def test_there_are_no_pages_about_the_api(path: str) -> None:
    async with client(FakeRooms({})) as http:
        assert (await http.get(path)).status_code == 404


def test_without_a_token_of_its_own_it_does_not_start() -> None:
    with pytest.raises(ConfigError, match="CAAL_CONTROL_TOKEN"):
        make_app(Settings(), FakeRooms({}))


async def test_neither_token_nor_message_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    await post(FakeRooms({"a": []}), {"message": "a private sentence"})
    assert "NoAnswer" in caplog.text
    assert "private" not in caplog.text
    assert TOKEN not in caplog.text


@given(
    st.recursive(
        st.integers() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
        max_leaves=30,
    )
)
def test_values_are_counted_before_they_are_parsed(value: object) -> None:
    body = json.dumps(value).encode()
    count = count_of(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_api, "MAX_VALUES", 3 * count + 2)
        assert not http_api.has_too_many_values(body)
        patch.setattr(http_api, "MAX_VALUES", count // 2 - 1)
        assert count < 2 or http_api.has_too_many_values(body)


def count_of(value: Any) -> int:
    """Every value and every key in it."""
    match value:
        case list():
            return 1 + sum(map(count_of, cast("list[Any]", value)))
        case dict():
            return 1 + sum(1 + count_of(one) for one in cast("dict[str, Any]", value).values())
        case _:
            return 1
