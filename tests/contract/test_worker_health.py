"""`caal-node health` is right about the worker and about the LiveKit server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from aiohttp import web
from pydantic import SecretStr

from caal_node.cli import health
from caal_node.config.settings import Settings

SETTINGS = Settings(
    livekit_url="ws://127.0.0.1:1", livekit_api_key="key", livekit_api_secret=SecretStr("s" * 32)
)


@asynccontextmanager
async def _served(*routes: web.RouteDef) -> AsyncIterator[int]:
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _worker(status: int, text: str) -> AbstractAsyncContextManager[int]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    return _served(web.get("/", answer))


async def _check(port: int, livekit: int | str) -> int:
    """Return the exit code with a LiveKit server that answers with this status, or at this URL."""
    if isinstance(livekit, str):
        return await health.run_health(SETTINGS.model_copy(update={"livekit_url": livekit}), port)

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Authorization"].startswith("Bearer ")
        if livekit == 200:
            return web.Response(content_type="application/protobuf")  # no rooms
        said = {"code": "unauthenticated", "msg": "invalid token"}
        return web.json_response(said, status=livekit)

    async with _served(web.post("/twirp/livekit.RoomService/ListRooms", answer)) as at:
        return await _check(port, f"ws://127.0.0.1:{at}")


async def test_a_worker_that_answers_and_a_server_that_takes_the_keys_are_healthy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with _worker(200, "OK") as port:
        assert await _check(port, 200) == 0
    assert capsys.readouterr().out == "healthy\n"


async def test_a_worker_that_answers_while_the_server_is_away_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with _worker(200, "OK") as port:
        assert await _check(port, "ws://127.0.0.1:1") == 1
    said = "unhealthy: the LiveKit server at ws://127.0.0.1:1 does not answer\n"
    assert capsys.readouterr().out == said


async def test_keys_that_the_server_refuses_are_unhealthy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with _worker(200, "OK") as port:
        assert await _check(port, 401) == 1
    out = capsys.readouterr().out
    assert "refuses the worker's keys or the request (401). Check LIVEKIT_API_KEY" in out
    assert "ssss" not in out


async def test_what_the_worker_says_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    async with _worker(503, "inference process not running") as port:
        assert await _check(port, 200) == 1
    assert "the worker says: inference process not running" in capsys.readouterr().out


async def test_without_a_worker_it_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with _worker(200, "OK") as port:
        pass  # nothing answers there any more
    assert await _check(port, 200) == 1
    assert "Start it with: caal-node start" in capsys.readouterr().out


async def test_without_keys_it_says_which_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    async with _worker(200, "OK") as port:
        assert await health.run_health(Settings(), port) == 1
    assert "LIVEKIT_API_SECRET is not set" in capsys.readouterr().out
