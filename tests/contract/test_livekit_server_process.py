"""The demo's own livekit-server: found or built, ready, and never left behind."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import stat
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path

import pytest
from livekit import api, rtc
from rich.console import Console

from caal_node.cli.processes import livekit_server, parent_watchdog
from caal_node.cli.processes.livekit_server import (
    VERSION,
    LiveKitServer,
    find_server,
    obtain_server,
)
from caal_node.core.errors import ConfigError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stand-ins are shell scripts")

DEADLINE_S = 30.0
Put = Callable[[str, str], Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts a shell script on a PATH that has nothing but the system's own tools."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path / "cache"))

    def write(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


def console() -> Console:
    return Console(file=io.StringIO(), width=300)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_server_on_path_is_taken(put: Put) -> None:
    program = put("livekit-server", "exit 0")
    assert obtain_server(console()) == program
    assert find_server() == program


def test_go_builds_one_and_the_next_run_finds_it(put: Put) -> None:
    put("go", 'echo "$@" > "$GOBIN/asked"; cp "$0" "$GOBIN/server"; cp "$GOBIN/asked" "$GOBIN/.."')
    screen = console()
    built = obtain_server(screen)
    assert built is not None
    assert built.name == f"livekit-server-{VERSION}"
    asked = (built.parent / "asked").read_text().split()
    assert asked == ["install", f"github.com/livekit/livekit-server/cmd/server@v{VERSION}"]
    assert "Building livekit-server" in printed(screen)
    put("go", "exit 1")
    assert obtain_server(console()) == built


@pytest.mark.parametrize(
    ("script", "within_s", "why"),
    [
        ("echo 'go: needs go1.99' >&2; exit 1", 60.0, "go: needs go1.99"),
        ("exit 0", 60.0, "no reason given"),
        ("exec sleep 60", 0.5, "not ready after"),
    ],
)
def test_a_build_that_fails_is_told_and_there_is_none(
    put: Put, monkeypatch: pytest.MonkeyPatch, script: str, within_s: float, why: str
) -> None:
    monkeypatch.setattr(livekit_server, "BUILD_DEADLINE_S", within_s)
    put("go", script)
    screen = console()
    assert obtain_server(screen) is None
    assert why in printed(screen)


def test_without_go_there_is_none(put: Put) -> None:
    assert obtain_server(console()) is None


async def test_a_program_that_is_no_server_is_named_with_its_last_word(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = put("livekit-server", "echo 'no such flag'; exit 3")
    server = LiveKitServer(program)
    with pytest.raises(ConfigError, match=r"livekit-server: did not start \(no such flag\)"):
        async with asyncio.timeout(DEADLINE_S), server:
            pass
    assert server.log is not None
    server.log.unlink()


async def test_a_program_that_never_answers_is_ended_at_the_deadline(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(livekit_server, "ATTEMPTS", 1)
    pids = put("x", "").parent / "pids"
    program = put("livekit-server", f"echo $$ >> {pids}; exec sleep 60")
    server = LiveKitServer(program, ready_deadline_s=2.0)
    with pytest.raises(ConfigError, match="did not start"):
        async with asyncio.timeout(DEADLINE_S), server:
            pass
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
    assert server.log is not None
    server.log.unlink()


async def test_the_parent_watchdog_ends_its_command_when_standard_input_ends() -> None:
    async with asyncio.timeout(DEADLINE_S):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", parent_watchdog.__file__, "sh", "-c", "echo up; exec sleep 60"),
            stdin=PIPE,
            stdout=PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        process.stdin.close()
        assert await process.wait() != 0
        assert await process.stdout.read() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells of a parent's death")
async def test_what_the_parent_watchdog_runs_does_not_outlive_it() -> None:
    async with asyncio.timeout(DEADLINE_S):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", parent_watchdog.__file__, "sh", "-c", "echo up; exec sleep 60"),
            stdin=PIPE,
            stdout=PIPE,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        process.kill()
        assert await process.stdout.read() == b"", "the command has closed its end"
        await process.wait()


async def test_the_parent_watchdog_passes_an_interrupt_on() -> None:
    # A shell that starts the tests in the background has everything below it ignore interrupts.
    heed = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = f"import signal, time; {heed}; print('up', flush=True); time.sleep(60)"
    async with asyncio.timeout(DEADLINE_S):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", parent_watchdog.__file__, sys.executable, "-c", script),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        _, said = await process.communicate()
    assert b"KeyboardInterrupt" in said
    assert process.returncode not in (0, None)


async def test_the_parent_watchdog_passes_its_commands_code_on() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", parent_watchdog.__file__, "sh", "-c", "exit 7"), stdin=PIPE
    )
    async with asyncio.timeout(DEADLINE_S):
        assert await process.wait() == 7


@pytest.mark.livekit
async def test_two_participants_meet_and_hear_each_other() -> None:
    program = find_server()
    if program is None:
        pytest.skip("no livekit-server on PATH or in the cache; `make demo` builds one with Go")
    async with asyncio.timeout(DEADLINE_S), LiveKitServer(program) as server:
        speaker, listener = rtc.Room(), rtc.Room()
        heard = asyncio.Event()
        listener.on("track_subscribed", lambda *_: heard.set())
        await speaker.connect(server.url, token(server, "speaker"))
        await listener.connect(server.url, token(server, "listener"))
        track = rtc.LocalAudioTrack.create_audio_track("voice", rtc.AudioSource(48_000, 1))
        await speaker.local_participant.publish_track(track)
        await heard.wait()
        await speaker.disconnect()
        await listener.disconnect()
        log = server.log
    assert log is not None
    assert not log.exists()
    with pytest.raises(RuntimeError, match="not open"):
        _ = server.url


def token(server: LiveKitServer, identity: str) -> str:
    grants = api.VideoGrants(room_join=True, room="demo")
    access = api.AccessToken(server.api_key, server.api_secret)
    return access.with_identity(identity).with_grants(grants).to_jwt()
