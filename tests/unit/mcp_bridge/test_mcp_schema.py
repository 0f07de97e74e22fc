"""The schema for editors says what the reader says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from mcp_bridge import parse_servers
from mcp_bridge.config.entry_model import FILE, KNOWN_KEYS, schema, written
from tests.stand_ins.server_faults import fault_in
from tests.unit.mcp_bridge.test_mcp_config import SERVERS

EXAMPLE = Path(__file__).parents[3] / "mcp_servers.json.example"
VALIDATOR = Draft202012Validator(schema())


def fits(document: Any) -> bool:
    return VALIDATOR.is_valid(document)


def test_the_file_is_what_the_code_says() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), (
        "run: python -m mcp_bridge.config.entry_model > mcp_bridge/mcp_servers.schema.json"
    )
    Draft202012Validator.check_schema(schema())


@given(SERVERS)
def test_what_the_reader_takes_fits_in_all_three_spellings(servers: dict[str, Any]) -> None:
    parse_servers(json.dumps(servers))
    assert fits(servers)
    assert fits({"mcpServers": servers, "globalShortcut": "x"})
    assert fits({"servers": [{"name": name, **entry} for name, entry in servers.items()]})
    if servers:
        assert fits({"servers": servers})


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"command": "x", "url": "http://x"},
        {"command": "x", "token": "t"},
        {"url": "http://x", "args": []},
        {"url": "http://x", "requires_path": True},
        {"command": "x", "comand": "y"},
        {"command": ""},
        {"command": "x", "args": "-v"},
        {"command": "x", "env": {"P": [80]}},
        {"command": "x", "timeout": 0},
        {"command": "x", "timeout": 3_600_001},
        {"command": "x", "enabled": "no"},
        {"command": "x", "transport": "carrier-pigeon"},
        {"command": "x", "auto_enable": "sometimes"},
        {"command": "x", "auto_enable": "if_match", "enable_if": {}},
        {"command": "x", "auto_enable": "if_match", "enable_if": {"file": "x"}},
        {"command": "x", "examples": {"t": [{}]}},
    ],
)
def test_what_the_reader_refuses_is_underlined(entry: dict[str, Any]) -> None:
    (config,) = parse_servers(json.dumps({"a": entry}))
    assert config.fault or config.remarks
    assert not fits({"a": entry})
    assert not fits({"mcpServers": {"a": entry}})
    assert not fits({"servers": [{"name": "a", **entry}]})


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {}, "b": {"command": "x"}},
        {"mcpServers": {}, "_b": {"command": 5}},
        {"mcpServers": {}, "servers": {"command": "x"}},
        {"servers": {}, "b": {"url": "http://x"}},
        {"servers": [], "b": {"url": "http://x"}},
        {"servers": 5},
        {"note": {"command": 5}},
        {"_x": {"command": "x", "transport": "y"}},
    ],
)
def test_a_server_that_would_vanish_is_underlined(document: dict[str, Any]) -> None:
    assert fault_in(json.dumps(document))
    assert not fits(document)


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {}, "servers": {}, "inputs": [], "b": {"url": None}},
        {"servers": {"url": {"command": "x"}}},
        {"servers": {"command": "x"}, "b": {"command": "y"}},
        {"servers": {"note": "x", "_x": {"a": 1}}, "//b": {"command": "x"}},
        {"//b": {"command": "x", "comand": "y"}, "version": {"command": "z"}},
    ],
)
def test_what_stands_beside_servers_is_left_alone(document: dict[str, Any]) -> None:
    parse_servers(json.dumps(document))
    assert fits(document)


def test_a_list_wants_names() -> None:
    assert not fits({"servers": [{"command": "x"}]})
    assert fits({"servers": {"command": "x"}}), "one server that is named servers"


def test_null_stands_for_not_set() -> None:
    assert fits({"a": {"command": "x", "url": None, "token": None}})


def test_the_example_fits_is_read_and_shows_every_key(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert fits(json.loads(text))

    def on(**environ: str) -> list[str]:
        found = parse_servers(text, environ=environ, room_path=str(tmp_path))
        return [config.name for config in found if config.enabled]

    assert on() == ["time", "files", "drafts"]
    (tmp_path / ".git").mkdir()
    assert on(NOTES_DB="n.db") == ["time", "files", "git", "database", "drafts"]
    shown = {key for entry in json.loads(text).values() if isinstance(entry, dict) for key in entry}
    aliases = {"name", "type", "disabled"}
    assert set(KNOWN_KEYS) - aliases - shown == set()
