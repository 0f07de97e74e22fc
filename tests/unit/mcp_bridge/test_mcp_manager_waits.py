"""How long a manager waits for its servers where nobody says it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread
import pytest

from caal_node.cli.checks import tools as checks
from caal_node.cli.doctor import CHECKS
from mcp_bridge import CallTimeout, Limits, ServerConfig, ServerManager, SessionPool
from mcp_bridge.connection.server_session import ServerSession
from mcp_bridge.core.tools import ToolDefinition
from tests.stand_ins.mcp_fakes import FakeServer
from tests.stand_ins.virtual_loop import run

HOUR_S = 3600.0
READY = ServerConfig("ready", command="ready")
RUNNER = ServerConfig("hangs", command="npx", args=("-y", "some-server"))


class FakePool(SessionPool):
    """Gives each configuration a server of its own; those that `hang` begin and never answer."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, FakeServer] = {}

    def take(self, config: ServerConfig, limits: Limits, oauth: Any = None) -> ServerSession:
        server = self.servers[config.name] = FakeServer()
        server.up, server.fails_after_s = config.name != "hangs", 10 * HOUR_S
        session = ServerSession(config, limits, make_transport=server.transport)
        session.start()
        return session


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(work: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        return work(*arguments)

    monkeypatch.setattr(anyio.to_thread, "run_sync", at_once)


def waited(configs: Sequence[ServerConfig], **options: Any) -> tuple[float, list[str], str]:
    """Seconds until a manager can be used, the tools that it has then, and what is wrong."""

    async def work() -> tuple[float, list[str], str]:
        now = asyncio.get_running_loop().time
        began = now()
        async with ServerManager(configs, pool=FakePool(), **options) as manager:
            tools = [tool.name for tool in await manager.list_tools()]
            return now() - began, tools, manager.failed.get("hangs", "")

    return run(work())


@pytest.mark.parametrize(
    ("hangs", "options", "longest_s"),
    [
        (RUNNER, {}, 21),
        (ServerConfig("hangs", command="slow"), {}, 21),
        (ServerConfig("hangs", command="slow", connect_timeout_s=2.0), {}, 21),
        (ServerConfig("hangs", command="slow", connect_timeout_s=25.0), {}, 51),
        (ServerConfig("hangs", command="slow", connect_timeout_s=HOUR_S), {}, 61),
        (RUNNER, {"connect_timeout_s": 2.0}, 5),
        (RUNNER, {"ready_s": 1.0}, 1.1),
        (RUNNER, {"ready_s": 120.0}, 121),
    ],
)
def test_a_server_that_hangs_holds_the_others_tools_up_no_longer_than_a_start_takes(
    hangs: ServerConfig, options: dict[str, Any], longest_s: float
) -> None:
    seconds, tools, wrong = waited([READY, hangs], **options)
    assert seconds <= longest_s
    assert tools == ["ready__echo"]
    assert wrong


def test_who_is_late_is_named_with_what_follows(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        waited([READY, RUNNER])
    late = [record.getMessage() for record in caplog.records if "after" in record.getMessage()]
    assert late == [
        "hangs: after 20.5 s is not ready yet; its tools come as soon as it is; the others go on "
        "without it"
    ]


def test_a_call_waits_no_longer_than_a_call_whatever_the_start_may_take() -> None:
    config = ServerConfig("hangs", command="slow", connect_timeout_s=HOUR_S)

    async def work() -> float:
        now = asyncio.get_running_loop().time
        async with ServerManager([config], pool=FakePool(), call_timeout_s=8.0) as manager:
            await known(manager)
            began = now()
            with pytest.raises(CallTimeout, match="hangs: was not ready within 8 s"):
                await manager.call_tool("hangs__echo", {})
            return now() - began

    async def known(manager: ServerManager) -> None:
        """As if the server had been asked some other time."""
        session = manager._servers["hangs"].session  # pyright: ignore[reportPrivateUsage]
        session.recall([ToolDefinition("echo", "", {"type": "object"})])
        await manager._rebuild_table()  # pyright: ignore[reportPrivateUsage]

    assert run(work()) == pytest.approx(8.0)


def test_doctor_waits_for_a_download_less_than_its_own_deadline() -> None:
    (deadline_s,) = [check.deadline_s for check in CHECKS if check.name == "mcp"]
    assert 2 * Limits().connect_timeout_s < checks.FIRST_START_S
    assert deadline_s - checks.FIRST_START_S >= 2 * 10.0  # as long as a session may take to close
