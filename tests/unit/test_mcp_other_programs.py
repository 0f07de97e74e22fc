"""What other programs write into their files of servers, besides what `mcp_configs` shows."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ConfigError, ServerConfig, load_servers, parse_servers
from tests.server_faults import fault_in
from tests.unit.test_mcp_config import JSON

GROUPS = ("mcpServers", "servers", "context_servers", "mcp_servers", "extensions", "mcp")
KEYS = (
    *("command", "args", "env", "url", "type", "transport", "headers", "enabled", "timeout"),
    *("cmd", "envs", "env_keys", "env_vars", "environment", "envFile", "serverUrl", "httpUrl"),
    *("uri", "config", "requestOptions", "bearer_token_env_var", "env_http_headers", "inputs"),
    *("tools", "excludeTools", "startup_timeout_ms", "disabled", "settings", "source"),
)

LAUGHS = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in pairwise("abcdefgh")
)
"""A few lines that stand for millions of values."""


def one(entry: dict[str, Any], file: str = "f.json", **environ: str) -> ServerConfig:
    (config,) = parse_servers(json.dumps({"mcpServers": {"a": entry}}), file=file, environ=environ)
    assert not config.fault
    return config


@given(
    st.dictionaries(st.sampled_from(GROUPS), st.dictionaries(st.text(max_size=3), JSON)),
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
    st.sampled_from(("f.json", "f.yaml", ".gemini/settings.json")),
)
def test_whatever_a_file_holds_is_a_server_or_a_fault_in_one_line(
    groups: dict[str, Any], entry: dict[str, Any], file: str
) -> None:
    for group in groups.values():
        group["x"] = entry
    text = json.dumps(groups or {"x": entry})
    assert "\n" not in fault_in(text, file=file, environ={})
    try:
        found = parse_servers(text, file=file, environ={})
    except ConfigError:
        return
    assert len({config.name for config in found}) == len(found)
    for config in found:
        assert "\n" not in config.fault
        assert all("\n" not in remark for remark in config.remarks)


@pytest.mark.parametrize(
    ("text", "file", "said"),
    [
        ("mcpServers:\n  a:\n\tcommand: x", "f.yaml", "f.yaml:3: found character"),
        ("mcpServers: [", "f.yml", "mend the YAML"),
        (LAUGHS, "f.yaml", "too long; shorten it"),
        ("[" * 5000, "f.yaml", "nested too deeply"),
        ("extensions:\n  a:\n    type: stdio\n    cmd: 5\n", "f.yaml",
         "f.yaml:4: extensions.a.cmd: is a number; write a text"),
        ("extensions:\n  a:\n    cmd: x\n    envs:\n      D: 2026-01-01\n", "f.yaml",
         "f.yaml:5: extensions.a.envs.D: is a date; write a text"),
        ("[mcp_servers.a]\ncommand = x", "f.toml", "f.toml:2: invalid value; mend the TOML"),
        ("[mcp_servers.a]\ncommand = 5", "f.toml", "f.toml:2: mcp_servers.a.command: is a number"),
        ("[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a.env]\nNODE_OPTIONS = 'y'", "f.toml",
         "f.toml:4: mcp_servers.a.env.NODE_OPTIONS: is not plainly data"),
    ],
)  # fmt: skip
def test_a_fault_in_yaml_or_toml_is_named_with_its_line(text: str, file: str, said: str) -> None:
    assert said in fault_in(text, file=file)


def test_an_empty_yaml_file_has_no_servers() -> None:
    assert parse_servers("# nothing yet\n", file="f.yaml") == ()


def test_a_variable_is_what_its_program_means_by_it() -> None:
    env = {"A_KEY": "$KEY", "B_KEY": "${KEY}"}
    gemini = one({"command": "x", "env": env}, "home/.gemini/settings.json", KEY="k-value")
    assert dict(gemini.env) == {"A_KEY": "k-value", "B_KEY": "k-value"}
    others = one({"command": "x", "env": env}, KEY="k-value")
    assert dict(others.env) == {"A_KEY": "$KEY", "B_KEY": "k-value"}
    text = '{"mcp": {"a": {"type": "remote", "url": "https://x/mcp", "headers": {"K": "{env:K}"}}}}'
    assert "${K} is not set" in fault_in(text, environ={})


def test_an_address_that_ends_with_sse_is_spoken_to_so() -> None:
    assert one({"url": "https://x.example/sse"}).transport == "sse"
    assert one({"url": "https://x.example/sse?k=1"}).transport == "sse"
    assert one({"url": "https://x.example/sse", "type": "http"}).transport == "http"
    assert one({"url": "https://x.example/sse/mcp"}).transport == "http"


def test_tools_that_another_program_keeps_out_are_kept_out_here() -> None:
    assert one({"command": "x", "tools": ["*"]}).offers("t")
    assert one({"command": "x", "disabled_tools": ["t"]}).offers("u")
    assert not one({"command": "x", "disabledTools": ["t"]}).offers("t")
    assert not one({"command": "x", "includeTools": ["u"]}).offers("t")
    plain, kept = one({"command": "x"}), one({"command": "x", "excludeTools": ["t"]})
    assert plain.digest() != kept.digest(), "else the catalogue would remember the other's tools"


def test_a_project_s_servers_start_in_its_folder_and_a_user_s_do_not(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for file in (project / ".vscode" / "mcp.json", project / ".mcp.json"):
        assert one({"command": "x"}, str(file)).cwd == str(project)
        assert one({"command": "x", "cwd": "sub"}, str(file)).cwd == str(project / "sub")
    assert one({"command": "x"}, str(Path.home() / ".cursor" / "mcp.json")).cwd is None
    assert one({"command": "x"}, str(project / "mcp_servers.json")).cwd is None


def test_a_room_s_folder_is_the_workspace() -> None:
    text = '{"a": {"command": "x", "args": ["${workspaceFolder}"]}}'
    (config,) = parse_servers(text, room_path="/rooms/1")
    assert config.args == ("/rooms/1",)


def test_claude_codes_file_of_all_projects_gives_those_of_this_one() -> None:
    text = json.dumps(
        {
            "mcpServers": {"all": {"command": "x"}},
            "projects": {
                "/work": {"mcpServers": {"mine": {"command": "y"}}},
                "/other": {"mcpServers": {"theirs": {"command": "z"}}},
            },
        }
    )
    found = parse_servers(text, file=".claude.json", room_path="/work")
    assert [config.name for config in found] == ["all", "mine"]


def test_more_variables_come_from_a_file_and_the_entry_s_own_go_first(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    entry = {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"A_ID": "entry"}}
    file.write_text(json.dumps({"servers": {"a": entry}}), encoding="utf-8")
    (config,) = load_servers(file)
    assert "servers.a.envFile: .env cannot be read (No such file" in config.fault
    (tmp_path / ".env").write_text("A_ID=file\nB_TOKEN='s3cret $X'  # not X\n", encoding="utf-8")
    (config,) = load_servers(file)
    assert dict(config.env) == {"A_ID": "entry", "B_TOKEN": "s3cret $X"}
    (tmp_path / ".env").write_text("NODE_OPTIONS=--require=x\n", encoding="utf-8")
    assert 'or write "allow": ["env"]' in load_servers(file)[0].fault
    (tmp_path / ".env").chmod(0o666)
    assert "may be written by everybody" in load_servers(file)[0].fault


def test_the_rules_for_what_is_started_hold_in_every_file() -> None:
    for group in ("mcpServers", "servers", "context_servers"):
        text = json.dumps({group: {"a": {"command": "bash", "args": ["-c", "x"]}}})
        assert 'or write "allow": ["command"]' in fault_in(text)
        allowed = json.dumps({group: {"a": {"command": "bash", "allow": ["command"]}}})
        assert not fault_in(allowed)
    text = "extensions:\n  a:\n    cmd: node\n    args: [-e, x]\n"
    assert 'or write "allow": ["eval"]' in fault_in(text, file="config.yaml")
