"""The demo says all that it lacks before it builds, fetches or starts anything."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from caal_node import weights
from caal_node.cli.demo import app
from caal_node.cli.demo.app import check_all, require_all
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from tests.stand_ins.stand_in_model import StandInModel
from tests.stand_ins.weights_stand_ins import LoopbackHub

NOBODY = Settings(ollama_host="http://127.0.0.1:9")
PLENTY = 1 << 40


@pytest.fixture(autouse=True)
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, no Go, a machine with room, and no way to any index."""
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path / "no" / "cache" / "yet"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(app, "find_server", lambda: None)
    give(monkeypatch, disk=PLENTY, memory=PLENTY)


def give(monkeypatch: pytest.MonkeyPatch, *, disk: int, memory: int, go: bool = False) -> None:
    monkeypatch.setattr(app.shutil, "disk_usage", lambda _: SimpleNamespace(free=disk))
    available = SimpleNamespace(available=memory)
    monkeypatch.setattr(app.psutil, "virtual_memory", lambda: available)
    monkeypatch.setattr(app.shutil, "which", lambda _: "go" if go else None)


async def statuses(out: Path, settings: Settings = NOBODY) -> dict[str, str]:
    found = await check_all(settings, out, use_room=True)
    return {each.name: each.status for each in found}


async def test_a_hub_that_answers_is_enough_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackHub({}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert set((await statuses(tmp_path)).values()) == {"ok"}
        assert await require_all(NOBODY, tmp_path, use_room=True) == []


async def test_everything_that_is_missing_is_said_at_once_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, disk=100_000_000, memory=PLENTY)
    monkeypatch.setattr(app, "find_spec", lambda _: None)
    with pytest.raises(ConfigError) as caught:
        await require_all(NOBODY, tmp_path / "none", use_room=False)
    extras, disk, out, network = str(caught.value).splitlines()
    assert "xllamacpp" in extras
    assert 'pip install "caal-node[demo]"' in extras
    assert "100 MB free" in disk
    assert "CAAL_CACHE" in disk
    assert "mkdir -p" in out
    assert "the model hub does not answer" in network
    assert "HF_ENDPOINT" in network
    assert not (tmp_path / "no").exists()  # nothing was made


async def test_what_is_in_the_cache_and_an_ollama_with_tools_need_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "present", lambda _: tmp_path)
    give(monkeypatch, disk=RECORDING, memory=PLENTY)
    async with StandInModel() as server:
        found = await statuses(tmp_path, Settings(ollama_host=server.url))
    assert set(found.values()) == {"ok"}
    assert "network" not in found


RECORDING = app.RECORDING_BYTES


async def test_a_build_with_go_needs_its_own_room_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "present", lambda _: tmp_path)
    give(monkeypatch, disk=app.BUILD_BYTES - 1, memory=PLENTY, go=True)
    assert (await statuses(tmp_path))["disk"] == "fail"
    give(monkeypatch, disk=app.BUILD_BYTES, memory=PLENTY, go=True)
    assert (await statuses(tmp_path))["disk"] == "ok"


@pytest.mark.parametrize(("memory", "status"), [(0.4, "fail"), (0.8, "warn"), (1.0, "ok")])
async def test_little_memory_is_a_remark_and_far_too_little_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: float, status: str
) -> None:
    needed = app.MEMORY_BYTES + 2 * app.WEIGHT.size
    give(monkeypatch, disk=PLENTY, memory=round(memory * needed))
    assert (await statuses(tmp_path))["memory"] == status


async def test_a_loopback_without_ports_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> Any:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(weights, "present", lambda _: tmp_path)
    monkeypatch.setattr(app.socket, "socket", refused)
    found = [each for each in await check_all(NOBODY, tmp_path, use_room=True) if each.fix]
    assert [each.name for each in found] == ["ports"]
    assert "--no-room" in found[0].fix


async def test_the_demo_itself_begins_nothing_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[Sequence[object]] = []

    def begin(*arguments: object, **_: object) -> None:
        began.append(arguments)

    for name in ("obtain_server", "fetch_local", "choose_model"):
        monkeypatch.setattr(app, name, begin)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    with pytest.raises(ConfigError, match="to fetch"):
        await app.run_demo(tmp_path, use_room=True)
    assert not began
