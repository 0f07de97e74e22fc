"""Keeps the index as the folders are: all of them at the start, then whatever changes.

One task owns it, from the toolset's setup to its close. Files that change are read again, those
that are gone are forgotten, and passages get their vectors when nothing else is to be done.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from caal_node.toolsets.documents.passage_index import IndexedDocument, PassageIndex
from caal_node.toolsets.local_files.allowed_folders import AllowedFolders, AllowedPath
from caal_node.toolsets.local_files.file_text import MARKDOWN, PDF, PLAIN, NoText
from caal_node.toolsets.local_files.passages import Passage
from caal_node.toolsets.local_files.reader import read_passages
from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.embedding.base import Embedder

logger = logging.getLogger("caal_node.toolsets.documents")

ENDINGS: Final = MARKDOWN | PLAIN | {PDF}
BATCH: Final = 4
"""Passages that are embedded at once: a question waits for one batch at most, half a second."""
BATCH_S: Final = 60.0
"""Seconds for a batch: a server may have to load the model first."""
WATCH_MS: Final = 2_000
"""Milliseconds of one wait for changes; by the end of the first one the watch stands."""
AGAIN_S: Final = 60.0
"""Seconds after which the folders are looked through again where changes cannot be watched, and an
embedding that failed is tried again."""


class IndexUpkeep:
    """Reads what has changed into the index.

    Args:
        changed: It is called, on the event loop, after each change of the index.
    """

    def __init__(
        self,
        folders: AllowedFolders,
        index: PassageIndex,
        embedder: Embedder | None,
        changed: Callable[[], None],
    ) -> None:
        self._folders: Final = folders
        self._index: Final = index
        self._embedder: Final = embedder
        self._changed: Final = changed
        self._one_at_a_time: Final = asyncio.Lock()
        self.looked_through: Final = asyncio.Event()
        """It is set once all folders were looked through."""
        self._losses = 0
        """Those of the index from before all folders were looked through."""
        self._without_vectors: Final = asyncio.Event()
        """It is set while there may be passages without vectors."""

    @property
    def is_behind(self) -> bool:
        """Whether the index has lost what was read into it."""
        return self._index.losses != self._losses

    async def run(self) -> None:
        """Work until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            if self._embedder is not None:
                tasks.create_task(self._embed(self._embedder))

    async def look_through(self) -> None:
        """Read every file that has changed since, and forget those that are gone.

        Raises:
            OSError: The index cannot be written.
        """
        async with self._one_at_a_time:
            files = await asyncio.to_thread(self._files)
            known = await asyncio.to_thread(self._index.documents)
            losses = self._index.losses
            if gone := [path for path in known if path not in files]:
                await asyncio.to_thread(self._index.remove, gone)
                self._changed()
            for path, file in files.items():
                old = known.get(path)
                if old is None or (old.size, old.changed_ns) != (file.size, file.changed_ns):
                    await self._read(file)
            self._losses = losses
        self.looked_through.set()

    def _files(self) -> dict[str, AllowedPath]:
        return {
            str(each.real): each
            for each in self._folders.walk()
            if not each.is_folder and each.real.suffix.lower() in ENDINGS
        }

    async def _read(self, file: AllowedPath) -> None:
        facts = (str(file.real), file.shown)
        stamp = (file.size, file.changed_ns)
        try:
            document = await read_passages(file)
            passages: Sequence[Passage] = document.passages
            entry = IndexedDocument(*facts, document.title, *stamp)
        except (NoText, OSError) as error:
            why = str(error) if isinstance(error, NoText) else error.strerror or "it cannot be read"
            passages, entry = (), IndexedDocument(*facts, file.name, *stamp, why)
        await asyncio.to_thread(self._index.put, entry, passages)
        self._changed()
        self._without_vectors.set()

    async def _follow(self) -> None:
        while True:
            with suppress(OSError):
                await self._look_through_logged()
            try:
                async for _ in _changes(await asyncio.to_thread(self._watchable)):
                    await self._look_through_logged()
            except (OSError, RuntimeError) as error:
                # Folders that are missing or on a network, and full tables of watches.
                logger.info("folders are looked through every minute (%s)", type(error).__name__)
            await asyncio.sleep(AGAIN_S)

    def _watchable(self) -> list[Path]:
        """Return the folders. Raises OSError where one is missing, as its coming is not seen."""
        roots = self._folders.roots()
        if len(roots) < len(self._folders.names):
            raise FileNotFoundError("a folder is missing")
        return [root.real for root in roots]

    async def _look_through_logged(self) -> None:
        try:
            await self.look_through()
        except OSError as error:
            logger.warning("the index of documents cannot be kept (%s)", error.strerror or error)
            raise

    async def _embed(self, embedder: Embedder) -> None:
        await self.looked_through.wait()
        self._without_vectors.set()  # an earlier session may have left some
        while True:
            await self._without_vectors.wait()
            self._without_vectors.clear()
            try:
                await self.embed_all(embedder)
            except (EmbeddingUnavailable, TimeoutError, OSError) as error:
                logger.info("passages wait for their vectors (%s)", type(error).__name__)
                await asyncio.sleep(AGAIN_S)
                self._without_vectors.set()

    async def embed_all(self, embedder: Embedder) -> None:
        """Make the vectors that are missing.

        Raises:
            EmbeddingUnavailable, TimeoutError, OSError: They cannot be made, or kept.
        """
        while True:
            work = await asyncio.to_thread(self._index.without_vector, embedder.name, BATCH)
            if not work:
                return
            async with asyncio.timeout(BATCH_S):
                rows = await embedder.embed([text for _, text in work])
            vectors: dict[int, Any] = {one: row for (one, _), row in zip(work, rows, strict=True)}
            await asyncio.to_thread(self._index.add_vectors, embedder.name, vectors)
            self._changed()


async def _changes(folders: Sequence[Path]) -> AsyncIterator[None]:
    """Yield whenever something in the folders has changed. Raises OSError if they can't be.

    It yields once when the watch stands, as changes before that were seen by nobody.
    """
    try:
        watchfiles = await asyncio.to_thread(importlib.import_module, "watchfiles")
    except ImportError:
        raise OSError("watchfiles is not installed") from None
    stop, first = asyncio.Event(), True
    try:
        async for changes in watchfiles.awatch(
            *folders,
            stop_event=stop,
            ignore_permission_denied=True,
            rust_timeout=WATCH_MS,
            yield_on_timeout=True,
        ):
            if changes or first:
                first = False
                yield None
    finally:
        stop.set()
