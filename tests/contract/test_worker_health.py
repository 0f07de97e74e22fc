"""`caal-node health` is right about the worker and about the LiveKit server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic import SecretStr

from caal_node.cli import health
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError

SETTINGS = Settings(
    livekit_url="ws://127.0.0.1:1", livekit_api_key="key", livekit_api_secret=SecretStr("s" * 32)
)


@asynccontextmanager
async def _worker(status: int, text: str) -> AsyncIterator[int]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    app = web.Application()
    app.add_routes([web.get("/", answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _livekit(
    monkeypatch: pytest.MonkeyPatch, says: Callable[[Settings], Awaitable[str | None]]
) -> None:
    monkeypatch.setattr(health, "livekit_away", says)


async def _is_there(_: Settings) -> None:
    return None


async def _refuses(_: Settings) -> None:
    raise ConfigError("livekit: the key is refused")


async def test_a_worker_that_answers_and_a_server_that_is_there_are_healthy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _livekit(monkeypatch, _is_there)
    async with _worker(200, "OK") as port:
        assert await health.run_health(SETTINGS, port) == 0
    assert capsys.readouterr().out == "healthy\n"


async def test_a_worker_that_answers_while_the_server_is_away_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with _worker(200, "OK") as port:
        assert await health.run_health(SETTINGS, port) == 1
    assert "unhealthy: livekit: ws://127.0.0.1:1" in capsys.readouterr().out


async def test_keys_that_the_server_refuses_are_unhealthy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _livekit(monkeypatch, _refuses)
    async with _worker(200, "OK") as port:
        assert await health.run_health(SETTINGS, port) == 1
    assert "the key is refused" in capsys.readouterr().out


async def test_what_the_worker_says_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _livekit(monkeypatch, _is_there)
    async with _worker(503, "inference process not running") as port:
        assert await health.run_health(SETTINGS, port) == 1
    assert "the worker says: inference process not running" in capsys.readouterr().out


async def test_without_a_worker_it_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _livekit(monkeypatch, _is_there)
    async with _worker(200, "OK") as port:
        pass  # nothing answers there any more
    assert await health.run_health(SETTINGS, port) == 1
    assert "Start it with: caal-node start" in capsys.readouterr().out


async def test_without_keys_it_says_which_are_missing() -> None:
    with pytest.raises(ConfigError, match="LIVEKIT_URL"):
        await health.run_health(Settings())
