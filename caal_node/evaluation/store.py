"""What validating a model found, and the SQLite file that keeps it.

A row of `run` is one `caal-node validate`. A row of `profile` is what the sessions of one model
found out. All calls of the store block, so they belong in a thread. A file that is not ours, is
damaged, or was written by a later version is never touched: the error names it and says how to go
on.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from caal_node.core import paths
from caal_node.core.errors import ConfigError
from caal_node.core.private_database import open_database
from caal_node.evaluation.suites import SUITES, VERSION, WAYS, Asking, SuiteName

# A validation: case by case, summed up, and what follows from it.

Mark: TypeAlias = Literal["right", "corrected", "wrong", "failed"]
"""`corrected` is right, but only because the node read a call out of the text or asked once more in
another way. `failed` means that the server gave an error in place of a reply."""

Thinking: TypeAlias = bool | str
"""A setting of CAAL_THINK: off, on, or how hard."""

WRONG_OF: Final = 4
"""A suite is passed with at most one case of four not right: a person repeats one request in four
at the worst, and the small models that people use all day reach it."""
_ASIDE: Final[frozenset[SuiteName]] = frozenset({"text_protocol", "reasoning"})
"""Suites that say nothing of which way is the better one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case gave in one way. `fault` is a few words for people, "" if it was right."""

    suite: SuiteName
    asking: Asking
    case: str
    mark: Mark
    fault: str
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    behind_call: bool = False
    """Whether words stood behind one of the server's own calls in the same reply."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many outcomes of one suite in one way were right."""

    right: int = 0
    corrected: int = 0
    total: int = 0

    @property
    def passed(self) -> bool:
        return self.total > 0 and self.total - self.right <= self.total // WRONG_OF

    def __str__(self) -> str:
        corrected = f" (+{self.corrected} corrected)" if self.corrected else ""
        return f"{self.right}/{self.total}{corrected}" if self.total else "-"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which weights on which server answer, which is what a finding holds for."""

    server: str
    """`ollama`, `llama.cpp`, `vllm`, or `openai-compatible` if the server does not say."""
    version: str
    """The server's version; "" if it does not say."""
    digest: str
    """Ollama's digest of the model, else what the server says of its file, or the model's name."""


@dataclass(frozen=True, slots=True)
class Validation:
    """A finished run of the suites over one model."""

    model: str
    api: str
    address: str
    identity: Identity
    at: str
    """When it ended: UTC, ISO 8601, to the second."""
    full: bool
    node_version: str
    native_offered: bool
    """False if the server says that the model has no tool calls, so they were not tried."""
    outcomes: tuple[Outcome, ...]
    suites_version: int = VERSION
    think: Thinking = False
    """How the model was asked to think (CAAL_THINK), which may change all that it does."""

    def tally(self, suite: SuiteName, asking: Asking) -> Tally:
        """Count the outcomes of one suite in one way."""
        return _tally(o for o in self.outcomes if (o.suite, o.asking) == (suite, asking))

    def total(self, asking: Asking) -> Tally:
        """Count the outcomes of the suites in which the ways can be compared."""
        return _tally(o for o in self.outcomes if o.asking == asking and o.suite not in _ASIDE)

    def missed(self, asking: Asking) -> tuple[SuiteName, ...]:
        """Return the required suites that `asking` did not pass."""
        return tuple(
            suite.name
            for suite in SUITES
            if suite.required and not self.tally(suite.name, asking).passed
        )

    @property
    def asking(self) -> Asking:
        """The way that works best: one that passes, then the one with more right. If they are
        alike it is the native one, whose prompt is shorter."""
        tried: tuple[Asking, ...] = WAYS if self.native_offered else ("text",)
        return max(tried, key=lambda way: (not self.missed(way), self.total(way).right))

    @property
    def passed(self) -> bool:
        return not self.missed(self.asking)

    def seconds(self, asking: Asking) -> float:
        return sum(o.seconds for o in self.outcomes if o.asking == asking)

    def prompt_tokens(self, asking: Asking) -> int:
        return sum(o.prompt_tokens for o in self.outcomes if o.asking == asking)


def _tally(outcomes: Iterable[Outcome]) -> Tally:
    marks = [outcome.mark for outcome in outcomes]
    return Tally(marks.count("right"), marks.count("corrected"), len(marks))


def to_object(validation: Validation) -> dict[str, Any]:
    """Return what `--json` prints: the result, then each suite's counts, then each case."""
    identity = validation.identity
    return {
        "model": validation.model,
        "api": validation.api,
        "address": validation.address,
        "server": identity.server,
        "server_version": identity.version,
        "digest": identity.digest,
        "think": validation.think,
        "at": validation.at,
        "node_version": validation.node_version,
        "full_suite": validation.full,
        "passed": validation.passed,
        "asking": validation.asking,
        "missed": list(validation.missed(validation.asking)),
        "native_offered": validation.native_offered,
        "suites": _suites_object(validation),
        "cases": [{**asdict(o), "seconds": round(o.seconds, 3)} for o in validation.outcomes],
    }


def _suites_object(validation: Validation) -> dict[str, dict[str, dict[str, int]]]:
    """Return suite -> way -> counts, without the ways that were not tried."""
    return {
        suite.name: {
            way: asdict(tally) for way in WAYS if (tally := validation.tally(suite.name, way)).total
        }
        for suite in SUITES
    }


# The file.

APPLICATION: Final = 0x4341414C
"""SQLite's application_id of our files: "CAAL"."""
SCHEMA: Final = 1
"""The version of the tables."""
RUNS_KEPT: Final = 50
"""Newest runs that are kept of one model at one address. A run is about 10 kB."""
PROFILES_KEPT: Final = 50
"""Newest profiles that are kept. One is about 1 kB."""

_RUN: Final = """
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  model TEXT NOT NULL,
  api TEXT NOT NULL,
  address TEXT NOT NULL,
  server TEXT NOT NULL,
  server_version TEXT NOT NULL,
  digest TEXT NOT NULL,
  suites_version INTEGER NOT NULL,
  passed INTEGER NOT NULL,
  asking TEXT NOT NULL,
  counted INTEGER NOT NULL,
  "right" INTEGER NOT NULL,
  report TEXT NOT NULL
)
"""
_PROFILE: Final = """
CREATE TABLE IF NOT EXISTS profile (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  profile TEXT NOT NULL
)
"""
_COLUMNS: Final = (
    "at, model, api, address, server, server_version, digest, suites_version, passed, asking, "
    'counted, "right"'
)


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """A stored run without its cases."""

    at: str
    model: str
    api: str
    address: str
    identity: Identity
    suites_version: int
    passed: bool
    asking: Asking
    right: int
    """Cases that were right, of `counted` cases of the way that works best."""
    counted: int
    think: Thinking | None = None
    """None of a run that did not note it."""


class EvaluationStore:
    """One file. Each call opens and closes it, so that processes side by side share it.

    Every method raises ConfigError if the file cannot be made, read or written, or is not ours.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path: Final = path or paths.validations()

    def check(self) -> None:
        """Make the file if it is missing."""
        with self._open(write=True) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()

    def add(self, validation: Validation) -> None:
        """Keep a run."""
        found = validation.total(validation.asking)
        identity = validation.identity
        row = (
            *(validation.at, validation.model, validation.api, validation.address),
            *(identity.server, identity.version, identity.digest, validation.suites_version),
            *(validation.passed, validation.asking, found.total, found.right),
            json.dumps(to_object(validation), ensure_ascii=False),
        )
        key = (validation.api, validation.model, validation.address)
        with self._open(write=True) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO run ({_COLUMNS}, report) VALUES ({places})", row)
            connection.execute(
                "DELETE FROM run WHERE api = ? AND model = ? AND address = ? AND id NOT IN"
                " (SELECT id FROM run WHERE api = ? AND model = ? AND address = ?"
                " ORDER BY id DESC LIMIT ?)",
                (*key, *key, RUNS_KEPT),
            )

    def of(self, api: str, model: str) -> list[ValidationRecord]:
        """Return the runs of `model` on any server, the newest first; none without a file."""
        if not os.path.lexists(self.path):
            return []
        columns = f"{_COLUMNS}, json_extract(report, '$.think')"
        query = f"SELECT {columns} FROM run WHERE api = ? AND model = ? ORDER BY id DESC LIMIT ?"
        with self._open(write=False) as connection:
            return [_record(row) for row in connection.execute(query, (api, model, RUNS_KEPT))]

    def has_profiles(self) -> bool:
        """Return whether there is any profile."""
        if not os.path.lexists(self.path):
            return False
        with self._open(write=False) as connection:
            return "profile" in _tables(connection)  # The first profile makes the table.

    def profile(self, key: str) -> str | None:
        """Return the profile that is kept under `key`."""
        if not os.path.lexists(self.path):
            return None
        with self._open(write=False) as connection:
            return _profile(connection, key) if "profile" in _tables(connection) else None

    def change_profile(self, key: str, change: Callable[[str | None], str]) -> None:
        """Keep what `change` makes of the profile under `key`, in one transaction."""
        with self._open(write=True) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_PROFILE)
            changed = change(_profile(connection, key))
            connection.execute(
                "INSERT OR REPLACE INTO profile (key, profile) VALUES (?, ?)", (key, changed)
            )
            connection.execute(
                "DELETE FROM profile WHERE id NOT IN"
                " (SELECT id FROM profile ORDER BY id DESC LIMIT ?)",
                (PROFILES_KEPT,),
            )

    @contextmanager
    def _open(self, *, write: bool) -> Generator[sqlite3.Connection]:
        connection: sqlite3.Connection | None = None
        try:
            connection = open_database(self.path, create=write)
            self._check_form(connection, write=write)
            yield connection
        except (sqlite3.Error, OSError, ValueError) as error:
            raise self._config_error(error) from error
        finally:
            if connection is not None:
                connection.close()

    def _check_form(self, connection: sqlite3.Connection, *, write: bool) -> None:
        """Make the tables of a new file. Raises ConfigError if it is not ours, or a later one."""
        application = _number(connection, "application_id")
        schema = _number(connection, "user_version")
        if write and not _tables(connection):
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                if not _tables(connection):
                    connection.execute(_RUN)
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {SCHEMA}")
            return
        if application != APPLICATION:
            raise ConfigError(
                f"{self.path}: this is not a file of caal-node; move it away, "
                "or set CAAL_STATE to another folder"
            )
        if schema > SCHEMA:
            raise ConfigError(
                f"{self.path}: written by a later caal-node (form {schema}, this one knows "
                f"{SCHEMA}); update caal-node, or set CAAL_STATE to another folder"
            )

    def _config_error(self, error: Exception) -> ConfigError:
        words = " ".join(str(error).split())
        if "full" in words or "disk I/O error" in words:
            return ConfigError(
                f"{self.path}: the disk is full or broken ({words}); make room on it"
            )
        if "locked" in words or "busy" in words:
            return ConfigError(f"{self.path}: another run holds it; wait for it and try again")
        if isinstance(error, OSError) or "unable to open" in words or "readonly" in words:
            return ConfigError(
                f"{self.path}: cannot be opened or written ({words}); "
                "fix that, or set CAAL_STATE to another folder"
            )
        return ConfigError(
            f"{self.path}: cannot be read ({words}); move it away, and validate again"
        )


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]


def _tables(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]


def _profile(connection: sqlite3.Connection, key: str) -> str | None:
    found = connection.execute("SELECT profile FROM profile WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def _record(row: tuple[Any, ...]) -> ValidationRecord:
    *key, suites, passed, asking, counted, right, think = row
    at, model, api, address, server, version, digest = key
    return ValidationRecord(
        *(at, model, api, address, Identity(server, version, digest)),
        suites_version=suites,
        passed=bool(passed),
        asking=asking,
        right=right,
        counted=counted,
        think=bool(think) if isinstance(think, int) else think,  # SQLite has no truth values.
    )
