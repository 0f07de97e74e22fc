"""What somebody new types wrongly is answered in one line with the place and the fix."""

from __future__ import annotations

import io
import json
import re
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from typer.testing import CliRunner

import mcp_bridge
from caal_node.cli.app import app
from caal_node.cli.checks.model import check_model
from caal_node.cli.checks.tools import check_mcp, policy_findings
from caal_node.cli.new_files import write_examples
from caal_node.cli.output import TerminalTranscript, console
from caal_node.config.file import policy_in
from caal_node.config.settings import Settings, load_settings
from caal_node.control.app import serve
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError, ToolUnavailable
from caal_node.core.events import ToolCallEnded, TurnEnded
from caal_node.tools.sources.configured import mcp_tier, n8n_tier
from caal_node.toolsets.home_assistant.devices import lost
from mcp_bridge.serve.cli import app as serve_app
from tests.stand_ins.conversation import NOWHERE

OWN_MODEL = """
from caal_node import CaalAgent
from caal_node.testing import ScriptedModel

class Own(CaalAgent):
    def __init__(self):
        super().__init__(instructions="", llm=ScriptedModel("Hello."))
"""
CONTROL = {
    "LIVEKIT_URL": "ws://127.0.0.1:7880",
    "LIVEKIT_API_KEY": "devkey",
    "LIVEKIT_API_SECRET": "secret",
    "CAAL_CONTROL_TOKEN": "0123456789abcdef",
}


def typed(*lines: str) -> Callable[..., AsyncIterator[str]]:
    async def read(*_: object, **__: object) -> AsyncIterator[str]:
        for line in lines:
            yield line

    return read


def test_control_at_a_port_or_an_address_that_cannot_be_had_says_so_in_one_line() -> None:
    settings = load_settings(CONTROL, NOWHERE)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=rf"127.0.0.1, port {port} \(address already in use\)"
        ):
            serve(settings, port=port)
    with pytest.raises(ConfigError, match=r"a number from 0 to 65535\); choose .* --port"):
        serve(settings, port=99_999)
    with pytest.raises(ConfigError, match=r"cannot listen at 192\.0\.2\.1, port 8889"):
        serve(settings, host="192.0.2.1")


def test_control_without_a_token_says_how_to_make_one() -> None:
    settings = load_settings({**CONTROL, "CAAL_CONTROL_TOKEN": ""}, NOWHERE)
    with pytest.raises(ConfigError, match=r"CAAL_CONTROL_TOKEN: not set\. .*openssl rand -hex 32"):
        serve(settings)


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("get_time", "one tool: caal-node tools --explain get_time"),
        ("remov", "Did you mean remove?"),
    ],
)
def test_a_tools_name_in_place_of_a_command_of_tools_is_answered_with_the_command(
    word: str, fix: str
) -> None:
    ended = CliRunner().invoke(app, ["tools", word])
    assert ended.exit_code == 2
    said = " ".join(ended.output.replace("│", " ").split())
    assert f"No such command '{word}'." in said
    assert fix in said


async def test_a_file_of_servers_that_was_named_and_is_not_there_is_said(tmp_path: Path) -> None:
    named = tmp_path / "servers.json"
    settings = load_settings({"CAAL_MCP_SERVERS": str(named)}, NOWHERE)
    said = f"{named}: there is no such file"
    [finding] = await check_mcp(settings)
    assert (finding.status, finding.found) == ("fail", said)
    assert finding.fix == "write it, or fix CAAL_MCP_SERVERS"
    tier = mcp_tier(settings, catalogue=None)
    try:
        listing = await tier.discover()
        assert listing.failed["servers.json"].startswith(said)
        named.write_text("{}", encoding="utf-8")
        named.chmod(0o600)
        assert not (await tier.discover()).failed
    finally:
        await tier.aclose()


async def test_the_file_that_nobody_named_need_not_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [finding] = await check_mcp(load_settings({}, NOWHERE))
    assert finding.status == "ok"


@pytest.mark.parametrize("name", ["mcpservers", "MCPServers", "mcpServer"])
def test_the_key_of_all_servers_in_another_spelling_is_corrected(tmp_path: Path, name: str) -> None:
    file = tmp_path / "mcp_servers.json"
    file.write_text(json.dumps({name: {"time": {"command": "uvx"}}}), encoding="utf-8")
    file.chmod(0o600)
    [server] = mcp_bridge.load_servers(file)
    assert f'rename "{name}" to "mcpServers"' in (server.fault or "")


def test_a_command_that_is_not_there_is_said_before_a_client_connects(tmp_path: Path) -> None:
    for command, options in (("no-such-server", []), ("./server", ["--cwd", str(tmp_path)])):
        ended = CliRunner().invoke(serve_app, ["serve", *options, "--", command])
        assert ended.exit_code == 1
        assert str(ended.exception).startswith(f"the command {command!r} was not found")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ConnectionRefusedError(111, "refused"), "nothing listens at its address"),
        (socket.gaierror(-2, "unknown"), "its host's name is not known here"),
    ],
)
def test_a_home_assistant_that_is_away_is_said_without_the_names_of_exceptions(
    error: OSError, why: str
) -> None:
    failure = lost(error)
    assert isinstance(failure, ToolUnavailable)
    assert str(failure) == f"Home Assistant cannot be reached: {why}"


def test_a_webhooks_credentials_that_do_not_fit_are_named_with_their_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "caal.toml").write_text('model = "x"\n\n[n8n_auth.door]\nheader = "X-Key"\n')
    settings = load_settings({"N8N_URL": "http://127.0.0.1:9"})
    with pytest.raises(ConfigError, match=r"^caal\.toml, line 3, n8n_auth, door: write \{header"):
        n8n_tier(settings)


@pytest.mark.parametrize("options", [["--json"], ["hello"], []])
def test_a_misspelt_variable_is_said_once_beside_what_chat_prints(
    options: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN_MODEL, encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setenv("CAAL_MODLE", "x")
    monkeypatch.setenv("CAAL_AGENT", "own:Own")
    monkeypatch.setattr("caal_node.cli.chat.standard_input", lambda: None)  # there are no lines
    with pytest.raises(SystemExit) as ended:
        app(["chat", *options])
    told = capsys.readouterr()
    assert ended.value.code == 0, told
    said = "CAAL_MODLE is not a setting; did you mean CAAL_MODEL?"
    assert (told.err.count(said), told.out.count(said)) == (1, 0)


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 tools"), (1, "1 tool"), (2, "2 tools"), (1_200, "1,200 tools")]
)
def test_a_count_is_printed_with_the_right_form_of_its_noun(number: int, words: str) -> None:
    assert counted(number, "tool") == words


def test_one_round_and_one_request_are_not_plural(capsys: pytest.CaptureFixture[str]) -> None:
    TerminalTranscript(console())(TurnEnded(1, 1, 1_200))
    assert capsys.readouterr().out == "turn     1.2 s, 1 tool round, 1 request\n"


def test_no_tools_are_said_with_what_turns_some_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN_MODEL, encoding="utf-8")
    monkeypatch.setattr("caal_node.cli.chat.typed_lines", typed("/tools", "exit"))
    monkeypatch.setattr("caal_node.cli.chat.standard_input", lambda: None)
    ended = CliRunner().invoke(app, ["chat", "--agent", "own:Own"])
    assert "There are no tools: turn some on (caal-node tools add shows which)" in ended.stdout
    assert "what it does" not in ended.stdout


def test_a_tools_result_is_printed_where_more_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    ended = ToolCallEnded("1", "get_it", "agent", "ok", 7, result='{"it": "is [here]"}')
    TerminalTranscript(console())(ended)
    TerminalTranscript(console(), results=True)(ended)
    plain, more = capsys.readouterr().out.splitlines()
    assert more == f'{plain}: {{"it": "is [here]"}}'


def test_the_question_of_a_fault_ends_without_a_full_stop(tmp_path: Path) -> None:
    (tmp_path / "caal.toml").write_text('[tools]\nmod = "house"\n')
    [fault] = policy_findings(policy_in(tmp_path / "caal.toml"), (), listed=True)
    assert fault.fix == "did you mean mode?"


def test_what_can_be_copied_is_numbered_without_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("caal_node.cli.mcp_import._at_terminal", lambda: True)
    servers = {name: {"command": name} for name in ("there", "one", "two")}
    for file, some in (("mcp_servers.json", ["there"]), ("other.json", servers)):
        text = json.dumps({"mcpServers": {name: servers[name] for name in some}})
        (tmp_path / file).write_text(text, encoding="utf-8")
        (tmp_path / file).chmod(0o600)
    said = CliRunner().invoke(app, ["mcp", "import", "other.json"], input="there\n2\n").output
    assert re.findall(r"(?m)^ +([-\d]) +(\w+)", said) == [
        ("-", "there"),
        ("1", "one"),
        ("2", "two"),
    ]
    assert "'there' cannot be copied: there already" in said
    assert "which only you can read: two" in said


def test_the_example_of_servers_names_a_schema_that_is_there(tmp_path: Path) -> None:
    write_examples(tmp_path)
    text = (tmp_path / "mcp_servers.json.example").read_text(encoding="utf-8")
    schema = urlsplit(str(json.loads(text)["$schema"]))
    assert schema.scheme == "file"
    assert Path(unquote(schema.path)).is_file()


async def test_a_model_server_that_is_away_is_said_without_the_name_of_an_exception() -> None:
    [finding] = await check_model(Settings(ollama_host="http://127.0.0.1:9"))
    assert finding.found == "nothing answers at http://127.0.0.1:9"
