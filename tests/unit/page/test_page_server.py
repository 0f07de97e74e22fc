"""What the server of the page gives, to whom, and what it lets a browser do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import jwt
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from caal_node.config.settings import Settings
from caal_node.control.app import make_app
from caal_node.control.room_agents import LiveKitRooms, LiveKitUnreachable
from caal_node.core.errors import ConfigError
from caal_node.page import server
from caal_node.page.findings import Findings, ShownFinding
from caal_node.page.server import MAX_PAGES, TOKEN_S, make_page_app
from tests.stand_ins.fake_rooms import FakeRooms
from tests.stand_ins.traced_spans import answered, traced

KEY = "the-key-of-the-link"
SECRET = "a-secret-of-at-least-thirty-two-characters"  # noqa: S105 - it opens nothing
NOBODY = "ws://127.0.0.1:9"
"""No LiveKit server listens at the discard port."""
TOKEN = "a-token-of-the-control-api"  # noqa: S105 - it opens nothing
AS_PAGE = {"Authorization": f"Bearer {KEY}", "X-Caal-Page": "one"}


def settings(url: str | None = NOBODY) -> Settings:
    return Settings(
        livekit_url=url, livekit_api_key="APIkey", livekit_api_secret=SecretStr(SECRET), model="m"
    )


@pytest.fixture
def static(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>the page</title>", "utf-8")
    (tmp_path / "assets" / "app-1234.js").write_text("1", "utf-8")
    return tmp_path


@asynccontextmanager
async def opened(
    static: Path,
    url: str = NOBODY,
    *,
    findings: Findings | None = None,
    control: FastAPI | None = None,
    via_page: bool = False,
) -> AsyncGenerator[httpx.AsyncClient]:
    chosen = settings(url)
    app = make_page_app(
        chosen,
        LiveKitRooms.of(chosen),
        key=KEY,
        hosts=("localhost", "127.0.0.1"),
        findings=findings,
        control=control,
        via_page=via_page,
        static=static,
    )
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


async def test_what_it_needs_is_opened_through_all_that_guards_it(static: Path) -> None:
    chosen = settings()
    rooms, sent = LiveKitRooms.of(chosen), asyncio.Queue[Any]()
    app = make_page_app(chosen, rooms, key=KEY, hosts=("localhost",), static=static)
    asked = asyncio.Queue[Any]()
    asked.put_nowait({"type": "lifespan.startup"})
    running = asyncio.create_task(app({"type": "lifespan"}, asked.get, sent.put))
    assert (await sent.get())["type"] == "lifespan.startup.complete"
    with pytest.raises(LiveKitUnreachable, match="cannot be reached"):
        await rooms.agents("kitchen")
    asked.put_nowait({"type": "lifespan.shutdown"})
    await running


def grants_of(answer: httpx.Response) -> dict[str, Any]:
    return cast("dict[str, Any]", jwt.decode(answer.json()["token"], SECRET, algorithms=["HS256"]))


async def test_a_page_gets_a_short_lived_token_for_one_room_and_one_identity(static: Path) -> None:
    async with opened(static) as client:
        answer = await client.post("/page/join", headers=AS_PAGE)
    body, token = answer.json(), grants_of(answer)
    assert answer.status_code == 200
    assert body["url"] == NOBODY
    assert (token["sub"], token["video"]["room"]) == (body["identity"], body["room"])
    assert token["exp"] - token["nbf"] == TOKEN_S == body["expires_s"]
    assert token["video"]["canPublishSources"] == ["microphone"]
    assert not token["video"].get("roomAdmin")
    assert token["attributes"] == {"caal.page": "1"}


async def test_a_reloaded_page_comes_back_and_another_is_alone(static: Path) -> None:
    async with opened(static) as client:
        first = (await client.post("/page/join", headers=AS_PAGE)).json()
        again = (await client.post("/page/join", headers=AS_PAGE)).json()
        other = (await client.post("/page/join", headers={**AS_PAGE, "X-Caal-Page": "two"})).json()
    assert (first["room"], first["identity"]) == (again["room"], again["identity"])
    assert {first["room"], first["identity"]}.isdisjoint({other["room"], other["identity"]})


async def test_the_page_that_came_longest_ago_is_forgotten(static: Path) -> None:
    async with opened(static) as client:
        first = (await client.post("/page/join", headers=AS_PAGE)).json()
        for number in range(MAX_PAGES):
            await client.post("/page/join", headers={**AS_PAGE, "X-Caal-Page": str(number)})
        later = (await client.post("/page/join", headers=AS_PAGE)).json()
    assert first["room"] != later["room"]


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({}, 403, "X-Caal-Page"),
        ({"X-Caal-Page": "x" * 65}, 403, "X-Caal-Page"),
        ({"X-Caal-Page": "one"}, 401, "Open the printed link"),
        ({**AS_PAGE, "Authorization": f"Bearer {KEY}x"}, 401, "Open the printed link"),
        ({**AS_PAGE, "Authorization": "Bearer ä"}, 401, "Open the printed link"),
        ({**AS_PAGE, "Origin": "https://elsewhere.example"}, 403, "another site"),
        ({**AS_PAGE, "Origin": "null"}, 403, "another site"),
        ({**AS_PAGE, "Host": "rebound.example"}, 421, "not called that"),
        ({**AS_PAGE, "Host": "localhost.example:8890"}, 421, "not called that"),
    ],
)
@pytest.mark.parametrize("path", ["join", "reload", "model", "findings"])
async def test_what_another_site_or_guest_asks_is_refused(
    static: Path, path: str, headers: Mapping[str, str], status: int, says: str
) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    async with opened(static) as client:
        method = "GET" if path == "findings" else "POST"
        answer = await client.request(method, f"/page/{path}", headers=raw)
    assert (answer.status_code, answer.json()["status"]) == (status, "error")
    assert says in answer.json()["detail"]


async def test_the_page_s_own_origin_is_its_own(static: Path) -> None:
    headers = {**AS_PAGE, "Host": "localhost:8890", "Origin": "http://localhost:8890"}
    async with opened(static) as client:
        assert (await client.post("/page/join", headers=headers)).status_code == 200


async def test_the_files_need_no_key_and_say_what_a_browser_may_do(static: Path) -> None:
    async with opened(static) as client:
        page = await client.get("/")
        asset = await client.get("/assets/app-1234.js")
        outside = await client.get("/../test_page_server.py")
        gone = await client.get("/assets/app-1235.js")
    assert "the page" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "connect-src 'self' ws://127.0.0.1:9 http://127.0.0.1:9" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["cache-control"] == "no-cache"
    assert "immutable" in asset.headers["cache-control"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert (outside.status_code, gone.status_code) == (404, 404)
    assert gone.json()["status"] == "error"


async def test_a_page_may_follow_livekit_s_cloud_to_a_nearer_server(static: Path) -> None:
    async with opened(static, "wss://home-1a2b.livekit.cloud") as client:
        policy = (await client.get("/")).headers["content-security-policy"]
    assert "wss://home-1a2b.livekit.cloud https://home-1a2b.livekit.cloud" in policy
    assert "wss://*.livekit.cloud" in policy
    assert " ws:" not in policy


async def test_tools_are_those_of_the_page_s_own_room(static: Path) -> None:
    async with opened(static) as client:
        before = await client.get("/page/tools", headers=AS_PAGE)
        await client.post("/page/join", headers=AS_PAGE)
        after = await client.get("/page/tools", headers=AS_PAGE)
    assert (before.status_code, before.json()["detail"]) == (
        409,
        "Start talking first: this page is in no room.",
    )
    assert after.status_code == 503
    assert "LiveKit cannot be reached" in after.json()["detail"]


async def test_the_model_is_the_settings_until_it_is_changed(static: Path) -> None:
    async with opened(static) as client:
        await client.post("/page/join", headers=AS_PAGE)
        shown = await client.get("/page/model", headers=AS_PAGE)
        wrong = await client.post("/page/model", headers=AS_PAGE, json={"name": "qwen3"})
        empty = await client.post("/page/model", headers=AS_PAGE, json={"model": ""})
    assert shown.json()["model"] == "m"
    assert (wrong.status_code, empty.status_code) == (422, 422)
    assert "model" in wrong.json()["detail"]


def test_a_page_that_is_not_built_is_told_with_its_fix(tmp_path: Path) -> None:
    chosen = settings()
    with pytest.raises(ConfigError, match="in a clone, run: make page"):
        make_page_app(chosen, LiveKitRooms.of(chosen), key=KEY, hosts=("*",), static=tmp_path)


async def test_a_trace_is_read_for_the_page_that_sends_it(static: Path) -> None:
    trace = "".join(f"{json.dumps(traced(each))}\n" for each in answered()).encode()
    async with opened(static) as client:
        answer = await client.post("/page/trace", headers=AS_PAGE, content=trace)
        refused = await client.post("/page/trace", content=trace)
        broken = await client.post("/page/trace", headers=AS_PAGE, content=trace + b"no span")
        empty = await client.post("/page/trace", headers=AS_PAGE)
    (turn,) = answer.json()["turns"]
    assert turn["calls"][0]["tool"] == "get_weather"
    assert refused.status_code == 403
    assert broken.status_code == 422
    assert broken.json()["detail"].startswith("the file, line 10: ")
    assert empty.json() == {"turns": []}


async def test_a_trace_has_a_limit(static: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TRACE_BYTES", 100)
    async with opened(static) as client:
        answer = await client.post("/page/trace", headers=AS_PAGE, content=b"x" * 101)
    assert answer.status_code == 413


async def test_the_control_api_on_the_page_s_port_lets_in_whom_it_lets_in_alone(
    static: Path,
) -> None:
    rooms = FakeRooms({"kitchen": ["agent"]})
    control = make_app(Settings(control_token=SecretStr(TOKEN)), rooms)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with opened(static, control=control) as client:
        assert rooms.is_open
        reloaded = await client.post("/reload-tools", headers=bearer)
        described = await client.get("/api/openapi.json", headers=bearer)
        counts = await client.get("/metrics", headers=bearer)
        events = await client.get("/events", headers=bearer)
        health = await client.get("/health")
        refused = [
            (await client.get(path, headers=headers)).status_code
            for headers in ({}, AS_PAGE, {"Authorization": f"Bearer {TOKEN}x"})
            for path in ("/api/tools", "/metrics", "/events", "/api/openapi.json")
        ]
        with_token = await client.post("/page/join", headers={**AS_PAGE, **bearer})
        rebound = await client.get("/health", headers={"Host": "rebound.example"})
        wrong = await client.get("/reload-tools", headers=bearer)
        page = await client.get("/")
    assert reloaded.json()["status"] == "reloaded"
    assert {"/api/tools", "/say"} <= set(described.json()["paths"])
    assert 'path="/reload-tools"' in counts.text
    assert "/page" not in counts.text
    assert events.headers["content-type"].startswith("text/event-stream")
    assert events.headers.get_list("cache-control") == ["no-store"]
    assert (health.json()["status"], rebound.status_code) == ("ok", 421)
    assert refused == [401] * 12
    assert (with_token.status_code, wrong.status_code) == (401, 405)
    assert "the page" in page.text
    assert not rooms.is_open


async def test_without_a_token_for_it_there_is_no_control_api(static: Path) -> None:
    async with opened(static) as client:
        assert (await client.get("/api/tools", headers=AS_PAGE)).status_code == 404
        assert (await client.post("/reload-tools", headers=AS_PAGE)).status_code == 405


async def test_a_page_that_cannot_reach_livekit_itself_gets_its_own_server_s_address(
    static: Path,
) -> None:
    headers = {**AS_PAGE, "Host": "localhost:8890"}
    async with opened(static, via_page=True) as client:
        plain = await client.post("/page/join", headers=headers)
        secure = await client.post("https://localhost:8890/page/join", headers=headers)
        policy = (await client.get("/")).headers["content-security-policy"]
    assert plain.json()["url"] == "ws://localhost:8890/page/livekit"
    assert secure.json()["url"] == "wss://localhost:8890/page/livekit"
    assert policy.endswith("connect-src 'self'")


async def test_findings_are_given_without_secrets_to_those_with_the_key(static: Path) -> None:
    async def look() -> list[ShownFinding]:
        found = "the server said: api_key=sk-abcdefghijklmnopqrstuvwxyz123456"
        return [ShownFinding(name="mcp time", status="fail", found=found, fix="Start it.")]

    async with opened(static, findings=Findings(look)) as client:
        answer = await client.get("/page/findings", headers=AS_PAGE)
        guest = await client.get("/page/findings", headers={"X-Caal-Page": "one"})
    async with opened(static) as client:
        unchecked = await client.get("/page/findings", headers=AS_PAGE)
    [finding] = answer.json()["findings"]
    assert (finding["name"], finding["status"], finding["fix"]) == ("mcp time", "fail", "Start it.")
    assert "sk-abc" not in answer.text
    assert (guest.status_code, unchecked.status_code) == (401, 404)
    assert "caal-node doctor" in unchecked.json()["detail"]


async def test_switches_are_the_agents_and_need_one(static: Path) -> None:
    async with opened(static) as client:
        await client.post("/page/join", headers=AS_PAGE)
        asked = await client.get("/page/switches", headers=AS_PAGE)
        switched = await client.post("/page/switches", headers=AS_PAGE, json={"cues": False})
        wrong = await client.post("/page/switches", headers=AS_PAGE, json={"cues": "x"})
    assert [each.status_code for each in (asked, switched, wrong)] == [503, 503, 422]
