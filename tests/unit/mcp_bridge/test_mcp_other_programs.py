"""What other programs write into their files of servers, besides what `mcp_configs` shows."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ConfigError, ServerConfig, load_servers, parse_servers
from mcp_bridge.config.import_servers import entry_to_copy, read_found
from tests.stand_ins.server_faults import fault_in
from tests.unit.mcp_bridge.test_mcp_config import JSON

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


def imported(file: Path, text: str, **environ: str) -> list[ServerConfig]:
    """What the servers of another program's file are once they are copied."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return [found.config for found in read_found(file, environ)]


@given(
    st.dictionaries(st.sampled_from(GROUPS), st.dictionaries(st.text(max_size=3), JSON)),
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
    st.sampled_from(("f.json", "f.yaml", ".gemini/settings.json")),
)
def test_whatever_a_file_holds_is_a_server_or_a_fault_in_one_line(
    tmp_path_factory: pytest.TempPathFactory,
    groups: dict[str, Any],
    entry: dict[str, Any],
    file: str,
) -> None:
    for group in groups.values():
        group["x"] = entry
    text = json.dumps(groups or {"x": entry})
    assert "\n" not in fault_in(text, file=file, environ={})
    with contextlib.suppress(ConfigError):
        for config in imported(tmp_path_factory.getbasetemp() / file, text):
            assert "\n" not in config.fault
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
        ("mcpServers: [", "f.yml", "fix the YAML"),
        ("a: \x01", "f.yml", "special characters are not allowed"),
        ("a: 2026-13-40", "f.yml", "month must be in"),
        (LAUGHS, "f.yaml", "is too long with its aliases; shorten it"),
        ("[" * 5000, "f.yaml", "nested too deeply"),
        ("a: &a [*a]", "f.yaml", "fix it"),
        ("- a", "f.yaml", "is a list; write an object"),
        ("[mcp_servers.a]\ncommand = x", "f.toml", "(at line 2, column 11); fix the TOML there"),
    ],
)  # fmt: skip
def test_yaml_or_toml_that_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, text: str, file: str, said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        imported(tmp_path / file, text)
    assert said in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / file))


@pytest.mark.parametrize(
    ("text", "file", "said"),
    [
        ("extensions:\n  a:\n    type: stdio\n    cmd: 5\n", "f.yaml",
         "extensions.a.command: is a number; write a text"),
        ("[mcp_servers.a]\ncommand = 5", "f.toml", "mcp_servers.a.command: is a number"),
        ("[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a.env]\nNODE_OPTIONS = 'y'", "f.toml",
         "mcp_servers.a.env.NODE_OPTIONS: is not plainly data"),
        ("extensions:\n  a:\n    cmd: node\n    args: [-e, x]\n", "f.yaml",
         'or write "allow": ["eval"]'),
        ('{"mcp": {"a": {"type": "local", "command": ["x"], "args": 5}}}', "f.json",
         "mcp.a.args: is a number"),
    ],
)  # fmt: skip
def test_a_fault_in_a_converted_entry_is_named(
    tmp_path: Path, text: str, file: str, said: str
) -> None:
    (config,) = imported(tmp_path / file, text)
    assert said in config.fault


def test_each_word_of_another_program_is_converted(tmp_path: Path) -> None:
    def entry(file: str, text: str) -> dict[str, Any]:
        imported(tmp_path / file, text)
        (found,) = read_found(tmp_path / file, {})
        return entry_to_copy(found)

    codex = """[mcp_servers.a]
        url = "https://x/mcp"
        bearer_token_env_var = "KEY"
        http_headers = { "X-A" = "a" }
        env_http_headers = { "X-B" = "B" }
        startup_timeout_ms = 3000
        tool_timeout_sec = 60
        disabled_tools = ["t"]"""
    assert entry("config.toml", codex) == {
        "url": "https://x/mcp", "token": "${KEY}", "headers": {"X-A": "a", "X-B": "${B}"},
        "connect_timeout": 3.0, "timeout": 60, "without_tools": ["t"],
    }  # fmt: skip
    goose = """extensions: {a: {type: stdio, cmd: x, args: [y], envs: {A_ID: a},
        env_keys: [A_ID, B_ID, {name: C_ID}], available_tools: [t], display_name: A}}"""
    assert entry("config.yaml", goose) == {
        "type": "stdio", "command": "x", "args": ["y"], "only_tools": ["t"],
        "env": {"A_ID": "a", "B_ID": "${B_ID}", "C_ID": "${C_ID}"},
    }  # fmt: skip
    zed = '{"context_servers": {"a": {"command": {"path": "x", "args": ["y"], "env": {"Z": 1}}}}}'
    assert entry("z.json", zed) == {"command": "x", "args": ["y"], "env": {"Z": "1"}}
    opencode = '{"mcp": {"a": {"command": ["x", "{env:A}"], "environment": {"B": "{env:B}"}}}}'
    assert entry("o.json", opencode) == {"command": "x", "args": ["${A}"], "env": {"B": "${B}"}}
    remote = '{"mcp": {"a": {"type": "remote", "url": "https://x/mcp", "enabled": false}}}'
    assert entry("r.json", remote) == {"url": "https://x/mcp", "enabled": False}
    blocks = """mcpServers: [{name: a, url: "https://x/mcp", type: sse,
        requestOptions: {headers: {K: "${{ secrets.K }}"}}}]"""
    assert entry("c.yaml", blocks) == {
        "url": "https://x/mcp", "type": "sse", "headers": {"K": "${K}"},
    }  # fmt: skip
    asks = '{"mcp": {"inputs": [{"id": "k"}], "servers": {"a": {"command": "${input:k}"}}}}'
    assert entry("s.json", asks) == {"command": "${input:k}", "inputs": [{"id": "k"}]}


def test_a_server_that_gemini_keeps_out_is_off(tmp_path: Path) -> None:
    names = {"allowed": ["a", "b"], "excluded": ["b"]}
    servers = {name: {"command": "x"} for name in "abc"}
    text = json.dumps({"mcp": names, "mcpServers": servers})
    found = imported(tmp_path / ".gemini" / "settings.json", text)
    assert [config.name for config in found if config.enabled] == ["a"]


def test_an_empty_yaml_file_has_no_servers(tmp_path: Path) -> None:
    assert imported(tmp_path / "f.yaml", "# nothing yet\n") == []


def test_values_that_json_has_not_become_texts(tmp_path: Path) -> None:
    text = "extensions:\n  a:\n    cmd: x\n    envs: {A_ID: 2026-01-01, B_ID: true, C_ID: 5}\n"
    (config,) = imported(tmp_path / "f.yaml", text)
    assert dict(config.env) == {"A_ID": "2026-01-01", "B_ID": "true", "C_ID": "5"}


@pytest.mark.parametrize(
    ("text", "file", "said"),
    [
        ('{"theme": 1,\n"context_servers": {"a": {"command": "x"}}}', "s.json",
         "s.json:2: context_servers: has servers in the format of Zed; run: "),
        ('{"mcp": {"servers": {"a": {"command": "x"}}}}', "s.json", "format of VS Code's settings"),
        ('{"mcp": {"a": {"enabled": false}}}', "s.json", "s.json:1: mcp: has servers in"),
        ('{"amp.mcpServers": {}}', "s.json", "in the format of Amp"),
        ('{"mcpServers": {"a": {"command": "x"}}}', ".gemini/settings.json", "of Gemini CLI"),
        ('{"mcpServers": {}, "context_servers": {"a": {"command": "x"}}}', "s.json", "of Zed"),
        ("[mcp_servers.a]\ncommand = 'x'", "config.toml", "config.toml: is not JSON; run: "),
        ("mcpServers: []", "a b.yaml", "run: caal-node mcp import 'a b.yaml' --all --to"),
    ],
)  # fmt: skip
def test_a_file_in_another_format_is_refused_with_the_command_that_imports_it(
    text: str, file: str, said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_servers(text, file=file)
    assert said in str(raised.value)
    assert " --to mcp_servers.json, and name that file by CAAL_MCP_SERVERS" in str(raised.value)


def test_what_other_programs_keep_beside_their_servers_is_no_format_of_another() -> None:
    text = """{"mcpServers": {"a": {"command": "x"}}, "extensions": {"b": {"enabled": true}},
               "context_servers": {}, "mcp": {"allowed": ["a"]}}"""
    assert [config.name for config in parse_servers(text)] == ["a"]
    for name in ("mcp", "extensions"):
        text = json.dumps({name: {"command": "x", "env": {"url": "y"}}})
        assert [config.name for config in parse_servers(text)] == [name]


def test_a_variable_is_what_its_program_means_by_it(tmp_path: Path) -> None:
    env = {"A_KEY": "$KEY", "B_KEY": "${KEY}"}
    text = json.dumps({"mcpServers": {"a": {"command": "x", "env": env}}})
    (gemini,) = imported(tmp_path / ".gemini" / "settings.json", text, KEY="k-value")
    assert dict(gemini.env) == {"A_KEY": "k-value", "B_KEY": "k-value"}
    others = one({"command": "x", "env": env}, KEY="k-value")
    assert dict(others.env) == {"A_KEY": "$KEY", "B_KEY": "k-value"}
    text = '{"mcp": {"a": {"type": "remote", "url": "https://x/mcp", "headers": {"K": "{env:K}"}}}}'
    (opencode,) = imported(tmp_path / "opencode.json", text)
    assert "${K} is not set" in opencode.fault
    assert '"${...}" means nothing here' in fault_in('{"a": {"command": "${{ secrets.K }}"}}')


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


def test_claude_codes_file_of_all_projects_gives_those_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(
        {
            "mcpServers": {"all": {"command": "x"}},
            "projects": {
                "/work": {"mcpServers": {"mine": {"command": "y"}}},
                "/other": {"mcpServers": {"theirs": {"command": "z"}}},
            },
        }
    )
    assert "projects./work.mcpServers: has servers in" in fault_in(text, room_path="/work")
    assert [config.name for config in parse_servers(text, room_path="/none")] == ["all"]
    monkeypatch.setattr("os.getcwd", lambda: "/work")
    found = imported(tmp_path / ".claude.json", text)
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
    for group in ("mcpServers", "servers"):
        text = json.dumps({group: {"a": {"command": "bash", "args": ["-c", "x"]}}})
        assert 'or write "allow": ["command"]' in fault_in(text)
        allowed = json.dumps({group: {"a": {"command": "bash", "allow": ["command"]}}})
        assert not fault_in(allowed)
