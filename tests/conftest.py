"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from caal_node.config.process_guard import guard_process
from tests.stand_ins.livekit_server import LiveKit, find_server, running

pytest_plugins = [
    "tests.fixtures_models",
    "tests.blocking_guard",
    "tests.left_processes",
    "tests.side_by_side",
]

# Hypothesis' own deadline of 200 ms an example says how busy the machine is, not what is wrong.
settings.register_profile("caal", deadline=None)
settings.register_profile("few", deadline=None, max_examples=10)
settings.register_profile("some", deadline=None, max_examples=30)
settings.load_profile("caal")


@pytest.fixture(autouse=True, scope="session")
def own_files() -> None:
    """What a test writes is its user's to write alone; other files of servers are refused."""
    os.umask(0o022)


@pytest.fixture
def servers_may_start_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute in place of the shipped time-outs, for tests whose agent starts MCP servers on the
    SDK: each imports for a second, and for far longer on a busy machine."""
    monkeypatch.setattr("caal_node.tools.sources.mcp.READY_S", 60.0)
    monkeypatch.setattr("caal_node.tools.remote_toolset.DISCOVERY_S", 75.0)


@pytest.fixture
def guarded_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `guard_process` switches on, until the end of the test; without the network's guard,
    which lasts for the life of a process."""
    monkeypatch.setattr(logging.Logger, "callHandlers", logging.Logger.callHandlers)
    monkeypatch.setenv("LIVEKIT_TELEMETRY_ALLOW_PII", "")
    monkeypatch.delenv("LIVEKIT_TELEMETRY_ALLOW_PII")
    guard_process({"CAAL_NETWORK": "any"}, Path("no.env"))


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that does not exist yet, time and again."""
    folder = tmp_path_factory.mktemp("states")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_state(states: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that this machine's user or another test has kept, and nothing left with them."""
    monkeypatch.setenv("CAAL_STATE", str(next(states)))
    monkeypatch.setenv("CAAL_CONFIG", str(next(states)))


@pytest.fixture(scope="session")
def livekit() -> Iterator[LiveKit]:
    """A real livekit-server: its url, key and secret. One for the whole run; use your own room."""
    if (binary := find_server()) is None:
        pytest.skip(
            "no livekit-server: put it on PATH, or run"
            " `go install github.com/livekit/livekit-server/cmd/server@v1.13.5`"
        )
    with running(binary) as server:
        yield server
