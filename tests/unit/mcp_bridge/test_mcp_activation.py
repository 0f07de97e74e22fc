"""When a configured server is used: always, never, with a path, or where something matches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_bridge import ServerManager, load_servers, parse_servers


def one(path: Path | None = None, environ: dict[str, str] | None = None, **entry: Any) -> Any:
    text = json.dumps({"a": {"command": "x", **entry}})
    room = str(path) if path else None
    (config,) = parse_servers(text, file="f", environ=environ or {}, room_path=room)
    return config


def test_always_is_the_rule_and_never_is_off(tmp_path: Path) -> None:
    assert one().enabled
    assert one(auto_enable="always").enabled
    off = one(tmp_path, auto_enable="never")
    assert (off.enabled, off.off_because) == (False, "auto_enable is never")


def test_with_path_wants_a_path(tmp_path: Path) -> None:
    assert one(tmp_path, auto_enable="with_path").enabled
    assert "no path" in one(auto_enable="with_path").off_because


def test_requires_path_gives_the_path_as_the_last_argument(tmp_path: Path) -> None:
    config = one(tmp_path, args=["-y", "server"], requires_path=True)
    assert config.args == ("-y", "server", str(tmp_path))
    assert not one(requires_path=True).enabled
    assert one(tmp_path, args=["-y"], requires_path=False).args == ("-y",)


def matches(condition: Any, path: Path | None = None, **environ: str) -> bool:
    return one(path, environ, auto_enable="if_match", enable_if=condition).enabled


def test_a_file_a_folder_and_a_glob_match(tmp_path: Path) -> None:
    assert not matches({"file_exists": ".git"}, tmp_path)
    (tmp_path / ".git").mkdir()
    assert matches({"file_exists": ".git"}, tmp_path)
    assert not matches({"file_exists": "*.csv"}, tmp_path)
    (tmp_path / "sales.csv").touch()
    assert matches({"file_exists": "*.csv"}, tmp_path)
    assert matches({"file_exists": ["nowhere", "*.csv"]}, tmp_path), "one of them is enough"
    assert matches({"file_exists": str(tmp_path / "s*")}), "a full path needs no room"


def test_a_room_whose_name_has_marks_of_globs_is_a_room(tmp_path: Path) -> None:
    room = tmp_path / "[a]*"
    room.mkdir()
    (room / "x").touch()
    assert matches({"file_exists": "x"}, room)


def test_without_a_path_files_are_looked_for_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not matches({"file_exists": "here"})
    (tmp_path / "here").touch()
    assert matches({"file_exists": "here"})


def test_a_variable_must_be_set_and_hold_something() -> None:
    assert matches({"env_set": "DSN"}, DSN="x")
    assert not matches({"env_set": "DSN"}, DSN="")
    assert not matches({"env_set": ["DSN", "KEY"]}, DSN="x"), "all of them"


def test_both_kinds_must_hold(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    both = {"file_exists": "x", "env_set": "DSN"}
    assert matches(both, tmp_path, DSN="1")
    assert not matches(both, tmp_path)
    assert not matches({**both, "file_exists": "y"}, tmp_path, DSN="1")


def test_why_a_server_is_off_is_told(tmp_path: Path) -> None:
    def why(condition: Any) -> str:
        return one(tmp_path, auto_enable="if_match", enable_if=condition).off_because

    assert why({"file_exists": ".git"}) == "there is no .git"
    assert why({"env_set": "DSN"}) == "DSN is not set"


def test_enabled_false_counts_before_every_match(tmp_path: Path) -> None:
    assert not one(tmp_path, enabled=False, auto_enable="with_path").enabled
    assert not one(tmp_path, disabled=True, auto_enable="always").enabled


def test_a_server_that_does_not_match_needs_no_variable() -> None:
    entry = {"args": ["${DSN}"], "auto_enable": "if_match", "enable_if": {"env_set": "DSN"}}
    assert not one(**entry).enabled
    assert one(environ={"DSN": "a://b"}, **entry).args == ("a://b",)


def test_what_matches_is_looked_up_at_each_load(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    entry = {"command": "x", "auto_enable": "if_match", "enable_if": {"file_exists": "*.db"}}
    path.write_text(json.dumps({"servers": [{"name": "a", **entry}]}))

    def enabled() -> list[bool]:
        return [c.enabled for c in load_servers(path, environ={}, room_path=str(tmp_path))]

    assert enabled() == [False]
    (tmp_path / "a.db").touch()
    assert enabled() == [True]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"auto_enable": "sometimes"}, "use always, never, with_path, if_match"),
        ({"auto_enable": "if_match"}, 'lacks "enable_if"'),
        ({"enable_if": {"env_set": "A"}}, 'goes with "auto_enable": "if_match"'),
        ({"auto_enable": "if_match", "enable_if": {}}, "a.enable_if: is empty"),
        ({"auto_enable": "if_match", "enable_if": {"file": "x"}}, "use file_exists or env_set"),
        ({"auto_enable": "if_match", "enable_if": {"env_set": []}}, "enable_if.env_set: is empty"),
        ({"auto_enable": "if_match", "enable_if": {"env_set": [1]}}, "env_set.0: is a number"),
        ({"auto_enable": "if_match", "enable_if": {"file_exists": "**/x"}}, "name the levels"),
        ({"requires_path": "yes"}, "a.requires_path: is a text; write true or false"),
    ],
)
def test_a_fault_is_named_with_its_fix(entry: dict[str, Any], said: str) -> None:
    fault = one(**entry).fault
    assert fault.startswith("f:1: ")
    assert said in fault


def test_a_server_elsewhere_takes_no_path() -> None:
    (config,) = parse_servers('{"a": {"url": "http://x", "requires_path": true}}')
    assert "requires_path" in config.fault


async def test_the_status_tells_why_a_server_is_off() -> None:
    async with ServerManager([one(auto_enable="with_path")]) as manager:
        (status,) = manager.servers
        assert (status.state, status.notes) == ("off", ("no path is given for the room",))
