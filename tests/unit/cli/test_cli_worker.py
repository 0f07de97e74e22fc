"""The worker says at once what it lacks, and waits for a LiveKit server that is away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from caal_node.cli import worker
from caal_node.cli.worker import METRICS_PORT, make_server, metrics_port, run_worker, with_options
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.testing import plain_settings
from tests.stand_ins.terminal import clean_environment

pytestmark = pytest.mark.long

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


def test_metrics_are_served_at_the_port_that_opentelemetry_names() -> None:
    assert metrics_port({}) is metrics_port({METRICS_PORT: " "}) is None
    assert metrics_port({METRICS_PORT: "9464"}) == 9464


@pytest.mark.parametrize("given", ["0", "65536", "-1", "9464.0", "off", "9" * 5000])
def test_what_is_no_port_is_refused_by_name(given: str) -> None:
    with pytest.raises(ConfigError, match=f"{METRICS_PORT}: .* write a number such as 9464"):
        metrics_port({METRICS_PORT: given})


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The servers that LiveKit was given to run; it runs none."""
    for name in os.environ:
        if name.startswith(("CAAL_", "LIVEKIT_", "OLLAMA_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    servers: list[Any] = []
    monkeypatch.setattr(worker.cli, "run_app", servers.append)
    return servers


KEYS: Final = ("--api-key", "key", "--api-secret", "s" * 32)
NO_SPEECH: Final = {"CAAL_STT": "none", "CAAL_TTS": "none"}


@pytest.mark.parametrize("command", ["start", "dev"])
@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        ((), {}, "no LiveKit server is set. Set LIVEKIT_URL, "),
        ((), {"LIVEKIT_URL": "ws://box"}, "not set: LIVEKIT_API_KEY, LIVEKIT_API_SECRET. Set"),
        (("--url", "ws://box", *KEYS), {"CAAL_AGENT": "none.such:Agent"}, "CAAL_AGENT: there is"),
        (
            ("--url", "ws://box", *KEYS),
            {},
            "is not in the cache. Run: caal-node download-files",
        ),
        (("--url=ws://box", *KEYS), NO_SPEECH, "ollama serve"),
    ],
)
def test_what_a_worker_lacks_is_one_line_and_it_does_not_begin(
    command: str,
    arguments: tuple[str, ...],
    env: dict[str, str],
    said: str,
    handed_over: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        run_worker(command, list(arguments))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not handed_over


def test_a_livekit_server_that_is_away_is_told_and_the_worker_begins(
    handed_over: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ready(settings: Settings) -> Settings:
        return settings

    monkeypatch.setattr(worker, "ready_settings", ready)
    for name, value in NO_SPEECH.items():
        monkeypatch.setenv(name, value)
    run_worker("start", ["--url", "ws://127.0.0.1:9", *KEYS])
    (line,) = capsys.readouterr().err.splitlines()
    assert "ws://127.0.0.1:9: LiveKit cannot be reached; check LIVEKIT_URL" in line
    assert len(handed_over) == 1


@pytest.mark.parametrize(("env", "coloured"), [({"FORCE_COLOR": "1"}, True), ({}, False)])
def test_livekits_logs_have_no_colours_in_a_pipe(env: dict[str, str], coloured: bool) -> None:
    code = (
        "import logging\n"
        "from livekit.agents.cli.log import setup_logging\n"
        "from caal_node.cli.worker import take_colours_from_logs\n"
        "take_colours_from_logs()\n"
        "setup_logging('INFO', devmode=True, console=False)\n"
        "logging.warning('words')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment(**env),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "WARNING" in done.stdout
    assert ("\x1b" in done.stdout) is coloured


@pytest.mark.parametrize("command", ["start", "dev", "console"])
def test_whoever_asks_for_help_needs_nothing(
    command: str, handed_over: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [])
    run_worker(command, ["--help"])
    assert len(handed_over) == 1


def test_livekits_own_options_go_before_the_settings() -> None:
    settings = plain_settings(LIVEKIT_URL="ws://one", LIVEKIT_API_KEY="one")
    changed = with_options(settings, ["--no-reload", "--url=ws://two", "--api-secret", "s", "-x"])
    assert (changed.livekit_url, changed.livekit_api_key) == ("ws://two", "one")
    assert changed.livekit_api_secret is not None
    assert changed.livekit_api_secret.get_secret_value() == "s"
