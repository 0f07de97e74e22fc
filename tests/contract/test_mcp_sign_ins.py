"""Signing in once to a real server that wants it: `caal-node login`, and what rooms do with it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import httpx2
import pytest
from mcp.shared.auth import OAuthToken

from caal_node.cli import login as signing
from caal_node.cli.checks.tools import check_mcp
from caal_node.config.settings import Settings
from caal_node.core import paths
from caal_node.core.errors import ConfigError
from caal_node.tools.sources.configured import configured_tiers
from mcp_bridge import OAuth, ServerConfig, ServerError, ServerManager, SignIns
from mcp_bridge.transports import oauth as sign_ins
from mcp_bridge.transports.oauth import SignInRequests
from tests.stand_ins.mcp_events import HttpStandIn, events
from tests.stand_ins.signing_mcp_server import SignInServer, signing_server

pytestmark = pytest.mark.long


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv(paths.STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setattr(signing.webbrowser, "open", opened)
    return Settings(mcp_servers=tmp_path / "mcp_servers.json")


def opened(page: str) -> bool:
    """A browser with somebody in front of it who agrees to everything."""
    with httpx2.Client(follow_redirects=True, trust_env=False) as browser:
        return browser.get(page).is_success


def has(room: Settings, **servers: Any) -> None:
    room.mcp_servers.write_text(json.dumps(servers))
    room.mcp_servers.chmod(0o600)


def manager(provider: SignInServer) -> ServerManager:
    """As every room has one."""
    config = ServerConfig("diary", transport="http", url=provider.url)
    return ServerManager([config], oauth=OAuth(stores=SignIns(paths.sign_ins())))


async def test_doctor_sends_to_the_sign_in_and_uses_it_afterwards(room: Settings) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        [before] = await check_mcp(room)
        assert (before.status, before.fix) == ("fail", "run: caal-node login diary")
        assert "needs a sign-in" in before.found
        await signing.login(room, "diary")
        [after] = await check_mcp(room)
        assert (after.status, after.fix) == ("ok", "")
        assert "2 tools" in after.found


async def called(servers: ServerManager) -> object:
    return (await servers.call_tool("diary__next_entry")).value["result"]


async def test_who_signs_in_once_is_let_in_in_every_room(
    room: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        async with manager(provider) as before:
            assert "sign in" in before.failed["diary"]
            await signing.login(room, "diary")
            assert "signed in to diary: 2 tools" in capsys.readouterr().out
            # A room that is live has it at its next reload, and a new one from the beginning.
            await before.reload()
            assert await called(before) == "dentist at nine"
        async with manager(provider) as after:
            assert await called(after) == "dentist at nine"
        assert provider.signed_in == 1


@pytest.mark.parametrize("until", [1.0, None], ids=["in time", "after a refusal"])
async def test_a_token_that_ended_between_two_runs_is_renewed_without_a_person(
    room: Settings, until: float | None
) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        provider.end()
        (file,) = paths.sign_ins().glob("*.json")
        file.write_text(json.dumps({**json.loads(file.read_text()), "until": until}))
        async with manager(provider) as later:
            assert await called(later) == "dentist at nine"
            provider.end()
            assert await called(later) == "dentist at nine"
        assert (provider.signed_in, provider.renewed) == (1, 2)
        # What was renewed is kept: what it came from would not be taken twice.
        async with manager(provider) as still_later:
            assert await called(still_later) == "dentist at nine"
        assert provider.renewed == 2


async def test_what_one_room_renewed_is_good_for_the_others(room: Settings) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        async with manager(provider) as one, manager(provider) as other:
            assert await called(one) == await called(other) == "dentist at nine"
            for _ in range(2):
                provider.end()
                assert await called(one) == await called(other) == "dentist at nine"
        assert (provider.signed_in, provider.renewed) == (1, 2)


async def test_a_live_room_has_what_a_person_signed_in_to_again(room: Settings) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        async with manager(provider) as servers:
            assert await called(servers) == "dentist at nine"
            provider.revoke()
            await signing.login(room, "diary")
            assert await called(servers) == "dentist at nine"
        assert (provider.signed_in, provider.renewed) == (2, 0)


async def test_a_sign_in_that_ends_while_a_live_room_asks_where_to_is_good_for_its_call(
    room: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, is_armed = SignInRequests.send, False

    async def signs_in_first(requests: SignInRequests, request: httpx2.Request) -> httpx2.Response:
        nonlocal is_armed
        if is_armed and ".well-known" in request.url.path:
            is_armed = False
            await signing.login(room, "diary")
        return await send(requests, request)

    monkeypatch.setattr(SignInRequests, "send", signs_in_first)
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        async with manager(provider) as servers:
            assert await called(servers) == "dentist at nine"
            provider.revoke()
            is_armed = True
            assert await called(servers) == "dentist at nine"
        assert not is_armed
        assert provider.signed_in == 2


async def test_a_room_goes_on_with_tokens_that_could_not_be_kept(
    room: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        async with manager(provider) as servers:
            monkeypatch.setattr(sign_ins, "replace_file", full)
            for _ in range(2):
                provider.end()
                assert await called(servers) == "dentist at nine"
        assert (provider.signed_in, provider.renewed) == (1, 2)
        assert "was not kept: No space left on device" in caplog.text


async def test_tokens_too_long_to_be_read_again_are_not_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = SignIns(tmp_path)(ServerConfig("diary", transport="http", url="https://d.example"))
    short, long = (OAuthToken(access_token="x" * n) for n in (8, sign_ins.MAX_FILE_BYTES))
    await kept.set_tokens(short)
    await kept.set_tokens(long)
    assert await kept.get_tokens() == short
    assert "was not kept: it would be over" in caplog.text


async def test_where_nothing_can_be_renewed_the_room_says_who_can_fix_it(room: Settings) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        provider.revoke()
        async with manager(provider) as servers:
            assert servers.failed["diary"] == "needs a sign-in; sign in to diary"
            await signing.login(room, "diary")
            await servers.reload()
            assert await called(servers) == "dentist at nine"


async def test_what_is_kept_is_for_its_user_alone_and_for_one_address(room: Settings) -> None:
    async with signing_server() as provider, signing_server() as other:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        (file,) = paths.sign_ins().glob("*.json")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        # Another server under the same name is given nothing.
        async with manager(other) as servers:
            assert "sign in" in servers.failed["diary"]


async def test_a_sign_in_that_is_forgotten_is_gone(room: Settings) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        await signing.logout(room, "diary")
        assert list(paths.sign_ins().glob("*.json")) == []
        with pytest.raises(ConfigError, match="nobody has signed in to diary"):
            await signing.logout(room, "diary")


async def test_a_damaged_file_is_as_none(room: Settings, caplog: pytest.LogCaptureFixture) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        (file,) = paths.sign_ins().glob("*.json")
        file.write_text("{")
        async with manager(provider) as servers:
            assert "sign in" in servers.failed["diary"]
        assert "is damaged; sign in again" in caplog.text


async def test_no_token_is_logged(room: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "mcp_bridge")
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        provider.revoke()
        async with manager(provider):
            pass
        (file,) = paths.sign_ins().glob("*.json")
        tokens = json.loads(file.read_text())["tokens"]
        assert tokens["access_token"] not in caplog.text
        assert tokens["refresh_token"] not in caplog.text


async def test_a_server_that_repeats_its_token_tells_nobody(room: Settings) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        await signing.login(room, "diary")
        async with manager(provider) as servers:
            for _ in range(2):
                given = await servers.call_tool("diary__show_ticket", {"angry": False})
                assert given.value == {"result": "you came with ***"}
                with pytest.raises(ServerError) as refused:
                    await servers.call_tool("diary__show_ticket", {"angry": True})
                assert "I do not like ***" in str(refused.value)
                provider.end()  # and the one that it is renewed to is not told of either
        assert provider.renewed == 1


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """What is written to it is typed in."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as screen, os.fdopen(writing, "wb", buffering=0) as keys:
        monkeypatch.setattr("sys.stdin", screen)
        yield keys


@pytest.fixture
async def page(monkeypatch: pytest.MonkeyPatch) -> asyncio.Future[str]:
    """The page that a person is told to sign in on."""
    told: asyncio.Future[str] = asyncio.Future()

    def echo(text: str, *, nl: bool = True) -> None:
        found = [word for word in text.split() if "/authorize?" in word]
        if found and not told.done():
            told.set_result(found[0])

    monkeypatch.setattr(signing.typer, "echo", echo)
    return told


def agreed_to(page: str) -> str:
    """Where a browser is sent by somebody who agrees."""
    with httpx2.Client(trust_env=False) as browser:
        return str(browser.get(page).headers["location"])


async def test_a_machine_without_a_browser_is_told_the_page_and_asks_for_the_address(
    room: Settings, keyboard: BinaryIO, page: asyncio.Future[str]
) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        async with asyncio.TaskGroup() as both:
            both.create_task(signing.login(room, "diary", browser=False))
            address = await asyncio.to_thread(agreed_to, await page)
            keyboard.write(f" {address}\n".encode())
        assert provider.signed_in == 1


async def test_a_keyboard_that_is_gone_is_told_of(
    room: Settings, keyboard: BinaryIO, page: asyncio.Future[str]
) -> None:
    keyboard.close()
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        with pytest.raises(ConfigError, match=r"diary: .*no address was typed in"):
            await signing.login(room, "diary", browser=False)


async def test_nobody_waits_for_a_keyboard_or_a_browser_once_it_is_given_up(
    room: Settings, tmp_path: Path
) -> None:
    program = """
import asyncio, os, sys, webbrowser
from pathlib import Path
from caal_node.cli import login
from caal_node.config.settings import Settings
from tests.stand_ins.mcp_events import HttpStandIn, events
from tests.stand_ins.signing_mcp_server import signing_server

login.SIGN_IN_S = 0.3
webbrowser.open = lambda page: os.read(0, 1)

async def main():
    async with signing_server() as provider:
        servers = Path(sys.argv[1])
        servers.write_text('{"diary": {"url": "%s"}}' % provider.url)
        servers.chmod(0o600)
        for browser in (True, False):
            try:
                await login.login(Settings(mcp_servers=servers), "diary", browser=browser)
            except login.ConfigError as error:
                print("given up:", error)

asyncio.run(main())
"""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        str(room.mcp_servers),
        cwd=Path(__file__).parents[2],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            assert child.stdout is not None
            printed = (await child.stdout.read()).decode()
            assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert printed.count("given up: diary: ") == 2


async def test_a_sign_in_that_cannot_be_kept_is_not_said_to_be(
    room: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_ins, "MAX_FILE_BYTES", 10)
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        with pytest.raises(ConfigError, match="the sign-in to diary could not be kept"):
            await signing.login(room, "diary")


async def test_a_server_that_lets_anybody_in_is_told_of(room: Settings) -> None:
    async with events() as found:
        server = HttpStandIn(found)
        await server.start()
        try:
            has(room, open={"url": server.url})
            with pytest.raises(ConfigError, match="open lets anybody in"):
                await signing.login(room, "open")
        finally:
            await server.stop()


async def test_nobody_signs_in_for_a_folder_that_cannot_be_written(room: Settings) -> None:
    has(room, diary={"url": "https://diary.example/mcp"})
    paths.state_folder().write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match="cannot be written"):
        await signing.login(room, "diary")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody", "one can sign in to: diary"),
        ("clock", "clock needs no sign-in"),
        ("keyed", "keyed needs no sign-in"),
    ],
)
async def test_a_server_that_one_cannot_sign_in_to_is_named(
    room: Settings, name: str, words: str
) -> None:
    has(
        room,
        diary={"url": "https://diary.example/mcp"},
        clock={"command": "uvx", "args": ["mcp-server-time"]},
        keyed={"url": "https://keyed.example/mcp", "headers": {"Authorization": "Bearer x"}},
    )
    with pytest.raises(ConfigError, match=words):
        await signing.login(room, name)


async def test_a_sign_in_that_nobody_finishes_can_be_given_up(
    room: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = asyncio.Event()
    loop = asyncio.get_running_loop()

    def looked_at(_: str) -> bool:
        loop.call_soon_threadsafe(shown.set)
        return True

    monkeypatch.setattr(signing.webbrowser, "open", looked_at)
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        signing_in = asyncio.create_task(signing.login(room, "diary"))
        await shown.wait()
        signing_in.cancel()
        with pytest.raises(asyncio.CancelledError):
            await signing_in
        config = ServerConfig("diary", transport="http", url=provider.url)
        assert not await SignIns(paths.sign_ins())(config).known()


async def test_the_agent_says_which_command_fixes_it_and_calls_with_what_it_brought(
    room: Settings,
) -> None:
    async with signing_server() as provider:
        has(room, diary={"url": provider.url})
        tier = configured_tiers(room)["mcp"]
        try:
            wants = (await tier.discover()).failed["diary"]
            assert wants == "needs a sign-in; run: caal-node login diary"
            await signing.login(room, "diary")
            spec = (await tier.discover()).specs[0]
            assert await tier.call(spec, {}) == {"result": "dentist at nine"}
        finally:
            await tier.aclose()
