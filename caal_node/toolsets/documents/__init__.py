"""The toolset `documents`: answers from the notes and documents in the owner's folders.

Its tools ask, search, and write a note.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import count, islice
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import Field

from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke, ToolUnavailable
from caal_node.core.events import Source, SourcesCited
from caal_node.core.tool_spec import Answers
from caal_node.tools.effects import CallTerms, terms_of, with_terms
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import (
    ConfiguredToolset,
    OptionPath,
    ToolsetOptions,
    ToolsetServices,
    tool,
)
from caal_node.toolsets.documents.passage_index import (
    IndexedDocument,
    PassageIndex,
    PassageMatch,
    PassageSearch,
)
from caal_node.toolsets.edited_file import new_text
from caal_node.toolsets.local_files.allowed_files import (
    AllowedFolders,
    AllowedPath,
    Folders,
    read_passages,
    require_pypdf,
)
from caal_node.toolsets.local_files.file_text import MARKDOWN, PDF, PLAIN, NoText, Passage
from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.embedding.embedders import Embedder

# Writes a new note as a Markdown file, and never over another one.

MAX_TITLE_CHARS: Final = 60
TITLE_WORDS: Final = 6
"""Words of a note that become its title where nobody has said one."""
MAX_SAME: Final = 100
"""Notes of one title. Their names get numbers."""
_NOT_IN_NAMES: Final = re.compile(r"[^\w ,'()+&-]+")
_SPACE: Final = re.compile(r"\s+")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
"""Names that are devices on Windows."""


def title_of(title: str, text: str) -> str:
    """Return a note's title, as a file may be called: what was said, else its first words."""
    said = title if title.strip() else " ".join(text.split()[:TITLE_WORDS])
    plain = _SPACE.sub(" ", _NOT_IN_NAMES.sub(" ", said)).strip(" .,'")[:MAX_TITLE_CHARS].strip()
    if not plain or _RESERVED.fullmatch(plain):
        return f"Note {plain}".strip()
    return plain[0].upper() + plain[1:]


def write_note(folder: Path, title: str, text: str) -> Path:
    """Write a note into `folder`, which is made if it is missing, and return its path.

    Raises:
        OSError: It cannot be written.
    """
    names = (f"{title}.md" if number == 1 else f"{title} {number}.md" for number in count(1))
    for name in islice(names, MAX_SAME):
        try:
            new_text(folder / name, f"# {title}\n\n{text.strip()}\n", private=True)
        except FileExistsError:
            continue
        return folder / name
    raise FileExistsError(f"there are {MAX_SAME} notes of this title")


# Keeps the index as the folders are: all of them at the start, then whatever changes.
#
# One task owns it, from the toolset's setup to its close. Files that change are read again, those
# that are gone are forgotten, and passages get their vectors when nothing else is to be done.

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


T = TypeVar("T")

Mode = Literal["documents_first", "answer_first"]

ANSWER_PASSAGES: Final = 3
"""Passages that an answer is made of: 600 tokens, which a small model reads in two seconds."""
SEARCHED_PASSAGES: Final = 24
LISTED: Final = 5
"""Documents that a search lists: a person remembers as many that are read out."""
SNIPPET_CHARS: Final = 160
QUESTION_CHARS: Final = 1_000
NOTE_CHARS: Final = 20_000
CHECK_S: Final = 8.0
"""Seconds that a check reads; a large folder takes minutes, and what was read stays."""
FIRST_LOOK_S: Final = 5.0
"""Seconds that a question waits for the first look through the folders."""
NAMED_PROBLEMS: Final = 3

_ANSWERS: Final[Mapping[Mode, Answers]] = {"documents_first": "first", "answer_first": "unsure"}

NOTHING: Final = "I found nothing about that in your documents."
STILL_READING: Final = "I'm still reading your documents. Please ask me again in a minute."
UNREADABLE: Final = "I can't look into your documents right now."
NOT_WRITTEN: Final = "I couldn't write that note."
HOW: Final = "Answer from these texts alone and name the source. If they do not say, say so."
NONE_HERE: Final = "The documents say nothing about it. Say so, or use another tool."


class DocumentsOptions(ToolsetOptions):
    folders: Folders = Field(
        min_length=1,
        max_length=32,
        description="The folders with your notes and documents, separated by commas",
    )
    notes: OptionPath | None = Field(
        default=None, description="The folder for new notes; the first of the folders if not said"
    )
    mode: Mode = Field(
        default="answer_first",
        description="documents_first (answers come from the documents alone) or answer_first "
        "(they are looked up where the model would guess)",
    )


class Documents(ConfiguredToolset):
    """See docs/toolsets.md."""

    NAME: ClassVar[str] = "documents"
    SUMMARY: ClassVar[str] = (
        "Answers from your notes, manuals and other documents, and writes notes."
    )
    EXTRA: ClassVar[str] = "documents"
    Options = DocumentsOptions

    def __init__(
        self, options: DocumentsOptions | None = None, services: ToolsetServices | None = None
    ) -> None:
        super().__init__(options, services)
        chosen: DocumentsOptions = self.options
        asking: Any = next(each for each in self.tools if each.id == "ask_documents")
        terms = terms_of(asking) or CallTerms()
        with_terms(asking, replace(terms, answers=_ANSWERS[chosen.mode]))
        self._notes: Final = chosen.notes or chosen.folders[0]
        inside = any(self._notes.is_relative_to(folder) for folder in chosen.folders)
        self._paths: Final = chosen.folders if inside else (*chosen.folders, self._notes)
        self._folders: Final = AllowedFolders(self._paths)
        self._index: Final = PassageIndex(self.services.state / _index_name(self._paths))
        self._search: Final = PassageSearch(self._index, self.services.embedder)
        self._upkeep = self._new_upkeep()
        self._task: asyncio.Task[None] | None = None

    async def setup(self) -> Self:
        """Begin to read the folders, and to follow their changes."""
        await super().setup()
        if self._task is None:
            self._upkeep = self._new_upkeep()
            self._task = asyncio.create_task(self._upkeep.run(), name="documents")
            self._task.add_done_callback(_log_failure)
        return self

    async def aclose(self) -> None:
        """End the reading; what was read stays on disk for the next time."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):  # it was logged
                await task
        await super().aclose()

    async def check(self) -> str:
        """See `ConfiguredToolset.check`: it reads what is in the folders."""
        missing = await asyncio.to_thread(lambda: self._folders.missing)
        if gone := [
            path for path in missing if path != self._notes or path in self.options.folders
        ]:
            raise ConfigError(f"{gone[0]}: there is no such folder; make it, or correct `folders`.")
        await asyncio.to_thread(require_pypdf)
        if await asyncio.to_thread(importlib.util.find_spec, "watchfiles") is None:
            raise ConfigError('to follow changes, run: pip install "caal-node[documents]".')
        later = ""
        try:
            try:
                async with asyncio.timeout(CHECK_S):
                    await self._upkeep.look_through()
            except TimeoutError:
                later = " so far; the rest is read when an agent runs"
            found = (await asyncio.to_thread(self._index.documents)).values()
            passages = await asyncio.to_thread(self._index.count)
        except OSError as error:
            raise ConfigError(f"the index of documents cannot be written: {error}") from error
        bad = [f"{each.shown} ({each.problem})" for each in found if each.problem]
        more = f" and {len(bad) - NAMED_PROBLEMS} more" if len(bad) > NAMED_PROBLEMS else ""
        faults = f"; cannot be read: {', '.join(bad[:NAMED_PROBLEMS])}{more}" if bad else ""
        read = counted(len(found) - len(bad), "document")
        return f"{read}, {counted(passages, 'passage')}{later}{faults}"

    @tool("read")
    async def ask_documents(self, question: str) -> Any:
        """Answer a question from the household's manuals, notes and documents.

        Args:
            question: the whole question
        Example: how do I bleed the radiators -> {"question": "how do I bleed the radiators"}
        Example: does the lease allow pets -> {"question": "does the lease allow pets"}
        """
        matches = await self._found(question, ANSWER_PASSAGES)
        if not matches:
            if self.options.mode == "documents_first":
                return VerbatimResult({"answer_from": [], "note": NONE_HERE}, NOTHING)
            return {"answer_from": [], "note": NONE_HERE}
        texts = [{"source": source_of(each), "text": each.found.passage.text} for each in matches]
        self.services.emit(SourcesCited("ask_documents", tuple(map(_cited, matches))))
        return {"answer_from": texts, "note": HOW}

    @tool("read")
    async def search_notes(self, words: str = "") -> Any:
        """List the titles of notes and documents about something.

        Args:
            words: what they are about; empty for the newest ones
        Example: which notes do I have about the garden -> {"words": "garden"}
        Example: show me my newest notes -> {"words": ""}
        """
        if words.strip():
            matches = await self._found(words, SEARCHED_PASSAGES)
            by_path = {each.found.document.path: each for each in reversed(matches)}
            first = list(reversed(by_path.values()))[:LISTED]
            rows = [self._row(one.found.document, one.found.passage.text) for one in first]
        else:
            documents = self._index.documents
            every = (await self._reading(lambda: asyncio.to_thread(documents))).values()
            newest = sorted(every, key=lambda each: -each.changed_ns)
            rows = [self._row(each) for each in newest if not each.problem][:LISTED]
        if not rows:
            return VerbatimResult(rows, NOTHING)
        return VerbatimResult(rows, _titles([row["title"] for row in rows]))

    @tool("write", text_chars=NOTE_CHARS)
    async def notes_create(self, text: str, title: str = "") -> Any:
        """Write a new note into the household's notes.

        Args:
            text: what the note says
            title: its title, if one was said
        Example: make a note that the key is at Ida's -> {"text": "The key is at Ida's"}
        Example: new note called garden, plant bulbs -> {"title": "garden", "text": "plant bulbs"}
        """
        if not text.strip():
            raise InvalidArguments("Ask what the note is to say.")
        called = title_of(title, text)
        try:
            path = await asyncio.to_thread(write_note, self._notes, called, text)
            await self._upkeep.look_through()
        except OSError as error:
            raise _said(ToolBroke("The note cannot be written."), NOT_WRITTEN) from error
        return VerbatimResult(
            {"note": path.stem, "file": path.name}, f"I made a note: {path.stem}."
        )

    async def _found(self, question: str, limit: int) -> list[PassageMatch]:
        if not question.strip():
            raise InvalidArguments("Say what is asked.")
        words = question[:QUESTION_CHARS]
        return await self._reading(lambda: self._search.search(words, limit))

    async def _ready(self) -> None:
        """Wait until the folders were looked through once; an index of an earlier time will do."""
        try:
            if self._task is None:
                await self._upkeep.look_through()
                return
            async with asyncio.timeout(FIRST_LOOK_S):
                await self._upkeep.looked_through.wait()
                if self._upkeep.is_behind:
                    await self._upkeep.look_through()
        except TimeoutError:
            if not await asyncio.to_thread(self._index.count):
                raise _said(
                    ToolUnavailable("The documents are still being read."), STILL_READING
                ) from None
        except OSError as error:
            raise _said(ToolUnavailable("The index cannot be written."), UNREADABLE) from error

    async def _reading(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read the index; once more where it was found damaged, and the folders are read anew."""
        await self._ready()
        try:
            found = await read()
            if self._upkeep.is_behind:
                await self._ready()
                found = await read()
        except OSError as error:
            raise _said(ToolUnavailable("The index cannot be read."), UNREADABLE) from error
        return found

    def _row(self, document: IndexedDocument, text: str = "") -> dict[str, str]:
        day = datetime.fromtimestamp(document.changed_ns / 1e9, self.services.timezone).date()
        row = {"title": document.title, "file": document.shown, "changed": day.isoformat()}
        snippet = " ".join(text.split())[:SNIPPET_CHARS]
        return row | ({"says": snippet} if snippet else {})

    def _new_upkeep(self) -> IndexUpkeep:
        return IndexUpkeep(self._folders, self._index, self.services.embedder, self._search.changed)


def source_of(match: PassageMatch) -> str:
    """Return how a person finds a passage: "Boiler manual, page 12"."""
    title, place = match.found.document.title, match.found.passage.place
    return f"{title}, {place}" if place and place.casefold() != title.casefold() else title


def _cited(match: PassageMatch) -> Source:
    shown = match.found.document.shown
    return Source(source_of(match), shown, shown.partition("/")[0])


def _titles(titles: Sequence[str]) -> str:
    if len(titles) == 1:
        return f"I found one: {titles[0]}."
    return f"I found {len(titles)}: {', '.join(titles[:-1])} and {titles[-1]}."


def _index_name(folders: Sequence[Path]) -> str:
    """Name the index by its folders, so that agents with others do not forget each other's."""
    digest = hashlib.sha256("\n".join(map(str, folders)).encode(errors="replace"))
    return f"index-{digest.hexdigest()[:12]}.db"


def _said(failure: ToolUnavailable | ToolBroke, words: str) -> ToolUnavailable | ToolBroke:
    failure.words = words
    return failure


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the documents are not followed any more", exc_info=error)
