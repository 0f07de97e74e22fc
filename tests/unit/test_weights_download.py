"""A weight gets into the cache whole and right, or not at all."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.weights import cache, ensure, present
from caal_node.weights.catalogue import Weight, WeightFile
from caal_node.weights.sources import ProgressCallback, WeightSource
from tests.weights_stand_ins import StandInSource, weight, weight_file

CONTENT = b"the right bytes, all of them"
TOY = weight(weight_file("model.bin", CONTENT), entry="model.bin")


def quiet() -> Console:
    return Console(quiet=True)


def only(*sources: StandInSource) -> Mapping[str, WeightSource]:
    return {source.name: source for source in sources}


def files_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "toy").iterdir()}


def test_the_file_is_there_under_its_own_name(tmp_path: Path) -> None:
    source = StandInSource("a", {"model.bin": CONTENT})
    path = ensure(TOY, console=quiet(), folder=tmp_path, sources=only(source))
    assert path.read_bytes() == CONTENT
    assert files_in(tmp_path) == {"model.bin"}


def test_what_is_in_the_cache_is_not_fetched_again(tmp_path: Path) -> None:
    source = StandInSource("a", {"model.bin": CONTENT})
    for _ in range(2):
        ensure(TOY, console=quiet(), folder=tmp_path, sources=only(source))
    assert source.asked == ["model.bin"]
    assert present(TOY, folder=tmp_path) == tmp_path / "toy" / "model.bin"


def test_wrong_bytes_are_removed_and_the_next_source_is_asked(tmp_path: Path) -> None:
    bad = StandInSource("a", {"model.bin": CONTENT[::-1]})
    good = StandInSource("b", {"model.bin": CONTENT})
    path = ensure(TOY, console=quiet(), folder=tmp_path, sources=only(bad, good))
    assert path.read_bytes() == CONTENT
    assert files_in(tmp_path) == {"model.bin"}


def test_no_source_with_the_right_bytes_is_one_line_that_names_each_reason(tmp_path: Path) -> None:
    sources = only(StandInSource("here", {"model.bin": CONTENT[::-1]}), StandInSource("there", {}))
    with pytest.raises(ConfigError) as caught:
        ensure(TOY, console=quiet(), folder=tmp_path, sources=sources)
    message = str(caught.value)
    assert "here: model.bin has the wrong SHA-256" in message
    assert "there: not there" in message
    assert "HF_ENDPOINT" in message
    assert "\n" not in message
    assert files_in(tmp_path) == set()
    assert present(TOY, folder=tmp_path) is None


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"!"], ids=["short", "long"])
def test_a_file_of_another_length_is_refused(tmp_path: Path, content: bytes) -> None:
    source = StandInSource("a", {"model.bin": content})
    with pytest.raises(ConfigError, match="bytes"):
        ensure(
            TOY,
            console=quiet(),
            folder=tmp_path,
            sources=only(source),
        )
    assert files_in(tmp_path) == set()


def test_a_source_that_failed_is_not_asked_for_the_next_file(tmp_path: Path) -> None:
    two = weight(weight_file("a", b"a"), weight_file("b", b"b"))
    down, up = StandInSource("down", {}), StandInSource("up", {"a": b"a", "b": b"b"})
    folder = ensure(two, console=quiet(), folder=tmp_path, sources=only(down, up))
    assert folder == tmp_path / "toy"
    assert (down.asked, up.asked) == (["a"], ["a", "b"])


def test_only_the_missing_files_are_fetched(tmp_path: Path) -> None:
    two = weight(weight_file("a", b"a"), weight_file("b", b"b"))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "a").write_bytes(b"a")
    source = StandInSource("s", {"a": b"a", "b": b"b"})
    ensure(two, console=quiet(), folder=tmp_path, sources=only(source))
    assert source.asked == ["b"]


def test_what_an_interrupted_run_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "toy" / "partial-a1b2" / "packages").mkdir(parents=True)
    (tmp_path / "toy" / "partial-a1b2" / "packages" / "model.bin").write_bytes(b"half")
    ensure(
        TOY,
        console=quiet(),
        folder=tmp_path,
        sources=only(StandInSource("a", {"model.bin": CONTENT})),
    )
    assert files_in(tmp_path) == {"model.bin"}


def test_an_interrupt_leaves_no_file(tmp_path: Path) -> None:
    class Interrupted(StandInSource):
        def __call__(
            self, weight: Weight, file: WeightFile, folder: Path, progress: ProgressCallback
        ) -> Path:
            (folder / file.name).write_bytes(CONTENT[:4])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure(TOY, console=quiet(), folder=tmp_path, sources=only(Interrupted("a", {})))
    assert files_in(tmp_path) == set()


def test_size_and_licence_are_told_before_the_first_byte(tmp_path: Path) -> None:
    told: list[str] = []
    with (tmp_path / "out").open("w+") as out:
        console = Console(file=out, width=200)

        class Listening(StandInSource):
            def __call__(
                self, weight: Weight, file: WeightFile, folder: Path, progress: ProgressCallback
            ) -> Path:
                out.flush()
                told.append((tmp_path / "out").read_text())
                return super().__call__(weight, file, folder, progress)

        source = Listening("a", {"model.bin": CONTENT})
        ensure(TOY, console=console, folder=tmp_path, sources=only(source))
    assert "Fetching Toy: 0 MB, licence CC0-1.0" in told[0]


def test_a_full_disk_before_the_start_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def nearly_full(_: object) -> SimpleNamespace:
        return SimpleNamespace(free=1_000_000)

    monkeypatch.setattr(shutil, "disk_usage", nearly_full)
    source = StandInSource("a", {"model.bin": CONTENT})
    with pytest.raises(ConfigError, match=r"300 MB needed, 1 MB free.*CAAL_CACHE"):
        ensure(TOY, console=quiet(), folder=tmp_path, sources=only(source))
    assert source.asked == []


def test_a_disk_that_fills_up_names_the_way_out(tmp_path: Path) -> None:
    class Filling(StandInSource):
        def __call__(
            self, weight: Weight, file: WeightFile, folder: Path, progress: ProgressCallback
        ) -> Path:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ConfigError, match=r"the disk is full.*CAAL_CACHE"):
        ensure(TOY, console=quiet(), folder=tmp_path, sources=only(Filling("a", {})))
    assert files_in(tmp_path) == set()


def test_a_cache_that_cannot_be_made_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be written.*CAAL_CACHE"):
        ensure(TOY, console=quiet(), folder=tmp_path / "file" / "cache", sources=only())


def test_two_runs_at_once_fetch_once(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(StandInSource):
        def __call__(
            self, weight: Weight, file: WeightFile, folder: Path, progress: ProgressCallback
        ) -> Path:
            begun.set()
            assert go_on.wait(10)
            return super().__call__(weight, file, folder, progress)

    slow, other = Slow("a", {"model.bin": CONTENT}), StandInSource("b", {"model.bin": CONTENT})
    found: list[Path] = []

    def run(source: StandInSource) -> None:
        found.append(ensure(TOY, console=quiet(), folder=tmp_path, sources=only(source)))

    first = threading.Thread(target=run, args=(slow,))
    first.start()
    assert begun.wait(10)
    second = threading.Thread(target=run, args=(other,))
    second.start()
    go_on.set()
    first.join(10)
    second.join(10)
    assert [path.read_bytes() for path in found] == [CONTENT, CONTENT]
    assert other.asked == []


def test_a_lock_held_too_long_is_said(tmp_path: Path) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache.locked("toy", tmp_path):
            held.set()
            assert done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    try:
        with (
            pytest.raises(ConfigError, match="held by another run"),
            cache.locked("toy", tmp_path, deadline_s=0),
        ):
            pass
    finally:
        done.set()
        holder.join(10)


@given(content=st.binary(min_size=1, max_size=300), at=st.integers(0, 299))
def test_one_wrong_byte_is_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, at: int
) -> None:
    folder = tmp_path_factory.mktemp("w")
    toy = weight(weight_file("f", content), entry="f")
    wrong = bytearray(content)
    wrong[at % len(content)] ^= 1
    with pytest.raises(ConfigError, match="SHA-256"):
        ensure(toy, console=quiet(), folder=folder, sources=only(StandInSource("s", {"f": wrong})))


def test_the_cache_is_where_the_setting_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    assert cache.weights() == tmp_path / "weights"
    monkeypatch.delenv("CAAL_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.weights() == tmp_path / "xdg" / "caal-node" / "weights"
