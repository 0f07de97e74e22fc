"""Whatever ends a server or its host, nothing that the server started is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from mcp_bridge import ServerConfig, ServerManager
from tests.stand_ins.kill_matrix import (
    ENDINGS,
    KINDS,
    SERVER,
    SUPERVISOR_ENDINGS,
    UNMARKED,
    has_control_groups,
    left,
    marked,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        sys.platform != "linux", reason="only Linux has subreapers; elsewhere groups are ended"
    ),
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_process_of_any_kind_is_left(ending: str) -> None:
    assert left("bridge", ending) == dict.fromkeys(KINDS, 0)


@pytest.mark.parametrize("ending", SUPERVISOR_ENDINGS)
def test_without_its_supervisor_none_is_left_that_a_group_or_a_mark_tells(ending: str) -> None:
    found = left("bridge", ending)
    if not has_control_groups():
        del found[UNMARKED]
    assert not any(found.values())


def test_a_process_that_is_left_would_be_counted() -> None:
    mark = f"family-counted-{os.getpid()}"
    command = [sys.executable, "-I", "-S", str(SERVER), f"{mark}-setsid", "setsid"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.communicate(b'{"id": 1, "method": "initialize"}\n', timeout=20)
    left_over = marked(mark)["setsid"]
    for pid in left_over:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert len(left_over) == 1


async def test_a_program_without_an_interpreter_leaves_nothing_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)  # so there is no supervisor
    mark = f"family-frozen-{os.getpid()}"
    args = ("-I", "-S", str(SERVER), f"{mark}-double-fork", "double-fork")
    server = ServerConfig(name="family", command=sys.executable, args=args)
    async with ServerManager([server], connect_timeout_s=60):
        assert len(marked(mark)["double-fork"]) == 2
    assert not marked(mark)["double-fork"]
