"""The passages of all documents on disk: one SQLite file with a full-text index and the vectors.

It can be made anew of the documents at any time, so that a damaged file, or one of another version,
is thrown away. All calls block, so they belong in a thread; each opens the file and closes it, so
that processes side by side share it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from caal_node.core.private_database import is_damage, open_database
from caal_node.toolsets.local_files.file_text import Passage
from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.embedding.embedders import Embedder, Vectors

# Finds the passages that answer a question, by its words and, where an embedding is on, by what it
# means; and says where there are none.
#
# A search by words alone finds something for every question that has a common word. So a passage
# counts only if it has enough of what the question is about, or means nearly the same. The two
# limits were chosen on labelled questions (`tests/data/documents/questions.json`).

# The words of a question that say what it is about.
#
# They are searched for as they were said: the index makes its own stems of them, and of the texts.

MAX_WORDS: Final = 24
"""Words of a question that are searched for, the first ones."""
MAX_CHARS: Final = 1_000
_WORD: Final = re.compile(r"[^\W_]+")
_APOSTROPHE: Final = re.compile(r"(?<=\w)['’](?:s|d|re|ll|ve|m|t)\b", re.IGNORECASE)
_SMALL_WORDS: Final = frozenset(
    """a about according all also am an and any are as at be been being but by can could did do does
    documents document file files find for from get give had has have he her here him his how i if
    in into is it its just know let like look lookup manual many may me mean mention mentions might
    much must my need note notes of on or our out paper papers please read say says search she
    should show so some something tell than that the their them then there these they thing things
    this those to told up us use used using want was we were what whats when where which who whose
    why will with would write written wrote you your""".split()  # noqa: SIM905 - a list of words reads better as words
)


def question_words(question: str) -> list[str]:
    """Return the words that matter, each once, in their order and in lower case.

    A question of nothing but small words ("what is in my notes?") has none.
    """
    text = _APOSTROPHE.sub("", question[:MAX_CHARS]).casefold()
    found = (word for word in _WORD.findall(text) if word not in _SMALL_WORDS)
    return [word for word in dict.fromkeys(found) if len(word) > 1 or word.isdigit()][:MAX_WORDS]


logger = logging.getLogger("caal_node.toolsets.documents")

MIN_COVERED: Final = 0.5
"""The share of a question's words, weighted by rarity, from which a passage is about it."""
MIN_COVERED_ALONE: Final = 0.37
"""The same where no vector says anything: so "what is our wifi called" is found by its one word."""
MIN_COSINE: Final = 0.36
"""The cosine to a question from which a passage is about it, whatever its words."""
EMBED_S: Final = 2.0
"""Seconds that a question's vector is waited for, behind a batch of passages that takes half a
second on a slow core. Without it the words decide."""


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """A passage that is about a question."""

    found: FoundPassage
    score: float
    """More is better; only good for an order."""


class PassageSearch:
    """Searches one index. It holds the vectors in memory once they were needed."""

    def __init__(self, index: PassageIndex, embedder: Embedder | None) -> None:
        self._index: Final = index
        self._embedder: Final = embedder
        self._vectors: tuple[list[int], Vectors] | None = None

    def changed(self) -> None:
        """Take note that the index has changed, so that vectors are read again."""
        self._vectors = None

    async def search(self, question: str, limit: int) -> list[PassageMatch]:
        """Return at most `limit` passages, best first; none if nothing is about the question.

        Raises:
            OSError: The index cannot be read.
        """
        words = question_words(question)
        asked = await self._asked(question)
        return await asyncio.to_thread(self._matches, words, asked, limit)

    async def _asked(self, question: str) -> Vectors | None:
        if self._embedder is None:
            return None
        try:
            async with asyncio.timeout(EMBED_S):
                return (await self._embedder.embed([question]))[0]
        except (TimeoutError, EmbeddingUnavailable) as error:
            logger.info("documents are searched by words alone (%s)", type(error).__name__)
            return None

    def _matches(
        self, words: Sequence[str], asked: Vectors | None, limit: int
    ) -> list[PassageMatch]:
        found = {each.id: each for each in self._index.by_words(words)}
        cosines = self._cosines(asked)
        near = sorted(cosines, key=lambda one: -cosines[one])[:CANDIDATES]
        missing = [one for one in near if one not in found and cosines[one] >= MIN_COSINE]
        found |= {each.id: each for each in self._index.by_ids(missing, words)}
        best = max((each.bm25 for each in found.values()), default=0.0) or 1.0
        matches = [
            PassageMatch(
                each, each.covered + each.bm25 / best / 2 + max(0.0, cosines.get(each.id, 0.0))
            )
            for each in found.values()
            if _is_about(each.covered, cosines.get(each.id))
        ]
        return sorted(matches, key=lambda match: (-match.score, match.found.id))[:limit]

    def _cosines(self, asked: Vectors | None) -> dict[int, float]:
        if asked is None or self._embedder is None:
            return {}
        vectors = self._vectors
        if vectors is None:
            vectors = self._vectors = self._index.vectors(self._embedder.name)
        ids, rows = vectors
        if not ids or rows.shape[1] != len(asked):
            return {}
        products: Vectors = rows @ asked.astype(np.float32)
        return dict(zip(ids, products.tolist(), strict=True))


def _is_about(covered: float, cosine: float | None) -> bool:
    if cosine is None:
        return covered >= MIN_COVERED_ALONE
    return covered >= MIN_COVERED or cosine >= MIN_COSINE


T = TypeVar("T")

VERSION: Final = 1
"""The version of the tables; one more makes every index anew."""
MAX_PASSAGES: Final = 40_000
"""Passages of all documents: some 30 MB of text. Vectors of 384 numbers are 30 MB more."""
CANDIDATES: Final = 64
"""Passages that are looked at more closely for one question."""
_TITLE_WEIGHT, _PLACE_WEIGHT, _TEXT_WEIGHT = 3.0, 2.0, 1.0
"""How much a word counts in a title, a heading and the text."""
_TABLES: Final = f"""
CREATE TABLE document (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  shown TEXT NOT NULL,
  title TEXT NOT NULL,
  size INTEGER NOT NULL,
  changed_ns INTEGER NOT NULL,
  problem TEXT NOT NULL
);
CREATE TABLE passage (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  document INTEGER NOT NULL REFERENCES document(id),
  vector BLOB,
  embedder TEXT
);
CREATE INDEX passage_document ON passage(document);
CREATE VIRTUAL TABLE words USING fts5(
  title, place, text, tokenize = 'porter unicode61 remove_diacritics 2'
);
PRAGMA user_version = {VERSION};
"""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document as the index knows it."""

    path: str
    """Its real path."""
    shown: str
    title: str
    size: int
    """Bytes."""
    changed_ns: int
    problem: str = ""
    """Why it has no passages; "" if it could be read."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage with its document, and how well a question's words fit it."""

    id: int
    document: IndexedDocument
    passage: Passage
    bm25: float
    """SQLite's score, positive, more is better; 0.0 where no word fits."""
    covered: float
    """The share of the question's words that it has, each weighted by its rarity; from 0 to 1."""


class PassageIndex:
    """One file. Every method raises OSError where the disk cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.losses = 0
        """How often the file was damaged or old, and is empty since."""

    def documents(self) -> dict[str, IndexedDocument]:
        """Return every document by its real path."""
        rows = self._do(lambda at: at.execute(f"SELECT {_DOCUMENT} FROM document").fetchall())
        return {row[0]: IndexedDocument(*row) for row in rows}

    def count(self) -> int:
        """Return how many passages there are."""
        return int(self._do(lambda at: at.execute("SELECT count(*) FROM passage").fetchone()[0]))

    def put(self, document: IndexedDocument, passages: Sequence[Passage]) -> None:
        """Keep a document's passages, in place of those that it had."""

        def change(at: sqlite3.Connection) -> None:
            _forget(at, [document.path])
            room = MAX_PASSAGES - int(at.execute("SELECT count(*) FROM passage").fetchone()[0])
            row = (*_fields(document),)
            number = at.execute(
                "INSERT INTO document (path, shown, title, size, changed_ns, problem)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                row,
            ).lastrowid
            for passage in passages[: max(0, room)]:
                added = at.execute("INSERT INTO passage (document) VALUES (?)", (number,)).lastrowid
                at.execute(
                    "INSERT INTO words (rowid, title, place, text) VALUES (?, ?, ?, ?)",
                    (added, document.title, passage.place, passage.text),
                )

        self._do(change, write=True)

    def remove(self, paths: Iterable[str]) -> None:
        """Forget documents that are gone, by their real paths."""
        gone = list(paths)
        self._do(lambda at: _forget(at, gone), write=True)

    def by_words(self, words: Sequence[str]) -> list[FoundPassage]:
        """Return the passages that have most of `words`, at most `CANDIDATES`, best first."""
        return self._do(lambda at: _by_words(at, words)) if words else []

    def by_ids(self, ids: Sequence[int], words: Sequence[str]) -> list[FoundPassage]:
        """Return passages by their ids, those that are still there, judged by `words` too."""
        return self._do(lambda at: _judged(at, dict.fromkeys(ids, 0.0), words)) if ids else []

    def without_vector(self, embedder: str, limit: int) -> list[tuple[int, str]]:
        """Return ids and texts of passages that `embedder` has made no vector of."""
        return self._do(
            lambda at: at.execute(
                "SELECT id, title || char(10) || place || char(10) || text FROM passage"
                " JOIN words ON words.rowid = id"
                " WHERE embedder IS NOT ? ORDER BY id LIMIT ?",
                (embedder, limit),
            ).fetchall()
        )

    def add_vectors(self, embedder: str, vectors: Mapping[int, Vectors]) -> None:
        """Keep vectors, by their passages' ids; of passages that are gone they are dropped."""
        rows = [(row.astype("<f2").tobytes(), embedder, one) for one, row in vectors.items()]
        change = "UPDATE passage SET vector = ?, embedder = ? WHERE id = ?"
        self._do(lambda at: at.executemany(change, rows), write=True)

    def vectors(self, embedder: str) -> tuple[list[int], Vectors]:
        """Return the ids of the passages with a vector, and the vectors, of shape (ids, numbers).

        They are as they were made, but for the rounding of float16.
        """
        rows = self._do(
            lambda at: at.execute(
                "SELECT id, vector FROM passage WHERE embedder = ? ORDER BY id", (embedder,)
            ).fetchall()
        )
        length = len(rows[0][1]) if rows else 0
        same = [(one, blob) for one, blob in rows if len(blob) == length]
        numbers = np.frombuffer(b"".join(blob for _, blob in same), "<f2").astype(np.float32)
        return [one for one, _ in same], numbers.reshape(len(same), -1 if same else 0)

    def _do(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        """Do some work in one transaction; in a fresh file where the old one is damaged."""
        try:
            with self._open(write) as connection:
                return work(connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise OSError(f"{self.path}: {error}") from error
            logger.warning("the index %s is damaged or old; it is made anew", self.path.name)
            for each in self.path.parent.glob(f"{self.path.name}*"):
                each.unlink(missing_ok=True)
            self.losses += 1
        try:
            with self._open(write) as connection:
                return work(connection)
        except sqlite3.Error as error:
            raise OSError(f"{self.path}: {error}") from error

    @contextmanager
    def _open(self, write: bool) -> Generator[sqlite3.Connection]:
        with closing(open_database(self.path)) as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if _is_new(connection):
                if not write:
                    # SQLite lets nobody who has read wait for another one's write.
                    connection.execute("ROLLBACK")
                    connection.execute("BEGIN IMMEDIATE")
                if _is_new(connection):
                    for statement in filter(str.strip, _TABLES.split(";")):
                        connection.execute(statement)
            elif _version(connection) != VERSION:
                raise sqlite3.DatabaseError("another version")
            yield connection
            connection.execute("COMMIT")


def _is_new(connection: sqlite3.Connection) -> bool:
    """Say whether the file has no tables yet."""
    tables = connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    return tables is None and _version(connection) == 0


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


_DOCUMENT: Final = "path, shown, document.title, size, changed_ns, problem"


def _fields(document: IndexedDocument) -> tuple[str | int, ...]:
    return (
        *(document.path, document.shown, document.title),
        *(document.size, document.changed_ns, document.problem),
    )


def _forget(at: sqlite3.Connection, paths: Sequence[str]) -> None:
    for path in paths:
        inside = "SELECT id FROM passage WHERE document IN (SELECT id FROM document WHERE path = ?)"
        at.execute(f"DELETE FROM words WHERE rowid IN ({inside})", (path,))
        at.execute(f"DELETE FROM passage WHERE id IN ({inside})", (path,))
        at.execute("DELETE FROM document WHERE path = ?", (path,))


def _by_words(at: sqlite3.Connection, words: Sequence[str]) -> list[FoundPassage]:
    rows = at.execute(
        "SELECT rowid, -bm25(words, ?, ?, ?) AS score FROM words WHERE words MATCH ?"
        " ORDER BY score DESC LIMIT ?",
        (
            *(_TITLE_WEIGHT, _PLACE_WEIGHT, _TEXT_WEIGHT),
            *(" OR ".join(map(_quoted, words)), CANDIDATES),
        ),
    ).fetchall()
    return _judged(at, dict(rows), words)


def _judged(
    at: sqlite3.Connection, scores: Mapping[int, float], words: Sequence[str]
) -> list[FoundPassage]:
    total = int(at.execute("SELECT count(*) FROM words").fetchone()[0])
    places = ", ".join("?" * len(scores))
    covered = dict.fromkeys(scores, 0.0)
    whole = 0.0
    for word in words:
        match = _quoted(word)
        having = int(
            at.execute("SELECT count(*) FROM words WHERE words MATCH ?", (match,)).fetchone()[0]
        )
        # BM25's weight of a word that so many passages have; a word that none has counts most.
        weight = float(np.log1p((total - having + 0.5) / (having + 0.5)))
        whole += weight
        for (row,) in at.execute(
            f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({places})",
            (match, *scores),
        ):
            covered[row] += weight
    rows = at.execute(
        f"SELECT passage.id, {_DOCUMENT}, words.place, words.text FROM passage"
        " JOIN document ON document.id = passage.document JOIN words ON words.rowid = passage.id"
        f" WHERE passage.id IN ({places})",
        tuple(scores),
    ).fetchall()
    found = [
        FoundPassage(
            row[0],
            IndexedDocument(*row[1:7]),
            Passage(row[7], row[8]),
            scores[row[0]],
            covered[row[0]] / whole if whole else 0.0,
        )
        for row in rows
    ]
    return sorted(found, key=lambda each: (-each.bm25, each.id))


def _quoted(word: str) -> str:
    """Write a word for FTS5, in whose language it would else be able to mean more."""
    return '"' + word.replace('"', '""') + '"'
