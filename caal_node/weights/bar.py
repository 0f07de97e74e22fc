"""One progress bar over all files of a weight."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from caal_node.weights.catalogue import WeightFile


class Bar:
    """Shows which source is in use and how many bytes of all are there."""

    def __init__(self, console: Console, total: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task("", total=total)
        self._before = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def source(self, name: str) -> None:
        self._progress.update(self._task, description=f"from {name}")

    def advance(self, so_far: int) -> None:
        """`so_far`: bytes of the file being fetched."""
        self._progress.update(self._task, completed=self._before + so_far)

    def finished(self, file: WeightFile) -> None:
        self._before += file.size
