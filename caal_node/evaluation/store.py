"""Findings on disk: one SQLite file, a row a run. Blocking; see `validity` for the event loop.

A file that is not ours, is damaged, or was written by a later version is never touched: the error
names it and says how to go on.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from caal_node.core import paths
from caal_node.core.errors import ConfigError
from caal_node.evaluation.model_session import Asking
from caal_node.evaluation.result import Identity, Validation, to_object

APPLICATION: Final = 0x4341414C
"""SQLite's application_id of our files: "CAAL"."""
SCHEMA: Final = 1
BUSY_S: Final = 5.0
"""How long another run's write is waited for; one takes milliseconds."""
KEPT: Final = 50
"""Newest runs kept of one model at one address. A run is about 10 kB."""

_TABLE: Final = """
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
_COLUMNS: Final = (
    "at, model, api, address, server, server_version, digest, suites_version, passed, asking, "
    'counted, "right"'
)


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """A stored run, without its cases."""

    at: str
    model: str
    api: str
    address: str
    identity: Identity
    suites_version: int
    passed: bool
    asking: Asking
    right: int
    """Of `counted` cases of the way that works best."""
    counted: int


class ValidationStore:
    """One file. Each call opens and closes it, so that runs side by side share it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path: Final = path or paths.validations()

    def check(self) -> None:
        """Make the file where it is missing.

        Raises:
            ConfigError: it cannot be made, read or written, or is not ours.
        """
        with self._open(write=True) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()

    def add(self, validation: Validation) -> None:
        """Raises: ConfigError: as `check`."""
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
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO run ({_COLUMNS}, report) VALUES ({places})", row)
            connection.execute(
                "DELETE FROM run WHERE api = ? AND model = ? AND address = ? AND id NOT IN"
                " (SELECT id FROM run WHERE api = ? AND model = ? AND address = ?"
                " ORDER BY id DESC LIMIT ?)",
                (*key, *key, KEPT),
            )

    def of(self, api: str, model: str) -> list[ValidationRecord]:
        """Runs of `model`, whatever server it was on, the newest first; none without a file.

        Raises:
            ConfigError: as `check`.
        """
        if not _begun(self.path):
            return []
        query = f"SELECT {_COLUMNS} FROM run WHERE api = ? AND model = ? ORDER BY id DESC LIMIT ?"
        with self._open(write=False) as connection:
            return [_record(row) for row in connection.execute(query, (api, model, KEPT))]

    def report(self, record: ValidationRecord) -> dict[str, Any]:
        """The whole report of a run, as `to_object` made it. Raises: ConfigError: as `check`."""
        query = "SELECT report FROM run WHERE api = ? AND model = ? AND address = ? AND at = ?"
        key = (record.api, record.model, record.address, record.at)
        with self._open(write=False) as connection:
            found = connection.execute(query, key).fetchone()
        return cast("dict[str, Any]", json.loads(found[0])) if found else {}

    @contextmanager
    def _open(self, *, write: bool) -> Generator[sqlite3.Connection]:
        connection: sqlite3.Connection | None = None
        try:
            if write:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            uri = f"{self.path.resolve().as_uri()}?mode={'rwc' if write else 'ro'}"
            connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S)
            self._look(connection, write=write)
            yield connection
        except (sqlite3.Error, OSError, ValueError) as error:
            raise self._told(error) from error
        finally:
            if connection is not None:
                connection.close()

    def _look(self, connection: sqlite3.Connection, *, write: bool) -> None:
        application = _number(connection, "application_id")
        schema = _number(connection, "user_version")
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables and write:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    connection.execute(_TABLE)
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {SCHEMA}")
            return
        if application != APPLICATION:
            raise ConfigError(
                f"{self.path}: this is no file of caal-node's; move it away, "
                "or set CAAL_STATE to another folder"
            )
        if schema > SCHEMA:
            raise ConfigError(
                f"{self.path}: written by a later caal-node (form {schema}, this one knows "
                f"{SCHEMA}); update caal-node, or set CAAL_STATE to another folder"
            )

    def _told(self, error: Exception) -> ConfigError:
        words = " ".join(str(error).split())
        if "locked" in words or "busy" in words:
            return ConfigError(f"{self.path}: another run holds it; wait for it and try again")
        if isinstance(error, OSError) or "unable to open" in words or "readonly" in words:
            return ConfigError(
                f"{self.path}: cannot be opened or written ({words}); "
                "set CAAL_STATE to a folder that can"
            )
        return ConfigError(
            f"{self.path}: cannot be read ({words}); move it away, and validate again"
        )


def _begun(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True  # opening it says what is wrong


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]


def _record(row: tuple[Any, ...]) -> ValidationRecord:
    at, model, api, address, server, version, digest, suites, passed, asking, counted, right = row
    return ValidationRecord(
        *(at, model, api, address, Identity(server, version, digest)),
        suites_version=suites,
        passed=bool(passed),
        asking=asking,
        right=right,
        counted=counted,
    )
