"""Files of servers as other programs keep them: each is read or imported, and its servers start."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mcp_bridge import ConfigError, ServerConfig, ServerManager, load_servers
from mcp_bridge.config.import_servers import add_servers, entry_to_copy, read_found
from mcp_bridge.config.server_entry import InputAnswers

pytestmark = pytest.mark.long

CONFIGS = Path(__file__).parents[1] / "data" / "mcp_configs"
ENVIRON = {"WEATHER_KEY": "w-key-value", "DOCS_KEY": "d-key-value", "ZONE": "Asia/Tokyo"}
FAR = "https://docs.example.com/mcp"
BEARER = {"Authorization": "Bearer d-key-value"}
BOTH = ["convert_time", "get_current_time"]
UVX = """#!{python}
import runpy, sys
assert sys.argv.pop(1) == "mcp-server-time"
runpy.run_module("mcp_server_time", run_name="__main__")
"""
"""Runs the package as uvx does, without fetching it."""


@dataclass(frozen=True)
class Program:
    """One program's file, and what of it is to be seen in the servers."""

    file: str
    clock: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings of the server that is started."""
    far: Mapping[str, Any] | None = None
    """Settings of the one that is elsewhere; None where the file has none."""
    tools: tuple[str, ...] = tuple(BOTH)
    off: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    imported: bool = False
    """Whether the file is in a format that is not read, and has to be imported."""


PROGRAMS = {
    "amazon_q": Program(
        ".amazonq/mcp.json", {"env": {"REGION": "eu"}, "timeout_s": 60, "cwd": "."}
    ),
    "cherry_studio": Program(
        "mcp_servers.json",
        far={"url": FAR},
        off=("far",),
        passed_over=("mcpServers.clock.registryUrl",),
    ),
    "claude_code": Program(
        ".mcp.json", {"args": ("mcp-server-time", "--local-timezone", "Asia/Tokyo")}
    ),
    "claude_desktop": Program("claude_desktop_config.json"),
    "cline": Program(
        "cline_mcp_settings.json",
        {"timeout_s": 60},
        {"url": FAR, "transport": "http", "headers": {"X-Key": "k"}},
        off=("far",),
    ),
    "codex": Program(
        ".codex/config.toml",
        {
            "env": {"WEATHER_KEY": "w-key-value", "NOTES_DIR": "/home/anna/notes"},
            "timeout_s": 60,
            "connect_timeout_s": 20,
        },
        {"url": FAR},
        tools=("get_current_time",),
        off=("far",),
        imported=True,
    ),
    "continue": Program(
        ".continue/mcpServers/clock.yaml",
        {"env": {"WEATHER_KEY": "w-key-value"}},
        {"url": FAR, "transport": "http", "headers": BEARER},
        imported=True,
    ),
    "copilot": Program(
        "mcp-config.json", far={"url": FAR, "transport": "http", "only_tools": {"search"}}
    ),
    "cursor": Program(
        ".cursor/mcp.json",
        {"env": {"NOTES_DIR": "./notes", "HOME_DATA_DIR": f"{Path.home()}/data"}, "cwd": "."},
        {"url": FAR, "headers": {"X-Key": "d-key-value"}},
    ),
    "gemini": Program(
        ".gemini/settings.json",
        {"env": {"WEATHER_KEY": "w-key-value"}, "timeout_s": 15},
        {"url": FAR, "transport": "http", "headers": {"X-Key": "d-key-value"}, "timeout_s": 5},
        tools=("get_current_time",),
        off=("old",),
        imported=True,
    ),
    "goose": Program(
        "config.yaml",
        {"env": {"NOTES_DIR": "/home/anna/notes", "WEATHER_KEY": "w-key-value"}, "timeout_s": 300},
        {"url": FAR},
        off=("far",),
        imported=True,
    ),
    "junie": Program(".junie/mcp/mcp.json"),
    "kiro": Program(
        ".kiro/settings/mcp.json",
        {"env": {"WEATHER_KEY": "w-key-value"}},
        {"url": FAR, "headers": {"X-Key": "d-key-value"}},
        tools=("get_current_time",),
    ),
    "lm_studio": Program("mcp.json", {"timeout_s": 30}),
    "opencode": Program(
        "opencode.jsonc",
        {
            "args": ("mcp-server-time", "--local-timezone", "Asia/Tokyo"),
            "env": {"WEATHER_KEY": "w-key-value"},
            "timeout_s": 5,
        },
        {"url": FAR, "transport": "http", "headers": {"X-Key": "d-key-value"}},
        imported=True,
    ),
    "roo": Program(
        ".roo/mcp.json",
        {"cwd": "./tools", "timeout_s": 120},
        {"url": FAR, "transport": "http", "headers": {"X-Key": "d-key-value"}},
    ),
    "vscode": Program(
        ".vscode/mcp.json",
        {
            "args": ("mcp-server-time", "--local-timezone=Asia/Tokyo"),
            "env": {
                "NOTES_DB": "notes.db",
                "REGION": "eu",
                "WEATHER_KEY": "typed-in-value",
                "WORKSPACE_DIR": ".",
                "PORT": "8080",
            },
            "cwd": ".",
        },
    ),
    "vscode_settings": Program("settings.json", imported=True),
    "windsurf": Program(
        "mcp_config.json", far={"url": FAR, "headers": BEARER}, tools=("get_current_time",)
    ),
    "zed": Program(
        ".zed/settings.json",
        far={"url": FAR, "headers": {"Authorization": "Bearer a-token"}},
        imported=True,
    ),
}


@pytest.fixture
def uvx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "uvx").write_text(UVX.replace("{python}", sys.executable), encoding="utf-8")
    (folder / "uvx").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def load(program: str, folder: Path) -> dict[str, ServerConfig]:
    """Read or import the file as its owner has it, with what they answered to its questions."""
    home = folder / "project"
    shutil.copytree(CONFIGS / program, home)
    for path in (home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    file = home / PROGRAMS[program].file
    if PROGRAMS[program].imported:
        with pytest.raises(ConfigError, match=f"run: caal-node mcp import {file} --all"):
            load_servers(file, environ=ENVIRON)
        found = {one.config.name: entry_to_copy(one) for one in read_found(file, ENVIRON)}
        file = folder / "mcp_servers.json"
        add_servers(file, found)
    answers = InputAnswers(folder / "answers.json")
    if program == "vscode":
        answers.keep(file, {"weather-key": "typed-in-value", "zone": "Asia/Tokyo"})
    configs = load_servers(file, environ=ENVIRON, answers=answers)
    return {config.name: config for config in configs}


def settings_of(config: ServerConfig, names: Mapping[str, Any], home: Path) -> dict[str, Any]:
    """Give the settings of these names, with places as they are from the project's folder."""

    def shown(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(f"{home}/", "./").replace(str(home), ".")
        return {k: shown(v) for k, v in value.items()} if isinstance(value, Mapping) else value

    return {name: shown(getattr(config, name)) for name in names}


@pytest.mark.parametrize("program", sorted(PROGRAMS))
async def test_a_program_s_file_is_read_or_imported_and_its_server_starts(
    program: str, tmp_path: Path, uvx: None
) -> None:
    expected = PROGRAMS[program]
    found = await asyncio.to_thread(load, program, tmp_path)
    assert {name: config.fault for name, config in found.items() if config.fault} == {}
    remarks = [remark for config in found.values() for remark in config.remarks]
    assert [remark.split(": ")[1] for remark in remarks] == list(expected.passed_over)
    off = sorted(name for name, config in found.items() if not config.enabled)
    assert off == list(expected.off)
    home = tmp_path / "project"
    assert settings_of(found["clock"], expected.clock, home) == expected.clock
    if expected.far is not None:
        assert settings_of(found["far"], expected.far, home) == expected.far
    async with ServerManager([found["clock"]], connect_timeout_s=60) as manager:
        assert not manager.failed
        tools = await manager.list_tools()
        assert sorted(tool.tool for tool in tools) == list(expected.tools)
        result = await manager.call_tool("clock__get_current_time", {"timezone": "Asia/Tokyo"})
        assert "Asia/Tokyo" in str(result.value)


def test_every_program_s_file_is_tried() -> None:
    assert sorted(path.name for path in CONFIGS.iterdir()) == sorted(PROGRAMS)


def test_servers_of_one_file_that_differ_in_transport(tmp_path: Path) -> None:
    found = load("claude_code", tmp_path)
    assert (found["api"].transport, found["older"].transport) == ("http", "sse")
    assert found["api"].url == "https://api.example.com/mcp"
    assert load("gemini", tmp_path / "g")["events"].transport == "sse"
    assert load("zed", tmp_path / "z")["nested"].env == {"NO_COLOR": "1"}
