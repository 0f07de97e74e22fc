"""The passages of all documents on disk: one SQLite file with a full-text index and the vectors.

It can be made anew of the documents at any time, so that a damaged file, or one of another version,
is thrown away. All calls block, so they belong in a thread; each opens the file and closes it, so
that processes side by side share it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from caal_node.core.private_database import is_damage, open_database
from caal_node.toolsets.local_files.passages import Passage
from mcp_bridge.embedding.base import Vectors

logger = logging.getLogger("caal_node.toolsets.documents")
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
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
            elif version != VERSION:
                raise sqlite3.DatabaseError("another version")
            yield connection
            connection.execute("COMMIT")


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
