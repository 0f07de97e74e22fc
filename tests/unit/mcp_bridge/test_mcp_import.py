"""Servers are copied from the files of other programs: whole or not at all, and over nothing."""

from __future__ import annotations

import json
import shlex
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import mcp_bridge
from caal_node.cli import mcp_import
from caal_node.cli.mcp_commands import mcp_app
from mcp_bridge import ConfigError, load_servers
from mcp_bridge.config.import_servers import add_servers, entry_to_copy, read_found, what_it_starts
from mcp_bridge.config.spellings import known_files
from mcp_bridge.core.server_config import ServerSecrets
from tests.unit.mcp_bridge.test_mcp_config import SERVERS

CONFIGS = Path(__file__).parents[2] / "data" / "mcp_configs"
OWN = """// mine
{
  "time": { "command": "clock", "args": ["-v"] }, // it ticks
}
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("platform", "environ", "places"),
    [
        (
            "linux",
            {},
            {
                "claude-desktop": ".config/Claude/claude_desktop_config.json",
                "vscode": ".config/Code/User/mcp.json",
                "cline": ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
                "cline_mcp_settings.json",
                "zed": ".config/zed/settings.json",
                "goose": ".config/goose/config.yaml",
                "opencode": ".config/opencode/opencode.json",
                "codex": ".codex/config.toml",
                "ollama": ".ollama/mcp-servers.json",
            },
        ),
        (
            "darwin",
            {},
            {
                "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
                "vscode": "Library/Application Support/Code/User/mcp.json",
                "zed": ".config/zed/settings.json",
                "windsurf": ".codeium/windsurf/mcp_config.json",
            },
        ),
        (
            "win32",
            {"APPDATA": "home/AppData/Roaming"},
            {
                "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
                "goose": "AppData/Roaming/Block/goose/config/config.yaml",
                "zed": "AppData/Roaming/Zed/settings.json",
                "cursor": ".cursor/mcp.json",
            },
        ),
    ],
)
def test_each_program_is_looked_for_where_it_keeps_its_servers(
    platform: str, environ: dict[str, str], places: dict[str, str]
) -> None:
    found = known_files(Path("home"), Path("project"), environ, platform)
    for program, place in places.items():
        paths = [file.path for file in found if file.program == program]
        assert Path("home") / place in paths
    assert len({file.path for file in found}) == len(found)
    project = [file.path for file in found if file.path.is_relative_to("project")]
    assert project == [file.path for file in found][: len(project)]


@given(SERVERS, SERVERS, st.sampled_from([(), ("mcpServers",), ("servers",)]), st.booleans())
def test_what_the_file_has_stays_as_it_is(
    old: dict[str, Any], new: dict[str, Any], group: tuple[str, ...], as_list: bool
) -> None:
    new = {name: entry for name, entry in new.items() if name not in old and name != "mcp"}
    if "mcp" in old or "extensions" in {*old, *new} or not new:
        return
    held: Any = old
    if group == ("servers",) and as_list:
        held = [{"name": name, **entry} for name, entry in old.items()]
    for key in reversed(group):
        held = {key: held}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mcp_servers.json"
        path.write_text(json.dumps(held, indent=2), encoding="utf-8")
        path.chmod(0o644)
        add_servers(path, new)
        found = {config.name: config for config in load_servers(path)}
        assert found.keys() == old.keys() | new.keys()
        assert mode(path) == 0o600


def test_words_and_order_of_the_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_text(OWN, encoding="utf-8")
    add_servers(path, {"new": {"command": "y"}})
    text = path.read_text(encoding="utf-8")
    assert text.startswith('// mine\n{\n  "new": {')
    assert OWN.partition("{\n")[2] in text


def test_a_file_that_is_not_there_is_made_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "mcp_servers.json"
    add_servers(path, {"a": {"command": "x"}})
    assert [config.name for config in load_servers(path)] == ["a"]
    assert mode(path) == 0o600


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (OWN, "time", "time: is there already; rename one"),
        ("{", "a", "expected a key"),
        (
            '{"context_servers": {"a": {"command": "x"}}}',
            "b",
            "in the format of Zed; run: caal-node",
        ),
    ],
)
def test_a_file_that_cannot_be_added_to_stays_as_it_was(
    tmp_path: Path, text: str, name: str, said: str
) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        add_servers(path, {name: {"command": "y"}, "other": {"command": "z"}})
    assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "real.json", tmp_path / "mcp_servers.json"
    path.write_text(OWN, encoding="utf-8")
    link.symlink_to(path)
    add_servers(link, {"a": {"command": "x"}})
    assert link.is_symlink()
    assert len(load_servers(path)) == 2


@pytest.mark.parametrize("program", sorted(path.name for path in CONFIGS.iterdir()))
def test_every_program_s_servers_mean_the_same_when_they_are_copied(
    tmp_path: Path, program: str
) -> None:
    home = tmp_path / "project"
    shutil.copytree(CONFIGS / program, home)
    for path in (home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    (file,) = (
        path for path in home.rglob("*") if path.suffix in (".json", ".jsonc", ".yaml", ".toml")
    )
    environ = {"WEATHER_KEY": "w-key-value", "DOCS_KEY": "d-key-value", "ZONE": "Asia/Tokyo"}
    found = read_found(file, environ)
    copy = tmp_path / "elsewhere" / "mcp_servers.json"
    add_servers(copy, {one.config.name: entry_to_copy(one) for one in found})
    ours = {config.name: config for config in load_servers(copy, environ=environ)}
    assert ours.keys() == {one.config.name for one in found}
    for one in found:
        mine = ours[one.config.name]
        assert bool(mine.fault) == bool(one.config.fault)
        assert mine.digest() == one.config.digest() or mine.fault or not mine.enabled
        assert (mine.enabled, mine.asks) == (one.config.enabled, one.config.asks)


def test_what_is_shown_of_a_server_has_none_of_its_keys() -> None:
    local = {"command": "uvx", "args": ["x", "--api-key", "s3cret-1", "s3cret-2"],
             "env": {"API_TOKEN": "s3cret-2"}}  # fmt: skip
    assert what_it_starts(local) == "uvx x --api-key '***' '***'".replace("'", "")
    far = {"url": "https://x.example/mcp?key=s3cret-3"}
    assert what_it_starts(far) == "https://x.example/mcp"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the servers of Cursor and of a project of VS Code; gives the project."""
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    shutil.copytree(CONFIGS / "vscode", project)
    shutil.copytree(CONFIGS / "cursor" / ".cursor", home / ".cursor")
    for path in (home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CAAL_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(project)
    return project


def run(*words: str, typed: str = "") -> Result:
    return CliRunner().invoke(mcp_app, list(words), input=typed)


def copied(project: Path) -> list[str]:
    path = project / "mcp_servers.json"
    return [config.name for config in load_servers(path, missing_ok=True)]


def test_without_a_choice_and_a_terminal_servers_are_only_shown(machine: Path) -> None:
    said = run("import")
    assert said.exit_code == 0
    assert "vscode: ~/project/.vscode/mcp.json" in said.output
    assert "its name is taken above" in said.output
    assert "--all" in said.output
    assert copied(machine) == []


def test_a_dry_run_copies_nothing(machine: Path) -> None:
    assert "would be copied into mcp_servers.json: clock" in run("import", "--dry-run").output
    assert copied(machine) == []


def test_all_or_those_that_were_named_are_copied_and_none_over_another(machine: Path) -> None:
    run("import", "cursor", "--server", "far")
    assert copied(machine) == ["far"]
    run("import", "--all")
    assert copied(machine) == ["clock", "github", "far"]
    said = run("import", "cursor", "--server", "far")
    assert said.exit_code == 1
    assert "there already" in str(said.exception)
    said = run("import", str(machine / ".vscode" / "mcp.json"), "--all")
    assert "Nothing was copied." in said.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["import", "notepad"], "neither a file nor a known program"),
        (["import", "--server", "nobody"], "'nobody' cannot be copied: not found"),
        (["inputs"], "there is no such file"),
    ],
)
def test_a_word_that_means_nothing_is_named(machine: Path, words: list[str], said: str) -> None:
    assert said in str(run(*words).exception)


def test_the_command_that_a_refused_file_names_imports_all_that_it_held(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = machine / "my settings.json"
    settings.write_text('{"context_servers": {"a": {"command": {"path": "x"}}}}', encoding="utf-8")
    settings.chmod(0o600)
    monkeypatch.setenv("CAAL_MCP_SERVERS", str(settings))
    with pytest.raises(ConfigError) as refused:
        load_servers(settings)
    command = str(refused.value).partition("run: caal-node mcp ")[2].partition(", and name")[0]
    assert run(*shlex.split(command)).exit_code == 0
    (config,) = load_servers(machine / "mcp_servers.json")
    assert (config.name, config.command) == ("a", "x")
    assert command in str(run("import", "--all").exception), "where to copy to is still that file"


def test_a_fault_is_shown_with_its_key(machine: Path) -> None:
    (machine / "f.yaml").write_text("extensions:\n  a: {type: stdio, cmd: 5}\n", encoding="utf-8")
    (machine / "f.yaml").chmod(0o600)
    assert "extensions.a.command: is a number" in run("import", "f.yaml").output
    (machine / "f.json").write_text('{"mcpServers": {"a": {"command": 5}}}', encoding="utf-8")
    (machine / "f.json").chmod(0o600)
    assert "mcpServers.a.command: is a number" in run("import", "f.json").output


def test_a_person_chooses_by_number_and_is_asked_once(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_import, "_at_terminal", lambda: True)
    said = run("import", typed="1\nMars\nAsia/Tokyo\ns3cret-typed\n")
    assert said.exit_code == 0
    assert "Key of the weather service" in said.output
    assert "s3cret-typed" not in said.output
    kept = machine.parents[1] / "state" / "mcp-inputs.json"
    assert mode(kept) == 0o600
    answers = mcp_bridge.InputAnswers(kept)
    assert "wait for no answer" in run("inputs").output
    (clock,) = load_servers(machine / "mcp_servers.json", answers=answers)
    assert clock.env["WEATHER_KEY"] == "s3cret-typed"
    assert clock.args[1] == "--local-timezone=Asia/Tokyo"
    assert ServerSecrets(clock).redact_result("s3cret-typed") == "***"
    assert "s3cret-typed" not in repr(clock)
    run("inputs", "--again", typed="UTC\nanother-one\n")
    assert answers.of(machine / "mcp_servers.json")["weather-key"] == "another-one"


def test_an_answer_that_is_missing_is_said_with_its_fix(machine: Path) -> None:
    found = {config.name: config for config in load_servers(machine / ".vscode" / "mcp.json")}
    assert "waits for an answer to 'Key of the weather service'" in found["github"].fault
    assert "run: caal-node mcp inputs" in found["github"].fault
    assert [asked.id for asked in found["clock"].asks] == ["zone", "weather-key"]


def test_answers_that_are_damaged_are_set_aside_and_not_lost(tmp_path: Path) -> None:
    kept = tmp_path / "answers.json"
    kept.write_text('{"/a": {"key": "mine"', encoding="utf-8")
    answers = mcp_bridge.InputAnswers(kept)
    assert answers.of("/a") == {}
    answers.keep("/a", {"zone": "Asia/Tokyo"})
    assert answers.of("/a") == {"zone": "Asia/Tokyo"}
    assert '"mine"' in kept.with_suffix(".damaged").read_text(encoding="utf-8")
