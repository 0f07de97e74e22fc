"""Findings on disk: kept, found again, and never lost to a file that is not as expected."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from caal_node.core import paths
from caal_node.core.errors import ConfigError
from caal_node.evaluation.model_profiles import Validity, validity_of
from caal_node.evaluation.store import (
    RUNS_KEPT,
    EvaluationStore,
    Identity,
    Outcome,
    Thinking,
    Validation,
)
from caal_node.evaluation.suites import VERSION

IDENTITY = Identity("ollama", "0.17.4", "sha256:aa")
FOUND = Validation(
    *("m:1b", "ollama", "http://127.0.0.1:11434"),
    identity=IDENTITY,
    at="2026-01-05T12:00:00+00:00",
    full=True,
    node_version="0.1.0",
    native_offered=True,
    outcomes=(Outcome("tool_call", "native", "a “case”", "right", "", 0.5, 100, 10),),
)


@pytest.fixture
def store(tmp_path: Path) -> EvaluationStore:
    return EvaluationStore(tmp_path / "state" / "validations.db")


def test_a_finding_is_found_again_whole(store: EvaluationStore) -> None:
    assert store.of("ollama", "m:1b") == []
    store.add(FOUND)
    [record] = store.of("ollama", "m:1b")
    assert (record.identity, record.at, record.address) == (IDENTITY, FOUND.at, FOUND.address)
    assert (record.passed, record.asking) == (FOUND.passed, FOUND.asking)
    assert (record.right, record.counted) == (1, 1)
    with closing(sqlite3.connect(store.path)) as connection:
        [(report,)] = connection.execute("SELECT report FROM run")
    assert json.loads(report)["cases"][0]["case"] == "a “case”"
    assert store.of("openai", "m:1b") == []
    assert store.of("ollama", "m") == []


def test_the_newest_comes_first_and_old_ones_go(store: EvaluationStore) -> None:
    store.add(replace(FOUND, model="other"))
    for n in range(RUNS_KEPT + 3):
        store.add(replace(FOUND, at=f"2026-01-05T12:00:{n:02}+00:00"))
    records = store.of("ollama", "m:1b")
    assert len(records) == RUNS_KEPT
    assert records[0].at.endswith(f":{RUNS_KEPT + 2:02}+00:00")
    assert len(store.of("ollama", "other")) == 1


def refused(store: EvaluationStore) -> str:
    messages: list[str] = []
    for use in (store.check, lambda: store.add(FOUND), lambda: store.of("ollama", "m:1b")):
        with pytest.raises(ConfigError) as caught:
            use()
        messages.append(str(caught.value))
        assert str(store.path) in messages[-1]
        assert "\n" not in messages[-1]
    return messages[-1]


def test_a_damaged_file_is_named_and_left_as_it_is(store: EvaluationStore) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
    before = store.path.read_bytes()
    assert "move it away" in refused(store)
    assert store.path.read_bytes() == before


def test_a_file_of_a_later_version_is_named_and_left_as_it_is(store: EvaluationStore) -> None:
    store.add(FOUND)
    with sqlite3.connect(store.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = store.path.read_bytes()
    message = refused(store)
    assert "later caal-node" in message
    assert "update caal-node" in message
    assert store.path.read_bytes() == before


def test_somebody_elses_database_is_named_and_left_as_it_is(store: EvaluationStore) -> None:
    store.path.parent.mkdir()
    with sqlite3.connect(store.path) as connection:
        connection.execute("CREATE TABLE run (id INTEGER)")
    connection.close()
    before = store.path.read_bytes()
    assert "not a file of caal-node" in refused(store)
    assert store.path.read_bytes() == before


def test_an_empty_file_has_lost_what_it_had_and_is_named(store: EvaluationStore) -> None:
    store.add(FOUND)
    store.path.write_bytes(b"")
    assert "it is empty" in refused(store)
    with pytest.raises(ConfigError, match="move it away, and validate again"):
        store.of("ollama", "m:1b")
    with pytest.raises(ConfigError, match="move it away, and validate again"):
        store.profile("k")


def test_a_folder_that_cannot_be_made_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="CAAL_STATE"):
        EvaluationStore(tmp_path / "file" / "validations.db").check()


def test_a_file_that_another_run_holds_is_said_to_be_held(
    store: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caal_node.core.private_database.BUSY_S", 0.01)
    store.check()
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ConfigError, match="another run holds it"):
        store.add(FOUND)
    other.execute("ROLLBACK")
    other.close()
    store.add(FOUND)


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="the XDG folders are Linux's")
def test_the_folder_is_the_users_own_for_state(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CAAL_STATE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("", "relative/path"):
        monkeypatch.setenv("XDG_STATE_HOME", given)
        assert paths.state_folder() == tmp_path / ".local" / "state" / "caal-node"
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert paths.state_folder() == Path("/x/caal-node")
    monkeypatch.setenv("CAAL_STATE", str(tmp_path / "own"))
    assert paths.validations() == tmp_path / "own" / "validations.db"


def validity(
    now: Identity,
    store: EvaluationStore,
    address: str = FOUND.address,
    think: Thinking = False,
) -> Validity:
    return validity_of(store.of("ollama", "m:1b"), now, address, think)


def test_a_finding_holds_for_its_digest_and_version_wherever_they_run(
    store: EvaluationStore,
) -> None:
    store.add(FOUND)
    found = validity(IDENTITY, store, "http://elsewhere:11434")
    assert found.state == "failed"  # one case is no pass
    assert "1 of 1 right on 2026-01-05" in found.why
    assert found.asking == FOUND.asking


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (replace(IDENTITY, digest="sha256:bb"), "the model has changed"),
        (replace(IDENTITY, version="0.18.0"), "with ollama 0.17.4, and this is 0.18.0"),
        (replace(IDENTITY, server="llama.cpp"), "on ollama, and this is llama.cpp"),
    ],
)
def test_a_finding_is_stale_once_digest_version_or_server_changed(
    now: Identity, why: str, store: EvaluationStore
) -> None:
    store.add(FOUND)
    found = validity(now, store)
    assert (found.state, found.asking) == ("stale", None)
    assert why in found.why


@pytest.mark.parametrize("think", [False, True, "low"])
def test_a_finding_holds_for_the_way_of_thinking_that_it_was_made_with(
    think: Thinking, store: EvaluationStore
) -> None:
    store.add(replace(FOUND, think=think))
    assert validity(IDENTITY, store, think=think).state == "failed"
    other = validity(IDENTITY, store, think="high")
    assert other.state == "stale"
    assert "another CAAL_THINK" in other.why


def test_a_finding_that_did_not_note_its_way_of_thinking_is_stale(store: EvaluationStore) -> None:
    store.add(FOUND)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE run SET report = json_remove(report, '$.think')")
    assert [record.think for record in store.of("ollama", "m:1b")] == [None]
    assert validity(IDENTITY, store).state == "stale"


def test_a_finding_of_other_checks_is_stale(store: EvaluationStore) -> None:
    store.add(replace(FOUND, suites_version=VERSION + 1))
    assert "other checks" in validity(IDENTITY, store).why


def test_going_back_to_the_old_model_makes_its_finding_hold_again(store: EvaluationStore) -> None:
    store.add(FOUND)
    store.add(replace(FOUND, identity=replace(IDENTITY, digest="sha256:bb")))
    assert validity(IDENTITY, store).state == "failed"


def test_what_is_left_out_of_a_chain() -> None:
    def out(state: str, only: bool) -> bool:
        return bool(Validity(state, "why").unfit(only_validated=only))  # type: ignore[arg-type]

    every = ("untried", "passed", "failed", "stale", "unreachable")
    assert [state for state in every if out(state, False)] == ["failed"]
    assert [state for state in every if not out(state, True)] == ["passed"]


def test_what_a_killed_process_left_half_written_is_taken_back_by_whoever_reads(
    store: EvaluationStore, tmp_path: Path
) -> None:
    store.add(FOUND)
    copy = EvaluationStore(tmp_path / "killed" / "validations.db")
    copy.path.parent.mkdir()
    with closing(sqlite3.connect(store.path)) as writing:
        writing.execute("PRAGMA cache_spill = 1")
        writing.execute("PRAGMA cache_size = 1")
        writing.execute("UPDATE run SET model = 'half', report = ?", ("x" * 1_000_000,))
        for each in store.path.parent.glob("validations.db*"):  # as kill -9 would leave them
            (copy.path.parent / each.name).write_bytes(each.read_bytes())
        writing.rollback()
    assert (copy.path.parent / "validations.db-journal").stat().st_size
    assert [each.at for each in copy.of("ollama", "m:1b")] == [FOUND.at]
