"""LiveKit's signalling through the page's server: what is passed on, for whom, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from caal_node.config.settings import Settings
from caal_node.control.app import make_server
from caal_node.page import server as page_module
from caal_node.page.server import make_page_app
from tests.stand_ins.fake_rooms import FakeRooms

START_S = 0.01
SECRET = "a-secret-of-at-least-thirty-two-characters"  # noqa: S105 - it opens nothing


class LiveKit:
    """A server that answers each message, and hangs up as it is told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gone = asyncio.Event()

    async def __call__(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.asked.append(connection.request.path)
        async for message in connection:
            if message == "leave":
                await connection.close(1000)
            elif message == "crash":
                connection.transport.abort()
            else:
                await connection.send(message)
        self.gone.set()


@asynccontextmanager
async def page_server(
    static: Path, livekit_url: str, *, via_page: bool = True
) -> AsyncGenerator[str]:
    """Serve a page, and give the address of its WebSockets."""
    (static / "index.html").write_text("<!doctype html>", "utf-8")
    settings = Settings(
        livekit_url=livekit_url, livekit_api_key="key", livekit_api_secret=SecretStr(SECRET)
    )
    app = make_page_app(
        settings,
        FakeRooms({}),
        key="key",
        hosts=("127.0.0.1",),
        via_page=via_page,
        static=static,
    )
    server = make_server(app, "127.0.0.1", 0, ws="auto")
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(START_S)
    try:
        yield f"ws://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def both(static: Path) -> AsyncGenerator[tuple[LiveKit, str]]:
    livekit = LiveKit()
    async with serve(livekit, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with page_server(static, f"ws://127.0.0.1:{port}") as url:
            yield livekit, url


def own(url: str) -> str:
    """The origin of a page of that server."""
    return url.replace("ws://", "http://")


async def test_messages_pass_both_ways_with_the_query_and_end_with_the_page(tmp_path: Path) -> None:
    async with both(tmp_path) as (livekit, url):
        at = f"{url}/page/livekit/rtc/v1?access_token=a.b.c&x=%20"
        async with connect(at, origin=own(url), compression=None) as page:  # type: ignore[arg-type] -- a NewType of str
            await page.send(b"\x00offer")
            assert await page.recv() == b"\x00offer"
            await page.send("text")
            assert await page.recv() == "text"
        async with asyncio.timeout(5):
            await livekit.gone.wait()
    assert livekit.asked == ["/rtc/v1?access_token=a.b.c&x=%20"]


@pytest.mark.parametrize(("word", "code"), [("leave", 1000), ("crash", 1011)])
async def test_the_page_learns_whether_livekit_has_ended_it_or_was_lost(
    tmp_path: Path, word: str, code: int
) -> None:
    async with (
        both(tmp_path) as (_, url),
        connect(f"{url}/page/livekit/rtc", origin=own(url)) as page,  # type: ignore[arg-type]
    ):
        await page.send(word)
        with pytest.raises(ConnectionClosed) as closed:
            await page.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == code


async def test_other_sites_other_paths_and_other_names_are_refused(tmp_path: Path) -> None:
    async with both(tmp_path) as (livekit, url):
        port = int(url.rpartition(":")[2])
        for path, origin, name in (
            ("/page/livekit/rtc", "https://elsewhere.example", "127.0.0.1"),
            ("/page/livekit/rtc", None, "127.0.0.1"),
            ("/page/livekit/twirp/livekit.RoomService/ListRooms", own(url), "127.0.0.1"),
            ("/page/livekit/rtc", f"http://rebound.example:{port}", "rebound.example"),
            ("/", own(url), "127.0.0.1"),
        ):
            with pytest.raises(InvalidStatus) as refused:
                await connect(
                    f"ws://{name}:{port}{path}",
                    host="127.0.0.1",
                    port=port,
                    origin=origin,  # type: ignore[arg-type] -- a NewType of str
                )
            assert refused.value.response.status_code == 403
    assert livekit.asked == []


async def test_so_many_pages_at_once_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "MAX_CONNECTIONS", 1)
    async with both(tmp_path) as (livekit, url):
        at = f"{url}/page/livekit/rtc"
        async with connect(at, origin=own(url)) as first:  # type: ignore[arg-type]
            with pytest.raises(InvalidStatus):
                await connect(at, origin=own(url))  # type: ignore[arg-type]
            await first.send("still here")
            assert await first.recv() == "still here"
        async with asyncio.timeout(5):
            await livekit.gone.wait()


async def test_a_server_that_is_away_is_logged_without_the_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with page_server(tmp_path, "ws://127.0.0.1:9") as url:
        with pytest.raises(InvalidStatus):
            await connect(f"{url}/page/livekit/rtc?access_token=tok", origin=own(url))  # type: ignore[arg-type]
    assert "LiveKit did not take a page's connection: ConnectionRefusedError" in caplog.text
    assert "access_token=tok" not in caplog.text


async def test_a_page_that_reaches_livekit_itself_has_no_way_through_its_server(
    tmp_path: Path,
) -> None:
    async with page_server(tmp_path, "ws://127.0.0.1:9", via_page=False) as url:
        with pytest.raises(InvalidStatus):
            await connect(f"{url}/page/livekit/rtc", origin=own(url))  # type: ignore[arg-type]
