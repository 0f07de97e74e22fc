"""The worker waits for a LiveKit server that is away."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from caal_node.cli.worker import make_server
from caal_node.testing import plain_settings

AN_HOUR_S = 3_600


class Unreachable:
    """A client session of which every connection is refused."""

    async def ws_connect(self, *_: Any, **__: Any) -> Any:
        raise aiohttp.ClientConnectionError("refused")


async def test_a_server_that_is_away_for_an_hour_is_still_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited_s = 0.0

    async def wait(seconds: float) -> None:
        nonlocal waited_s
        waited_s += seconds
        if waited_s > AN_HOUR_S:
            raise StopAsyncIteration

    settings = plain_settings(LIVEKIT_API_KEY="key", LIVEKIT_API_SECRET="s" * 32)
    server: Any = make_server(settings, always_free=True)
    monkeypatch.setattr(server, "_http_session", Unreachable(), raising=False)
    monkeypatch.setattr(server, "_closed", False)
    monkeypatch.setattr("livekit.agents.worker.asyncio.sleep", wait)
    with pytest.raises((StopAsyncIteration, RuntimeError)):
        await server._connection_task()
    assert waited_s > AN_HOUR_S
