"""How many processes of a server outlive it: nine endings, four kinds of children, two clients.

`python -m tests.stand_ins.kill_matrix CLIENT ENDING MARK` is the host: it connects one server of
each kind by `bridge` (ServerManager) or `sdk` (the SDK's client alone), says `ready`, and goes
through the ending once it is told to. `left(CLIENT, ENDING)` runs it and counts. Three of the
endings take the supervisor away, which the SDK's client has not.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).parents[2]
SERVER: Final = Path(__file__).with_name("family_server.py")
ENDINGS: Final = ("clean close", "hang", "crash", "SIGKILL", "SIGTERM", "SIGINT")
"""The last three are what the host gets."""
SUPERVISOR_ENDINGS: Final = ("supervisor SIGKILL", "parent killed by server", "both SIGKILL")
"""`both` are supervisor and host; what is left then is counted after another host has started."""
KINDS: Final = ("plain", "setsid", "double-fork", "cleared")
UNMARKED: Final = "cleared"
"""Without environment and supervisor its control group alone knows it; where there is none, nothing
waits for its end."""
Client = Literal["bridge", "sdk"]
Crash = Callable[[], Awaitable[None]]
PATIENCE_S: Final = 60.0
"""For the host, which imports the SDK first."""
SETTLE_S: Final = 30.0
"""After the ending: two seconds of grace and the kill, and room for a busy machine."""


def left(client: Client, ending: str) -> dict[str, int]:
    """Kind of child -> processes that are still there; they are killed before it returns."""
    mark = f"family-{uuid.uuid4().hex}"
    host = subprocess.Popen(
        [sys.executable, "-m", "tests.stand_ins.kill_matrix", client, ending, f"--{mark[7:]}"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert host.stdout is not None
        said = host.stdout.readline().strip()
        assert said == "ready", f"the host said {said!r}"
        started = marked(mark)
        assert all(len(started[kind]) >= 2 for kind in KINDS), f"not all there: {started}"
        before = {pid for pids in started.values() for pid in pids}
        if ending.startswith("SIG"):
            host.send_signal(getattr(signal, ending))
            host.wait(PATIENCE_S)
            return _settled(mark)
        if ending == "both SIGKILL":
            host.send_signal(signal.SIGSTOP)  # it must not see the supervisors' end
        if ending in ("both SIGKILL", "supervisor SIGKILL"):
            for pid in filter(supervises, before):
                os.kill(pid, signal.SIGKILL)
        if ending == "both SIGKILL":
            host.kill()
            host.wait(PATIENCE_S)
            _start_and_close_a_host()
            return _settled(mark, supervised=False)
        if ending == "supervisor SIGKILL":
            # The host lives, and may start them again.
            return _settled(mark, before, supervised=False)
        assert host.stdin is not None
        host.stdin.write("go\n")
        host.stdin.flush()
        if ending in ("crash", "parent killed by server"):
            assert host.stdout.readline().strip() == "crashed"
            return _settled(mark, before, supervised=ending == "crash")
        host.wait(PATIENCE_S)
        return _settled(mark)
    finally:
        host.kill()
        host.communicate()
        for pids in marked(mark).values():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@cache
def has_control_groups() -> bool:
    """Whether the system lends control groups here."""
    from mcp_bridge.transports.process import end_group, make_group, new_mark

    group = make_group(new_mark())
    end_group(group)
    return bool(group)


def supervises(pid: int) -> bool:
    return b"supervisor." in Path(f"/proc/{pid}/cmdline").read_bytes()


def _start_and_close_a_host() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.stand_ins.kill_matrix",
        "bridge",
        "clean close",
        "--next",
    ]
    subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=PATIENCE_S,
    )


def _settled(
    mark: str, among: set[int] | None = None, *, supervised: bool = True
) -> dict[str, int]:
    until = time.monotonic() + SETTLE_S
    groups = has_control_groups()
    while True:
        living = {
            kind: len([pid for pid in pids if among is None or pid in among])
            for kind, pids in marked(mark).items()
        }
        awaited = [kind for kind in KINDS if supervised or kind != UNMARKED or groups]
        if not any(living[kind] for kind in awaited) or time.monotonic() >= until:
            return living
        time.sleep(0.02)  # the kernel announces no stranger's end


def marked(mark: str) -> dict[str, list[int]]:
    """Living processes of each kind's server, by what stands in their command lines."""
    found: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                for kind in KINDS:
                    if f"{mark}-{kind}" in words and state not in "ZX":
                        found[kind].append(int(folder.name))
    return found


async def _host(client: str, ending: str, mark: str) -> None:
    connect = _bridge if client == "bridge" else _sdk
    tool = "crash" if ending == "crash" else "kill_parent"
    async with connect(mark, ["stubborn"] if ending == "hang" else [], tool) as crash:
        print("ready", flush=True)
        if ending.startswith("SIG"):
            await asyncio.Event().wait()
        await asyncio.to_thread(sys.stdin.readline)
        if ending in ("crash", "parent killed by server"):
            await crash()
            print("crashed", flush=True)
            await asyncio.Event().wait()


@asynccontextmanager
async def _bridge(mark: str, flags: list[str], tool: str) -> AsyncGenerator[Crash]:
    from mcp_bridge import ServerConfig, ServerManager, ServerUnavailable

    servers = [
        ServerConfig(name=kind, command=sys.executable, args=_arguments(mark, kind, flags))
        for kind in KINDS
    ]
    async with ServerManager(servers, connect_timeout_s=PATIENCE_S) as manager:
        assert not manager.failed

        async def crash() -> None:
            for kind in KINDS:
                with contextlib.suppress(ServerUnavailable):
                    await manager.call_tool(f"{kind}__{tool}")

        yield crash


@asynccontextmanager
async def _sdk(mark: str, flags: list[str], tool: str) -> AsyncGenerator[Crash]:
    from mcp import Client as SdkClient
    from mcp import StdioServerParameters

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                SdkClient(
                    StdioServerParameters(
                        command=sys.executable, args=list(_arguments(mark, kind, flags))
                    )
                )
            )
            for kind in KINDS
        ]

        async def crash() -> None:
            for client in clients:
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(client.call_tool(tool, {}), 2)

        yield crash


def _arguments(mark: str, kind: str, flags: list[str]) -> tuple[str, ...]:
    return ("-I", "-S", str(SERVER), f"{mark}-{kind}", kind, *flags)


if __name__ == "__main__":
    # A shell that starts a command in the background has it ignore this one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asyncio.run(_host(sys.argv[1], sys.argv[2], f"family-{sys.argv[3][2:]}"))
