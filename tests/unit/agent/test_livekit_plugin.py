"""caal-node among LiveKit's plugins: registration, files to fetch, and one tree of logs."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from livekit.agents import Plugin, llm
from typer.testing import CliRunner

from caal_node import LLM
from caal_node.cli.app import app
from caal_node.livekit_plugin import PACKAGE, CaalPlugin, register
from caal_node.weights import present
from caal_node.weights.fetch import CATALOGUE, MINILM, PIPER_JOE, WHISPER_TINY_EN, Weight

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
DEADLINE_S = 120
SILENT = {"CAAL_STT": "none", "CAAL_TTS": "none"}


def run(*command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in an empty folder, as whoever has installed the package does."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("CAAL_")}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**own, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_importing_a_model_registers_the_plugin_once() -> None:
    register()
    (ours,) = (plugin for plugin in Plugin.registered_plugins if isinstance(plugin, CaalPlugin))
    assert (ours.package, ours.title) == (PACKAGE, PACKAGE)
    assert ours.logger is logging.getLogger("caal_node")


def test_the_package_is_among_the_plugins_and_has_the_same_model() -> None:
    from livekit.plugins import caal

    assert caal.LLM is LLM
    assert issubclass(caal.LLM, llm.LLM)


def test_importing_it_outside_of_the_main_thread_raises_nothing(tmp_path: Path) -> None:
    code = (
        "import threading, importlib\n"
        "names, done = ['livekit.plugins.caal', 'caal_node.models.llm'], []\n"
        "work = lambda: done.extend(map(importlib.import_module, names))\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start(); thread.join()\n"
        "from livekit.agents import Plugin\n"
        "assert len(done) == 2 and not Plugin.registered_plugins\n"
        "importlib.import_module('caal_node.livekit_plugin').register()\n"
        "print([plugin.package for plugin in Plugin.registered_plugins])\n"
    )
    said = run("-c", code, folder=tmp_path)
    assert said.stdout == f"['{PACKAGE}']\n", said.stderr


def test_livekits_own_command_fetches_what_the_settings_need(tmp_path: Path) -> None:
    said = run(
        "-m",
        "livekit.agents",
        "download-files",
        folder=tmp_path,
        CAAL_STT="none",
        CAAL_TTS="none",
    )
    assert said.returncode == 0, said.stderr
    assert f"finished downloading files for {PACKAGE}" in said.stderr
    assert "these settings need no weights" in said.stderr


def test_livekits_own_command_fails_where_a_setting_is_wrong(tmp_path: Path) -> None:
    said = run("-m", "livekit.agents", "download-files", folder=tmp_path, CAAL_NUM_CTX="-1")
    assert said.returncode == 1
    assert "CAAL_NUM_CTX" in said.stderr


class Fetched:
    """Stands in for the sources: notes what would be fetched."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, weight: Weight | str, **_: object) -> Path:
        self.keys.append(weight if isinstance(weight, str) else weight.key)
        return Path()


@pytest.mark.parametrize(
    ("settings", "missing", "keys"),
    [
        ({}, (), [WHISPER_TINY_EN.key, PIPER_JOE.key]),
        ({"CAAL_TTS": "none"}, (), [WHISPER_TINY_EN.key]),
        ({"CAAL_STT": "none", "CAAL_TTS": "my:tts", "CAAL_EMBEDDING": "minilm"}, (), [MINILM.key]),
        ({**SILENT, "CAAL_API": "embedded", "CAAL_MODEL": "mine.gguf"}, (), ["mine.gguf"]),
        ({**SILENT, "CAAL_FALLBACKS": "embedded:mine.gguf"}, (), ["mine.gguf"]),
        ({**SILENT, "CAAL_API": "embedded"}, ("xllamacpp",), []),
        ({}, ("piper",), [WHISPER_TINY_EN.key]),
        ({}, ("faster_whisper", "piper"), []),
    ],
)
def test_download_files_fetches_for_what_is_set_and_installed(
    settings: dict[str, str],
    missing: tuple[str, ...],
    keys: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    for name in ("CAAL_STT", "CAAL_TTS", "CAAL_EMBEDDING", "CAAL_API", "CAAL_FALLBACKS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    fetched = Fetched()
    monkeypatch.setattr("caal_node.weights.gguf.ensure", fetched)
    monkeypatch.setattr("caal_node.weights.gguf.ensure_gguf", fetched)
    monkeypatch.setattr(
        "caal_node.weights.gguf.find_spec", lambda name: None if name in missing else name
    )
    said = CliRunner().invoke(app, ["download-files"])
    assert said.exit_code == 0, said.output
    assert fetched.keys == keys
    for library in missing:
        assert f"{library} is not installed (pip install" in said.output


def test_what_is_in_the_cache_is_named_and_not_fetched(tmp_path: Path) -> None:
    there = [weight for weight in CATALOGUE if present(weight)]
    if WHISPER_TINY_EN not in there or PIPER_JOE not in there:
        pytest.skip("the speech weights are not in the cache")
    said = run("-m", "caal_node.cli", "download-files", folder=tmp_path)
    assert said.returncode == 0
    assert said.stderr.count("is there:") == 2


def test_all_logs_are_under_one_logger() -> None:
    import mcp_bridge.connection.manager

    ours = logging.getLogger("caal_node")
    level = ours.level
    try:
        ours.setLevel(logging.ERROR)
        for name in (
            "caal_node.models",
            "caal_node.room.cues",
            mcp_bridge.connection.manager.__name__,
        ):
            assert logging.getLogger(name).getEffectiveLevel() == logging.ERROR, name
    finally:
        ours.setLevel(level)
